"""The reference page of the filter language is executed: every example on it holds."""

import doctest
import re

import pytest

from palio import Filter, FilterError, Notification, Pattern, PatternError
from palio.cli.input.selections import FilterReader
from palio.matching.patterns import Detector, partition, search
from palio.model import (
    automaton,
    conjunction,
    decision,
    form,
    normal,
    questions,
    reading,
    regexp,
    regular,
    texts,
    values,
)
from palio.model.formulas import functions, residual, writing
from palio.model.patterns import checking, variants
from palio.model.patterns.policies import POLICIES
from tests.docs.filter_examples import blocks, check_filters

RELATIONS = ("does not cover", "covers", "does not overlap", "overlaps")


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "filters.md").read_text()


def test_every_filter_selects_what_the_page_says(page):
    assert check_filters(page) > 25


def test_every_relation_holds(page):
    lines = [line for block in blocks(page, "covers") for line in block.splitlines()]
    assert len(lines) > 10
    for line in lines:
        relation = next(one for one in RELATIONS if f" {one} " in line)
        first, second = (Filter.parse(part) for part in line.split(f" {relation} "))
        holds = first.covers(second) if "cover" in relation else first.overlaps(second)
        assert holds is ("not" not in relation), line


def test_every_mistake_is_told_as_the_page_says(page):
    lines = [line for block in blocks(page, "mistake") for line in block.splitlines()]
    assert len(lines) > 5
    for line in lines:
        text, message = re.split(r"\s{2,}", line, maxsplit=1)
        with pytest.raises((FilterError, PatternError)) as caught:
            (Pattern if "[" in text or " within " in text else Filter).parse(text)
        assert str(caught.value) == message


def test_every_filter_about_documents_means_what_the_page_says(page, root):
    reader = FilterReader([root / "examples" / "xml" / "card.json"], None)
    examples = [one.splitlines() for block in blocks(page, "selection") for one in block.split("\n\n")]
    assert len(examples) > 3
    for text, means in examples:
        if means.startswith(("Column", "It is")):
            with pytest.raises(FilterError) as caught:
                reader.read(text)
            assert str(caught.value) == means
        else:
            assert reader.read(text) == Filter.parse(means)


def test_every_pattern_finds_what_the_page_says(page):
    found = blocks(page, "pattern")
    assert len(found) > 8
    for block in found:
        text, *lines = block.splitlines()
        detector = Detector({"pattern": Pattern.parse(text)})
        for line in lines:
            if not line.startswith("→"):
                number, time, content = line.split(maxsplit=2)
                hours, minutes, seconds = map(int, time.split(":"))
                detector.take(
                    Notification.from_json(content),
                    time=(hours * 3600 + minutes * 60 + seconds) * 1_000_000,
                    position=int(number),
                )
        matches = [
            " ".join([*(one.id for one in match.constituents), *["timed out"] * match.timed_out])
            for match in detector.close()
        ]
        assert matches == [line[2:] for line in lines if line.startswith("→")], text


def test_every_policy_and_drop_is_on_the_page(page):
    for word in {*POLICIES, *(one for several in POLICIES.values() for one in several)}:
        assert f"`{word}`" in page or f'"{word}"' in page, word
    for reason in ("late", "disordered", "unkeyed", "overflow", "abandoned"):
        assert f"`{reason}`" in page, reason
    assert f"{partition.MAX_HITS:,} events" in page
    assert f"{search.MAX_EFFORT:,} events" in page


def test_the_python_examples_run(page):
    examples = doctest.DocTestParser().get_doctest(
        "\n".join(blocks(page, "python")), {}, "filters.md", "docs/filters.md", 0
    )
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(examples, out=report.append)
    assert runner.tries > 10
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("characters of a filter", reading.MAX_TEXT_CHARACTERS),
        ("conditions", reading.MAX_CONDITIONS),
        ("values (in all `in` lists together)", reading.MAX_VALUES),
        ("nesting", reading.MAX_DEPTH),
        ("conjunctions after expansion", normal.MAX_CONJUNCTIONS),
        (
            "combined `ends with`, `contains`, `matches` and `has` on one attribute",
            decision.MAX_NODES,
        ),
        ("characters of a regular expression", regexp.MAX_REGEX_CHARACTERS),
        ("characters of a pattern of `like`", questions.MAX_LIKE_CHARACTERS),
        ("characters of a text that is compared ignoring case", questions.MAX_IGNORING_CHARACTERS),
        ("places of a regular expression, with repetitions written out", regular.MAX_PLACES),
        ("states of one `like` or `regex`", regular.MAX_STATES),
        (
            "states of one `like` or `regex`, times the classes of characters that it tells apart",
            regular.MAX_CELLS,
        ),
        (
            "states of all `like`, `regex`, networks and texts that ignore case in a filter",
            reading.MAX_TABLE_STATES,
        ),
        ("constants, attributes and functions in one computed condition", residual.MAX_PARTS),
        ("functions within each other", residual.MAX_DEPTH),
        ("computed conditions in one conjunction", residual.MAX_RESIDUALS),
        ("bytes of a filter or an advertisement once it is written out for brokers", form.MAX_BYTES),
        ("characters of a name", values.MAX_NAME_CHARACTERS),
        ("bytes of a string", values.MAX_STRING_BYTES),
        ("characters of a path pattern", texts.MAX_GLOB_CHARACTERS),
        ("attributes of a notification", values.MAX_ATTRIBUTES),
        ("elements of a list", values.MAX_LIST_ELEMENTS),
        ("bytes of a payload", values.MAX_PAYLOAD_BYTES),
        ("steps of a pattern", checking.MAX_STEPS),
        ("events of a match", variants.MAX_SLOTS),
        ("events of a loop without an upper bound", variants.MAX_LOOP),
        ("alternatives of a pattern", variants.MAX_VARIANTS),
        ("attributes behind `by`", checking.MAX_PARTITION_ATTRIBUTES),
        ("days of a window", checking.MAX_WINDOW // 86_400_000_000),
    ],
)
def test_the_limits_on_the_page_are_those_of_the_code(page, line, limit):
    assert f"| {line} | {limit:,} |" in page


def test_the_bounds_on_the_page_are_those_of_the_code(page):
    flat = " ".join(page.split())
    assert f"{automaton.MAX_EFFORT:,} transitions" in flat
    assert f"{conjunction.MAX_EFFORT:,} comparisons" in flat


def test_every_function_of_our_own_is_on_the_page(page):
    signs = {*writing.COMPARISONS, *writing.SUMS.values(), *writing.PRODUCTS.values(), "negate"}
    for name in set(functions.FUNCTIONS) - signs:
        assert "." in name or (f"`{name}(" in page and f'"{name}"' in page), name


def test_every_keyword_and_operator_is_on_the_page(page):
    whole = reading.KEYWORDS - {"starts", "ends", "with"}
    for word in whole | set(reading.TEXT_OPERATORS) | {"=", "!=", "<", "<=", ">", ">=", ">*", "*<"}:
        assert f"`{word}`" in page or f'"{word}"' in page, word
