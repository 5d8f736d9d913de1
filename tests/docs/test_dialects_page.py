"""The page about dialects is executed: every example on it holds."""

import re
import shlex

import pytest

from palio import Filter, Notification
from palio.language import DIALECTS, read_filter
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


def test_every_command_says_what_the_page_says(page, command):
    [block] = blocks(page, "console")
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    assert len(parts) == 5
    for part in parts:
        line, _, printed = part.partition("\n")
        result = command(*shlex.split(line)[1:])
        assert (result.stdout + result.stderr).strip() == printed.strip()


def test_every_dialect_is_on_the_page(page):
    for dialect in DIALECTS:
        assert f"| `{dialect}` |" in page
