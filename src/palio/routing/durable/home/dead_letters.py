"""Dead letters at their home: redelivering and discarding them, for whoever may ask for it."""

from __future__ import annotations

from collections.abc import Iterable

from palio.protocol.durable.subscriptions import Discard, Discarded, Requeue, Requeued
from palio.routing.durable.desk import Desk
from palio.routing.durable.home.handing import HandingOut
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.subscription import Durable
from palio.routing.durable.home.writing import Writing


class DeadLetterDesk:
    """Redelivers dead letters, or discards them. Raises `NotHome` for what is not at home here."""

    def __init__(self, desk: Desk, homes: Homes, writing: Writing, handing: HandingOut) -> None:
        self._desk = desk
        self._homes = homes
        self._writing = writing
        self._handing = handing

    def requeue(self, session: str, message: Requeue) -> None:
        """Redelivers dead letters after all, as if for the first time."""
        durable = self._homes.named(message.name)
        letters = [(number, 0, durable.dead.take(number)) for number in _known(message.deliveries, durable)]

        def stored() -> None:
            for letter in letters:
                durable.outbox.add(*letter)
            requeued = tuple([number for number, *_ in letters])
            self._desk.answer(session, Requeued(durable.name, requeued, number=message.number))
            self._handing.pump(durable)

        self._writing.deliveries(durable, add=tuple(letters), then=stored)

    def discard(self, session: str, message: Discard) -> None:
        """Discards dead letters: they are forgotten."""
        durable = self._homes.named(message.name)
        numbers = tuple(_known(message.deliveries, durable))
        for number in numbers:
            durable.dead.take(number)
        answer = Discarded(durable.name, numbers, number=message.number)
        self._writing.deliveries(durable, remove=numbers, then=lambda: self._desk.answer(session, answer))


def _known(numbers: Iterable[int], durable: Durable) -> list[int]:
    """Those numbers that are dead letters, each once."""
    return [number for number in dict.fromkeys(numbers) if number in durable.dead]
