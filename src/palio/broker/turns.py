"""`Turns`: whose turn it is, by what everyone has cost so far: fair queueing of principals, then of sessions.

A broker does one thing at a time, and many ask for something. What each asks for waits in a queue of its own,
and who has work is *ready*. Next is, of the principals that are ready, the one that has cost least so far, and
of its sessions the one that has. Whoever asks for little is therefore next as soon as the present turn is over,
however much others ask for, and whoever opens a hundred connections gets no more than with one.

What somebody has cost is compared from where both began to ask: who comes, or comes back, begins at the cost
of those who are being served then (`_floor`). Else, who had been quiet for a day would keep everybody waiting.

Invariants, to which tests refer:

1. Of two principals that are ready all the time, the costs differ by no more than the dearest turn of either,
   by their weights. So do those of two sessions of one principal.
2. Who has cost less than everyone who is ready, and becomes ready, has the next turn.
3. Nobody who is ready waits for ever, whatever others do.
4. Nothing is remembered of who is not ready and owes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Generic, TypeVar

Client = TypeVar("Client", bound=Hashable)

# Who owes something and is not ready is looked through when there are so many of them.
_MANY = 1_024


class _Queueing(Generic[Client]):
    """Those who are ready at one level, by what they have cost; and what those owe who are not."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Client]] = []
        self.ready: dict[Client, int] = {}  # with the number of its entry: older ones do not count
        self._cost: dict[Client, float] = {}
        self._served: set[Client] = set()  # whose turn it is now
        self._numbers = count()
        self._floor = 0.0

    def __len__(self) -> int:
        return len(self.ready)

    def __contains__(self, client: object) -> bool:
        """Whether it has work, or has cost something."""
        return client in self._cost

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of anybody."""
        return not self._cost

    def add(self, client: Client) -> None:
        if not self.ready and not self._served:  # nobody waits for anybody: what was is forgotten
            self._heap.clear()
            self._cost.clear()
            self._floor = 0.0
        if client not in self.ready:
            cost = self._cost[client] = max(self._floor, self._cost.get(client, 0.0))
            number = self.ready[client] = next(self._numbers)
            heappush(self._heap, (cost, number, client))

    def first(self) -> Client:
        """The one that has cost least: its turn begins, and ends when it is charged. It stays ready."""
        cost, client = self._cheapest()
        self._floor = max(self._floor, cost)
        self._served.add(client)
        return client

    def _cheapest(self) -> tuple[float, Client]:
        while True:
            cost, number, client = self._heap[0]
            if self.ready.get(client) == number:
                return cost, client
            heappop(self._heap)

    def would_be_first(self, client: Client) -> bool:
        """Whether one that is not ready has cost less than all that are."""
        return client not in self.ready and self._cost.get(client, inf) < self._cheapest()[0]

    def remove(self, client: Client) -> None:
        """It is not ready any more; its entry in the heap is passed over when it comes to it."""
        self.ready.pop(client, None)

    def charge(self, client: Client, cost: float) -> None:
        total = self._cost[client] = max(self._floor, self._cost.get(client, 0.0)) + cost
        self._served.discard(client)
        if client in self.ready:
            number = self.ready[client] = next(self._numbers)
            heappush(self._heap, (total, number, client))
        elif len(self._cost) - len(self.ready) > _MANY:
            floor, ready = self._floor, self.ready
            self._cost = {one: owed for one, owed in self._cost.items() if owed > floor or one in ready}

    def forget(self, client: Client) -> None:
        self.remove(client)
        self._served.discard(client)
        self._cost.pop(client, None)


class Turns(Generic[Client]):
    """Clients in the order of their turns. A client belongs to an owner, and has all of its life to one."""

    def __init__(self) -> None:
        self._owners: _Queueing[Hashable] = _Queueing()
        self.owners = self._owners.ready.keys()  # those who have a client that is ready, and are not held back
        self._clients: dict[Hashable, _Queueing[Client]] = {}
        self.held: set[Hashable] = set()  # owners and clients
        self._waiting: dict[Client, Hashable] = {}  # clients that are held back and ready, with their owners

    def __len__(self) -> int:
        """How many owners have a client that is ready, and are not held back."""
        return len(self._owners)

    def ready(self, client: Client, owner: Hashable) -> None:
        """A client has something to be done."""
        if client in self.held:
            self._waiting[client] = owner
            return
        clients = self._clients.get(owner)
        if clients is None:
            clients = self._clients[owner] = _Queueing()
        clients.add(client)
        if owner not in self.held:
            self._owners.add(owner)

    def next(self) -> tuple[Client, Hashable] | None:
        """Whose turn it is, which is not ready from then on, and its owner. None if nobody is ready."""
        if not len(self._owners):
            return None
        owner = self._owners.first()
        clients = self._clients[owner]
        client = clients.first()
        clients.remove(client)
        if not len(clients):
            self._owners.remove(owner)
        return client, owner

    def charge(self, client: Client, owner: Hashable, cost: float, weight: float = 1.0) -> None:
        """A turn is over, and has cost something; a principal of more weight may cost as many times more.

        Who has more to be done says so (`ready`) before.
        """
        self._owners.charge(owner, cost / weight)
        clients = self._clients.get(owner)
        if clients is not None:
            clients.charge(client, cost)

    def owe(self, whom: Any, cost: float) -> None:
        """Charge an owner, or one client, with what was done because of it in a turn that was not its own."""
        if whom in self._clients:
            self._owners.charge(whom, cost)
        for clients in self._clients.values():
            if whom in clients:
                clients.charge(whom, cost)

    def would_be_first(self, owner: Hashable) -> bool:
        """Whether an owner that is not ready, nor held back, has cost less than all that are; some are."""
        return owner not in self.held and self._owners.would_be_first(owner)

    def hold(self, whom: Hashable) -> None:
        """Let all clients of an owner, or one client, wait until they are released, whatever is to be done."""
        self.held.add(whom)
        self._owners.remove(whom)

    def release(self, whom: Hashable) -> None:
        """Who was held back takes part again."""
        self.held.discard(whom)
        if len(self._clients.get(whom, ())):
            self._owners.add(whom)
        if whom in self._waiting:
            self.ready(whom, self._waiting.pop(whom))

    def leave(self, client: Client, owner: Hashable) -> None:
        """A client is gone, with what it had to be done."""
        self.held.discard(client)
        self._waiting.pop(client, None)
        clients = self._clients.get(owner)
        if clients is not None:
            clients.forget(client)
            if not len(clients):
                self._owners.remove(owner)
            if clients.is_empty:
                del self._clients[owner]
