"""Journals for tests: written as a broker writes them, without one."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Append, Trim
from tests.store.driving import Driven

MIDNIGHT = 1_700_006_400.0  # 2023-11-15


def numbers(count: int, first: int = 0) -> list[dict[str, int]]:
    """Contents of events that are told apart by a number."""
    return [{"x": n} for n in range(first, first + count)]


def a_day_passes(lake: str) -> None:
    """The files of a lake become a day older, as far as their folder says."""
    for path in Path(lake).rglob("*.parquet"):
        yesterday = path.stat().st_mtime - 86_401
        os.utime(path, (yesterday, yesterday))


def backup(url: str) -> Path:
    """A copy of a store of SQLite as it is now, of which nobody has it open."""
    store = Path(url.removeprefix("sqlite:///"))
    copy = store.with_name(f"copy-{secrets.token_hex(4)}.db")
    shutil.copyfile(store, copy)
    return copy


def come_back(url: str, copy: Path) -> None:
    """The store is what it was when it was copied."""
    store = Path(url.removeprefix("sqlite:///"))
    for file in [store, *store.parent.glob(f"{store.name}-*")]:
        file.unlink()
    shutil.copyfile(copy, store)


def fill(
    url: str,
    events: Iterable[Mapping[str, Any] | Notification],
    *,
    broker: str = "b",
    at: float = MIDNIGHT,
    step: float = 1.0,
    trim: int = 0,
) -> int:
    """Append events to a journal, each `step` seconds after the one before. Returns its head."""
    with Driven(url, broker) as driven:
        head = driven.recovered.head
        several = [one if isinstance(one, Notification) else Notification(one) for one in events]
        for first in range(0, len(several), 10_000):
            envelopes = tuple(
                Envelope(broker, head + 1 + number, at + step * number, 0, broker, one)
                for number, one in enumerate(several[first : first + 10_000], first)
            )
            driven.do(Append(first, envelopes, "publisher"))
        if trim:
            driven.store.submit((Trim(trim),))
            driven.wait_for(lambda: driven.store.statistics().trimmed >= trim)
        return head + len(several)
