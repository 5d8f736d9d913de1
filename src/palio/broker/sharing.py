"""`BrokerSharing`: shared records (`routing.shared`) for what a broker is made of: put, look, hear of changes.

    sharing.put(("family", "card", value))           # on disk here
    sharing.put(("family", "card", None), everywhere=True)  # and at all brokers in reach

Whoever puts waits for the disk, and then for the others, as long as it likes. Who listens is told of each
change at once, whoever has made it; a mistake of a listener is logged, and concerns nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeAlias

from palio.protocol.sharing import SharedRecord
from palio.routing.effects import Effect, SharedChanged, SharedReady
from palio.routing.router import Router

# A kind, a key, and a value; None removes it.
SharedChange: TypeAlias = tuple[str, str, bytes | None]
Listener: TypeAlias = Callable[[SharedRecord], None]


class BrokerSharing:
    """What all brokers know, at one of them."""

    def __init__(
        self,
        router: Callable[[], Router],
        carry_out: Callable[[Sequence[Effect]], None],
        now: Callable[[], float],
        log: logging.Logger,
    ) -> None:
        self._router = router
        self._carry_out = carry_out
        self._now = now
        self._log = log
        self._tokens = count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._listeners: dict[str, list[Listener]] = {}

    def get(self, kind: str, key: str) -> bytes | None:
        """The value of a record, if there is one."""
        return self._router().shared.get(kind, key)

    def of(self, kind: str) -> dict[str, bytes]:
        """The values of a kind, by key."""
        return self._router().shared.of(kind)

    def listen(self, kind: str, listener: Listener) -> None:
        """Have a listener told of each change of a kind from now on."""
        self._listeners.setdefault(kind, []).append(listener)

    async def put(self, *changes: SharedChange, everywhere: bool = False) -> None:
        """Change records, or remove them; they count at once, and are on disk when this returns.

        With `everywhere` they are at all brokers in reach, then, on their disks. Raises `TooMuchShared`.
        Whoever does not want to wait any more may cancel it; what was put stays.
        """
        router = self._router()
        records = router.shared.changed(changes)
        token = next(self._tokens)
        future = self._waiting[token] = asyncio.get_running_loop().create_future()
        try:
            self._carry_out(router.share(records, token, self._now(), everywhere=everywhere))
            await future
        finally:
            self._waiting.pop(token, None)

    # Effects

    def ready(self, effect: SharedReady) -> None:
        for token in effect.tokens:
            future = self._waiting.get(token)
            if future is not None and not future.done():
                future.set_result(None)

    def changed(self, effect: SharedChanged) -> None:
        for record in effect.records:
            for listener in self._listeners.get(record.kind, ()):
                try:
                    listener(record)
                except Exception:  # noqa: BLE001 (the others are told)
                    extra = {"kind": record.kind, "key": record.key}
                    self._log.exception("A change of a shared record could not be handled.", extra=extra)
