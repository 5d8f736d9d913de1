"""`MetBrokers`: brokers that this one knows of, in a file of the data folder: a restart does not forget them.

It is a hint: bounded, checked as what other brokers tell is, and without it the broker has those to join.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from palio.broker.settings import Settings
from palio.protocol.overlay import Contact
from palio.routing.overlay.contacts import MOST_KNOWN

FILE = "brokers.json"
# Bytes of the file, at the most: as many brokers as are known, with the longest names and addresses.
_LARGEST = 4_096 * MOST_KNOWN
# Seconds between two writes, unless the broker stops (a guess: a broker that is killed has met few since).
_EVERY = 10.0


class MetBrokers:
    """The file, if there is one. `now` is a clock that only goes forward."""

    def __init__(self, file: Path | None, log: logging.Logger, now: Callable[[], float]) -> None:
        self._file = file
        self._log = log
        self._now = now
        self._written: tuple[Contact, ...] = ()
        self._next = float("-inf")

    @classmethod
    def of(cls, settings: Settings, log: logging.Logger) -> MetBrokers:
        """In the data folder, if there is one, and brokers find each other."""
        keeps = settings.journal and settings.overlay.most is not None
        return cls(Path(settings.data) / FILE if keeps else None, log, time.monotonic)

    def read(self) -> tuple[Contact, ...]:
        """Those that were kept."""
        if self._file is None or not self._file.exists():
            return ()
        try:
            with self._file.open("rb") as file:
                content = file.read(_LARGEST + 1)
            found = msgspec.json.decode(content, type=tuple[Contact, ...])
        except (OSError, msgspec.DecodeError) as problem:
            extra = {"reason": f"{self._file}: {problem}."}
            self._log.warning("Brokers met before are not known.", extra=extra)
            return ()
        return found[:MOST_KNOWN]

    def keep(self, known: Callable[[], tuple[Contact, ...]], *, last: bool = False) -> None:
        """Write those who are known now, if it is time or the `last` chance, and they have changed."""
        if self._file is None or (self._now() < self._next and not last):
            return
        self._next = self._now() + _EVERY
        found = known()
        if found == self._written:
            return
        beside = self._file.with_suffix(".new")
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
            beside.replace(self._file)
        except OSError as problem:
            self._log.warning("Brokers met are not kept.", extra={"reason": f"{problem}."})
        self._written = found
