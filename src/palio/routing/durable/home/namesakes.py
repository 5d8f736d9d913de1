"""Duplicate subscriptions: two of one name, because a client began anew while the home could not be reached.

Homes hear of each other when they ask how far the journals are. The one that was created later stays.
"""

from __future__ import annotations

from palio.protocol.durable.letters import Newer
from palio.routing.durable.desk import created_at
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.lifecycle import Lifecycle
from palio.routing.durable.network.unicast import Unicast


class Namesakes:
    """What becomes of a subscription here when another one of its name is heard of."""

    def __init__(self, homes: Homes, lifecycle: Lifecycle, letters: Unicast) -> None:
        self._homes = homes
        self._lifecycle = lifecycle
        self._letters = letters

    def hear_of(self, name: str, identity: str, home: str) -> None:
        """Handles news of a subscription at another broker: of two of one name, the older one retires."""
        durable = self._homes.subscriptions.get(name)
        if durable is None or durable.identity == identity:
            return
        if created_at(durable.identity) < created_at(identity):
            self._lifecycle.retire(durable)
        else:
            self._letters.write(home, Newer(name, durable.identity))

    def newer(self, sender: str, letter: Newer) -> None:
        """Handles a `Newer`: another broker has one of that name that was created later."""
        durable = self._homes.subscriptions.get(letter.name)
        if durable is not None and created_at(durable.identity) < created_at(letter.identity):
            self._lifecycle.retire(durable)
