"""The page about the overlay: its four brokers are started, drawn and killed as written; its names exist."""

from __future__ import annotations

import re
from functools import partial

import pytest

from palio.routing.overlay.effects import SENTENCES
from palio.routing.overlay.manager import REASONS
from palio.routing.overlay.settings import OverlaySettings
from tests.docs.shell_examples import page_shell, waited


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "overlay.md").read_text()


def test_the_four_brokers_are_as_drawn(page, tmp_path):
    with page_shell(page, tmp_path) as shell:
        ups, asked, removed = shell.blocks("executed")
        before, after, moved = re.findall(r"```text\n(.*?)\n```", shell.page, re.DOTALL)

        def drawn() -> str:
            return shell.run(asked)[1]

        def until_drawn(expected: str) -> None:
            waited(lambda: drawn() == expected, lambda: f"{drawn()}\nis not\n{expected}")

        brokers = []
        for number, command in enumerate(ups.splitlines(), 1):
            brokers.append(shell.start(command, f"log{number}"))
            expected = f"{number} broker{'s' * (number > 1)}."
            waited(lambda: expected in drawn(), partial(shell.said, f"log{number}"))  # noqa: B023
        until_drawn(before)
        brokers[1].kill()
        brokers[1].wait()
        until_drawn(after)
        code, said = shell.run(removed)
        assert code == 0, said
        until_drawn(moved)


def test_every_setting_reason_and_default_is_on_the_page(page):
    assert [name for name in OverlaySettings.__struct_fields__ if f"| `{name}` |" not in page] == []
    assert [reason for reason in REASONS if f"| `{reason}` |" not in page] == []
    for name, shown in re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|", page, re.MULTILINE):
        assert str(getattr(OverlaySettings(), name)) == shown, name


def test_everything_that_can_happen_is_on_the_page(page):
    told = set(re.findall(r"^\| `([a-z ]+)` \| .* \| .*\|$", page, re.MULTILINE))
    assert set(SENTENCES) <= told


def test_diagrams_are_closed(page):
    assert page.count("```mermaid") == 2
    assert page.count("```") % 2 == 0
