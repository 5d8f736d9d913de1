"""The durable subscriptions that have their home at this broker, by name, and the changes of their filters."""

from __future__ import annotations

import msgspec

from palio.model.filter import Filter
from palio.protocol.durable.wishes import NotHome, NotTaker
from palio.routing.durable.home.subscription import Durable, HomeState, Siblings
from palio.routing.scopes import owner_of
from palio.routing.table import TableEntry


class FilterChange(msgspec.Struct, eq=False):
    """A change of a filter that is under way: the new one is known to the network beside the old one."""

    owner: Durable
    filter: Filter
    asker: str  # the session that asked for it, and the number of its request
    number: int
    entry: TableEntry[Filter] | None = None
    asked: bool = False  # whether a wave has begun since, and the network is being asked
    agreed: int = 0  # the epoch in which everyone has answered
    writing: bool = False
    session: str = ""
    handles: dict[str, None] = {}


class Homes:
    """Who is at home here. What happens to them is up to the other parts of a home."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, Durable] = {}
        self._by_owner: dict[str, Siblings] = {}
        self.changes: dict[str, FilterChange] = {}  # of filters, by the name of the subscription

    def add(self, durable: Durable) -> None:
        siblings = self._by_owner.setdefault(owner_of(durable.name), Siblings())
        if durable.name not in self.subscriptions:
            siblings.count += 1
        durable.siblings = siblings
        self.subscriptions[durable.name] = durable

    def remove(self, durable: Durable) -> None:
        del self.subscriptions[durable.name]
        durable.siblings.count -= 1
        if not durable.siblings.count:
            del self._by_owner[owner_of(durable.name)]

    def of(self, session: str, name: str) -> Durable:
        """The subscription whose taker the session is. Raises `NotTaker`."""
        durable = self.subscriptions.get(name)
        if durable is None or durable.taker != session or durable.state is HomeState.MOVING:
            raise NotTaker(name)
        return durable

    def named(self, name: str) -> Durable:
        """The subscription of that name, if this is its home. Raises `NotHome`."""
        durable = self.subscriptions.get(name)
        if durable is None or durable.state is HomeState.MOVING:
            raise NotHome(name)
        return durable

    def read(self, origin: str, readers: set[str]) -> tuple[tuple[str, int, str], ...]:
        """How far these have read a journal, as that is on disk here; what may be a copy speaks for nobody."""
        here = [one for one in self.subscriptions.values() if one.identity in readers and not one.unconfirmed]
        return tuple(
            [
                (one.identity, *one.stored_position[origin])
                for one in here
                if one.state is not HomeState.STORING and origin in one.stored_position
            ]
        )

    def filter_of(self, durable: Durable) -> Filter:
        """The filter that was wished for last: the one in force, or the one that is to take its place."""
        change = self.changes.get(durable.name)
        return durable.filter if change is None else change.filter

    def filter_to_write(self, durable: Durable) -> Filter:
        """A new filter that is being written must not be overwritten by the one before it."""
        change = self.changes.get(durable.name)
        return change.filter if change is not None and change.writing else durable.filter
