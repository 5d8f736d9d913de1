"""Tombstones: which subscriptions have ended here, or gone on to another home; that is on disk, for ever.

No letter that comes late shall bring one back; and journals that are new shall hear of it.
"""

from __future__ import annotations

from palio.routing.durable.desk import Desk
from palio.routing.durable.facts import FactKind, FactsFound
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.subscription import Durable, HomeState

# The generation of what has ended for good: no other one will follow.
FOR_GOOD = 2**62


class Endings:
    """By identity: up to which generation a subscription has ended here, and where it went."""

    def __init__(self, desk: Desk, homes: Homes, facts: FactsFound) -> None:
        self._desk = desk
        self._homes = homes
        self._ended: dict[str, int] = {}
        self._handed_over: dict[str, str] = {}  # the homes that they were handed over to
        for fact, generation in facts:
            if fact.kind is FactKind.ENDED and generation > self._ended.get(fact.subject, 0):
                self._ended[fact.subject] = generation
                self._handed_over.pop(fact.subject, None)
                if fact.home:
                    self._handed_over[fact.subject] = fact.home

    def note(self, durable: Durable, next_home: str | None) -> None:
        """Note that a subscription has ended here: for good, or because it is at another home now."""
        identity = durable.identity
        former = self._handed_over.pop(identity, None)
        generation = FOR_GOOD
        if next_home is not None:
            self._handed_over[identity] = next_home
            generation = durable.generation
        self._ended[identity] = generation
        self._desk.save(FactKind.ENDED.of(identity, next_home or ""), generation)
        if former is not None and former != next_home:
            self._desk.save(FactKind.ENDED.of(identity, former), None)

    def upto(self, identity: str) -> int:
        """Fencing: the generation up to which a subscription is not to be taken back."""
        return self._ended.get(identity, 0)

    def has_ended(self, identity: str) -> bool:
        """Whether a subscription has ended here for good, or was created here and never came to be on disk."""
        if identity in self._ended:
            return self._ended[identity] == FOR_GOOD
        here = any(durable.identity == identity for durable in self._homes.subscriptions.values())
        return not here and self._desk.gave_before(identity)

    def going_to(self, broker: str) -> list[str]:
        """What is being handed over from here to a broker, by identity."""
        return [one.identity for one in self._homes.subscriptions.values() if one.moving_to == broker]

    def whereabouts(self) -> tuple[tuple[str, str], ...]:
        """What is on disk here, or was handed over: identities, and where they are or go."""
        here = {
            durable.identity: durable.moving_to or self._desk.broker
            for durable in self._homes.subscriptions.values()
            if durable.state is not HomeState.STORING
        }
        return tuple({**self._handed_over, **here}.items())
