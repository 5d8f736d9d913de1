"""What a standby does with what opening a store raises; `tests/live/test_standby.py` has processes."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from palio.broker.host import StandbyEnded
from palio.broker.standby import CannotStandBy, Standby
from palio.store import NoSuchJournal, SqlStore, StoreCorrupt, StoreInUse, StoreUnavailable
from tests.store.damage import change
from tests.store.driving import Driven, append

IN_USE = StoreInUse("there", "b", "process 7")
AWAY = StoreUnavailable("there", "It is away.")
OPENED: Any = object()


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("palio.broker.standby.TRY_EVERY", 0.0)
    caplog.set_level(logging.INFO)


def opened(*outcomes: Any, stop_after: int = 0) -> SqlStore:
    """What a standby opens where each attempt has an outcome; it is told to end before one of them, if so."""
    left = list(outcomes)
    stopped = asyncio.Event()

    def attempt() -> SqlStore:
        outcome = left.pop(0)
        if len(outcomes) - len(left) == stop_after:
            loop.call_soon_threadsafe(stopped.set)
        if isinstance(outcome, Exception):
            raise outcome
        found: SqlStore = outcome
        return found

    async def scene() -> SqlStore:
        nonlocal loop
        loop = asyncio.get_running_loop()
        return await Standby(stopped).open("b", attempt)

    loop: Any = None
    return asyncio.run(scene())


def test_it_waits_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    assert opened(IN_USE, IN_USE, AWAY, AWAY, IN_USE, OPENED) is OPENED
    assert [record.getMessage() for record in caplog.records] == [
        "The broker b holds its store; this one takes its place when that ends.",
        "The store is out of reach; waiting goes on.",
        "The store is free: this broker takes over.",
    ]


def test_what_is_free_is_opened_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    assert opened(OPENED) is OPENED
    assert not caplog.records


@pytest.mark.parametrize(
    "outcomes", [(AWAY,), (IN_USE, StoreCorrupt("there", "It is.")), (IN_USE, NoSuchJournal("there", "b", ()))]
)
def test_other_errors_end_it(outcomes: tuple[Exception, ...]) -> None:
    with pytest.raises(type(outcomes[-1])):
        opened(*outcomes)


def test_it_ends_when_it_is_told_to() -> None:
    with pytest.raises(StandbyEnded):
        opened(IN_USE, IN_USE, OPENED, stop_after=2)


def test_it_looks_before_it_waits(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/palio.db"
    standby = Standby(asyncio.Event())
    with pytest.raises(CannotStandBy, match="There is no such file"):
        asyncio.run(standby.look(url, "b"))
    assert not list(tmp_path.iterdir())
    with Driven(url) as driven:
        driven.do(append(1, 1))
        asyncio.run(standby.look(url, "b"))
        with pytest.raises(CannotStandBy, match="It has those of b"):
            asyncio.run(standby.look(url, "c"))
    change(url, "UPDATE palio_schema SET version = 1")
    asyncio.run(standby.look(url, "b"))  # who opens it brings it up to date
    (tmp_path / "palio.db").write_bytes(b"not a database" * 1_000)
    with pytest.raises(StoreCorrupt):
        asyncio.run(standby.look(url, "b"))
