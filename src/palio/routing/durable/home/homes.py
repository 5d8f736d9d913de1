"""The durable subscriptions that have their home at this broker, by name, and the changes of their filters."""

from __future__ import annotations

from palio.model.filter import Filter
from palio.protocol.durable.wishes import NotHome, NotTaker
from palio.routing.durable.home.subscription import Durable, State
from palio.routing.table import Entry


class FilterChange:
    """A change of a filter that is under way: the new one is known to the network beside the old one."""

    __slots__ = (
        "agreed",
        "asked",
        "asker",
        "entry",
        "filter",
        "handles",
        "number",
        "owner",
        "session",
        "writing",
    )

    def __init__(self, owner: Durable, filter: Filter, asker: str, number: int) -> None:
        self.owner = owner
        self.filter = filter
        self.asker = asker  # the session that asked for it, and the number of its request
        self.number = number
        self.entry: Entry[Filter] | None = None
        self.asked = False  # whether a wave has begun since, and the network is being asked
        self.agreed = 0  # the epoch in which everyone has answered
        self.writing = False
        self.session = ""
        self.handles: dict[str, None] = {}


class Homes:
    """Who is at home here. What happens to them is up to the other parts of a home."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, Durable] = {}
        self.changes: dict[str, FilterChange] = {}  # of filters, by the name of the subscription

    def of(self, session: str, name: str) -> Durable:
        """The subscription whose taker the session is. Raises `NotTaker`."""
        durable = self.subscriptions.get(name)
        if durable is None or durable.taker != session or durable.state is State.MOVING:
            raise NotTaker(name)
        return durable

    def named(self, name: str) -> Durable:
        """The subscription of that name, if this is its home. Raises `NotHome`."""
        durable = self.subscriptions.get(name)
        if durable is None or durable.state is State.MOVING:
            raise NotHome(name)
        return durable

    def filter_of(self, durable: Durable) -> Filter:
        """The filter that was wished for last: the one in force, or the one that is to take its place."""
        change = self.changes.get(durable.name)
        return durable.filter if change is None else change.filter

    def filter_to_write(self, durable: Durable) -> Filter:
        """A new filter that is being written must not be overwritten by the one before it."""
        change = self.changes.get(durable.name)
        return change.filter if change is not None and change.writing else durable.filter
