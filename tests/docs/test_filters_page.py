"""The reference page of the filter language is executed: every example on it holds."""

import doctest
import re

import pytest

from palio import Filter, FilterSyntaxError, Notification
from palio.model import automaton, conjunction, normal, parser, texts, values

RELATIONS = ("does not cover", "covers", "does not overlap", "overlaps")


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "filters.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_every_filter_selects_what_the_page_says(page):
    found = blocks(page, "filter")
    assert len(found) > 25
    for block in found:
        text, *cases = block.splitlines()
        f = Filter.parse(text)
        assert cases, text
        for case in cases:
            answer, content = case.split(maxsplit=1)
            n = Notification.from_json(content)
            assert f.matches(n) is {"yes": True, "no": False}[answer], f"{text} on {content}"
            assert bool(f.explain(n)) is f.matches(n)


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
        text, message = re.split(r"\s{2,}(?=Column)", line)
        with pytest.raises(FilterSyntaxError) as caught:
            Filter.parse(text)
        assert str(caught.value) == message


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
        ("characters of a filter", parser.MAX_TEXT_CHARACTERS),
        ("conditions", parser.MAX_CONDITIONS),
        ("values (in all `in` lists together)", parser.MAX_VALUES),
        ("nesting", parser.MAX_DEPTH),
        ("conjunctions after expansion", normal.MAX_CONJUNCTIONS),
        ("characters of a name", values.MAX_NAME_CHARACTERS),
        ("bytes of a string", values.MAX_STRING_BYTES),
        ("characters of a path pattern", texts.MAX_GLOB_CHARACTERS),
        ("attributes of a notification", values.MAX_ATTRIBUTES),
        ("elements of a list", values.MAX_LIST_ELEMENTS),
        ("bytes of a payload", values.MAX_PAYLOAD_BYTES),
    ],
)
def test_the_limits_on_the_page_are_those_of_the_code(page, line, limit):
    assert f"| {line} | {limit:,} |" in page


def test_the_bounds_on_the_page_are_those_of_the_code(page):
    flat = " ".join(page.split())
    assert f"{automaton.MAX_EFFORT:,} transitions" in flat
    assert f"{conjunction.MAX_EFFORT:,} comparisons" in flat


def test_every_keyword_and_operator_is_on_the_page(page):
    whole = parser.KEYWORDS - {"starts", "ends", "with"}
    for word in whole | set(parser.TEXT_OPERATORS) | {"=", "!=", "<", "<=", ">", ">=", ">*", "*<"}:
        assert f"`{word}`" in page or f'"{word}"' in page, word
