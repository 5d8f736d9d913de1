"""The page about dialects is executed: every example on it holds."""

import re
import shlex

import pytest

from palio import Filter, Notification
from palio.language import DIALECTS, WRITERS, read_filter, write_filter
from tests.cli.conftest import command as command  # noqa: PLC0414 (a fixture)


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "dialects.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_every_filter_means_and_selects_what_the_page_says(page):
    found = blocks(page, "dialect")
    assert {block.split()[0] for block in found} == {"mqtt", "eventbridge", "jms", "cesql"}
    for block in found:
        (dialect, text), (_, meaning), *cases = (line.split(maxsplit=1) for line in block.splitlines())
        f = read_filter(text, dialect)
        assert f == Filter.parse(meaning), text
        assert cases
        for answer, content in cases:
            assert f.matches(Notification.from_json(content)) is {"yes": True, "no": False}[answer], (
                text,
                content,
            )


def test_filters_that_mean_the_same_are_equal(page):
    found = blocks(page, "same")
    assert len(found) == 4
    for block in found:
        first, *others = [read_filter(text, dialect) for dialect, text in written(block)]
        assert others
        assert all(one == first and hash(one) == hash(first) for one in others), block
    compared = {dialect for block in found for dialect, _ in written(block)}
    assert compared >= {"palio", "cloudevents", "eventbridge", "mqtt"}


def written(block: str) -> list[tuple[str, str]]:
    """Dialects and texts, one a line."""
    return [(dialect, text) for dialect, text in (line.split(maxsplit=1) for line in block.splitlines())]


def test_every_example_is_written_again(page):
    """What the page shows of a dialect that is written can be written, as something that means the same."""
    shown = [line for block in blocks(page, "dialect") + blocks(page, "same") for line in block.splitlines()]
    for dialect, text in (line.split(maxsplit=1) for line in shown):
        if dialect in WRITERS:
            f = read_filter(text, dialect)
            assert read_filter(write_filter(f, dialect), dialect) == f


def test_every_command_says_what_the_page_says(page, command):
    parts = [part for one in blocks(page, "console") for part in re.split(r"^\$ ", one, flags=re.MULTILINE)[1:]]
    assert len(parts) == 12
    for part in parts:
        line, _, printed = part.partition("\n")
        result = command(*shlex.split(line)[1:])
        assert (result.stdout + result.stderr).strip() == printed.strip()


def test_every_dialect_is_on_the_page(page):
    for dialect in DIALECTS:
        assert f"| `{dialect}` |" in page
