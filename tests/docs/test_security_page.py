"""The page about security: its five minutes are gone through as written, and its names exist."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from palio.broker.access.rights import Allowance
from palio.broker.settings import Limits
from tests.cli.forks import forks

PATIENCE = 60.0
PORTS = ("7070", "7080", "7171", "7181")


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "security.md").read_text()


def blocks(page: str) -> list[str]:
    """What is typed in the five minutes, block by block."""
    section = page.split("## In five minutes")[1].split("\n## ", maxsplit=1)[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def test_every_right_and_limit_is_on_the_page(page):
    assert [one.value for one in Allowance if f"`{one.value}`" not in page] == []
    ours = ("frame", "attributes", "filter", "subscriptions", "publish_rate", "connections_per_principal")
    assert [name for name in ours if f"`{name}`" not in page or name not in Limits.__struct_fields__] == []


class Terminals:
    """Shells in one folder; what runs for ever has one of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = dict(zip(PORTS, _free_ports(len(PORTS)), strict=True))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PALIO_")}
        more = {"XDG_CONFIG_HOME": str(folder / "config"), "COLUMNS": "200"}
        self._environment = forks().on_path(kept | more)
        self.open: list[subprocess.Popen[str]] = []

    def _words(self, text: str) -> list[str]:
        for written, free in self._ports.items():
            text = text.replace(f":{written}", f":{free}")
        return ["bash", "-euc", text]

    def run(self, text: str) -> str:
        done = subprocess.run(
            self._words(text), cwd=self.folder, env=self._environment, capture_output=True,
            encoding="utf-8", timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def start(self, text: str) -> subprocess.Popen[str]:
        words = self._words(f"exec {text}")
        log = (self.folder / f"terminal-{len(self.open)}.txt").open("w")
        self.open.append(
            subprocess.Popen(words, cwd=self.folder, env=self._environment, stdout=log, stderr=log, text=True)
        )
        return self.open[-1]

    def shown(self, number: int) -> str:
        return (self.folder / f"terminal-{number}.txt").read_text()

    def until(self, number: int, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown(number):
            assert time.monotonic() < deadline, (text, self.shown(number))
            time.sleep(0.05)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture
def terminals(tmp_path) -> Iterator[Terminals]:
    there = Terminals(tmp_path)
    yield there
    for process in there.open:
        process.terminate()
    for process in there.open:
        process.wait(PATIENCE)


def test_the_five_minutes(page, terminals):
    certificates, rights, settings, siena, lucca, using, subscribing, publishing, changing, *last = blocks(page)
    terminals.run(certificates)
    terminals.run(rights)
    assert terminals.run(settings).count("These settings can be used.") == 2
    for number, block in enumerate((siena, lucca)):
        terminals.start(block)
        terminals.until(number, "is up")
    terminals.until(1, "A link is up.")
    assert "siena" in terminals.run(using)
    subscription = terminals.start(subscribing)
    deadline = time.monotonic() + PATIENCE
    while "price > 100" not in terminals.run("palio subs --server audit --json"):  # what it may see of it
        assert time.monotonic() < deadline
    terminals.run("sleep 1")  # until siena has heard of it, too
    said = terminals.run(publishing)
    assert "desk may not publish" in said
    assert "as it should be" in said
    assert subscription.wait(PATIENCE) == 0
    shown = terminals.shown(2)
    assert "101.5" in shown
    assert "102.5" in shown
    assert " 1.5" not in shown
    said = terminals.run(changing)
    assert "it may not see it" in said
    assert "so it does not" in said
    assert "1 token revoked" in said
    with pytest.raises(AssertionError, match="was revoked"):
        terminals.run("palio pub symbol=ACME price=101.5 --server desk")
    [by_certificate] = last
    assert terminals.run(by_certificate).count('"sequences":[') == 1
    for who in ("brokers", "desk", "audit"):
        secret = (terminals.folder / f"{who}.token").read_text().strip()
        assert not any(secret in terminals.shown(number) for number in range(2))
