"""The page about the overlay: its four brokers are started, drawn and killed as written; its names exist."""

from __future__ import annotations

import os
import re
import shlex
import socket
import time
from pathlib import Path

import pytest

from palio.routing.overlay.settings import OverlaySettings
from palio.routing.overlay.tree import REASONS
from tests.cli.forks import forks

PATIENCE = 60.0


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "overlay.md").read_text()


@pytest.fixture
def ports():
    """Ports that are kept for whoever is told of them: bound, and never listened on."""
    sockets = [socket.socket() for _ in range(4)]
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    yield [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()


def test_the_four_brokers_are_as_drawn(page, tmp_path, ports):
    named = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", page)))
    text = page
    for shown, free in zip(named, ports, strict=True):
        text = text.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{free}")
    ups, asked, removed = re.findall(r"<!-- executed -->\n```sh\n(.*?)\n```", text, re.DOTALL)
    before, after, moved = re.findall(r"```text\n(.*?)\n```", text, re.DOTALL)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PALIO_")}
    environment |= {"COLUMNS": "200", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    processes = []

    def run(command: str, output: Path):
        with output.open("wb") as file:
            words = shlex.split(command)[1:]
            return forks().start(*words, environment=environment, folder=tmp_path, output=file)

    def drawn() -> str:
        process = run(asked, tmp_path / "drawn")
        process.wait(PATIENCE)
        return "\n".join(line.rstrip() for line in (tmp_path / "drawn").read_text().splitlines())

    def until_drawn(expected: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (found := drawn()) != expected:
            assert time.monotonic() < deadline, f"{found}\nis not\n{expected}"

    try:
        for number, command in enumerate(ups.splitlines(), 1):
            processes.append(run(command, tmp_path / f"log{number}"))
            expected = f"{number} broker{'s' * (number > 1)}."
            deadline = time.monotonic() + PATIENCE
            while expected not in drawn():
                assert time.monotonic() < deadline, (tmp_path / f"log{number}").read_text()
        until_drawn(before)
        processes[1].kill()
        processes[1].wait()
        until_drawn(after)
        assert run(removed, tmp_path / "said").wait(PATIENCE) == 0, (tmp_path / "said").read_text()
        until_drawn(moved)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def test_every_setting_reason_and_default_is_on_the_page(page):
    assert [name for name in OverlaySettings.__struct_fields__ if f"| `{name}` |" not in page] == []
    assert [reason for reason in REASONS if f"| `{reason}` |" not in page] == []
    for name, shown in re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|", page, re.MULTILINE):
        assert str(getattr(OverlaySettings(), name)) == shown, name


def test_diagrams_are_closed(page):
    assert page.count("```mermaid") == 2
    assert page.count("```") % 2 == 0
