"""Persisting a durable subscription: all that the store is asked to write of one is made here.

Each write is one atomic change (`Spool`): invariants 2 and 8 of `subscription`. Positions are noted twice:
as far as they were asked to be written, and as far as they are on disk, which is what journals are told
(invariant 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palio.model.filter import Filter
from palio.protocol.durable.attempts import FailuresOf
from palio.protocol.envelope import Envelope
from palio.routing.durable import shortcuts
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import Spool
from palio.routing.durable.home.subscription import Durable, HomeState

Letters = tuple[tuple[int, int, Envelope], ...]


class Writing:
    """What is written of the subscriptions here."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def subscription(
        self, durable: Durable, filter: Filter, then: Callable[[], None] | None, **more: Any
    ) -> None:
        """Write the subscription itself, with a filter and all that goes with it."""
        token, own = self._desk.token(then), (durable.identity, durable.generation, durable.since)
        more["lineages"] = durable.lineages_to_write(more.get("position", ()))
        self._desk.effects.append(
            Spool(token, durable.name, filter, *own, linger=durable.linger, retry=durable.retry, **more)
        )

    def deliveries(
        self,
        durable: Durable,
        *,
        add: Letters = (),
        remove: tuple[int, ...] = (),
        dead: Letters = (),
        position: tuple[tuple[str, int], ...] = (),
        failures: FailuresOf = (),
        then: Callable[[], None] | None = None,
    ) -> None:
        """Write what has changed of its deliveries and its position; `then` is not called if it has ended."""
        durable.written_position.update(position)
        places = durable.places(position)

        def stored() -> None:
            durable.stored_position.update(places)
            if then is not None and durable.state is not HomeState.ENDED:
                then()

        if shortcuts.TAKEN and not (add or remove or dead or position):
            # There is nothing to write, an acknowledgement that comes twice for instance: what was written
            # before has to be on disk, and that is all.
            self._desk.after(durable.latest_write, stored)
            return
        token = durable.latest_write = self._desk.token(stored, of_deliveries=True)
        spool = Spool(
            token,
            durable.name,
            add=add,
            remove=remove,
            dead=dead,
            position=position,
            failures=failures,
            lineages=durable.lineages_to_write(position),
        )
        self._desk.effects.append(spool)

    def when_written(self, durable: Durable, then: Callable[[], None]) -> None:
        """Do something when all that was asked for before is on disk."""
        self._desk.effects.append(Spool(self._desk.token(then), durable.name))
