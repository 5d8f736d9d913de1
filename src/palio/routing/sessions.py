"""Sessions: what each client of a broker has subscribed and advertised.

A session holds a filter at most once; the handles by which the client calls it are counted by name. Releasing
the last one ends the subscription. `unsubscribe` goes by covering, as in Siena: it ends all subscriptions of
the session that its filter covers, whatever their handles, and nothing else; the narrower ones that stay are
in force without further ado, because the broker keeps every subscription. So it is with advertisements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.effort import COMPARISON, spend
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.routing.deferred import DeferredWork
from palio.routing.scopes import Scopes, not_seen, owner_of
from palio.routing.table import TableEntry
from palio.routing.tables import Side, Tables


class NoSession(PalioError):
    """A request in a session that was not opened, or is closed."""

    session: str
    sentence = "There is no open session {session!r}; open it first."


class UnknownHandle(PalioError):
    """A handle that the session does not have."""

    handle: str
    sentence = "This session has no subscription or advertisement {handle!r}."


class HandleInUse(PalioError):
    """A handle that names something else already."""

    handle: str
    sentence = "The handle {handle!r} names something else in this session; release it first."


class NotAdvertised(PalioError):
    """A notification that none of the publisher's advertisements covers."""

    position: int
    sentence = (
        "No advertisement of this session covers notification {position} of the request; advertise it first. "
        "Nothing of the request was published."
    )


# Bytes of a form that count as one subscription: all that one client may have then fits into what a new
# neighbour is told at once.
WEIGHT = 1_024
# What a filter or an advertisement takes in memory, with its place in table, order and index: for itself, for
# each of its conjunctions, and for each byte of its form. Measured with plain ones, texts, lists and large
# ones.
_ITSELF, _CONJUNCTION, _BYTE = 3_072, 3_072, 24


def memory_of(item: Filter | Advertisement) -> int:
    """About how many bytes a broker needs to hold a filter or an advertisement."""
    conjunctions = len(item.conjunctions) if isinstance(item, Filter) else 1
    return _ITSELF + _CONJUNCTION * conjunctions + _BYTE * len(item.form)


class SessionEntry:
    """A filter or an advertisement that a session holds, with the handles by which the client calls it.

    The entry is for what of it the session may see; there is none while that is nothing.
    """

    __slots__ = ("entry", "handles", "item", "session")

    entry: TableEntry[Any] | None

    def __init__(self, session: str, item: Filter | Advertisement) -> None:
        self.session = session
        self.item = item
        self.handles: dict[str, None] = {}


class RouterSession(msgspec.Struct, eq=False):
    """What one client has subscribed and advertised, by content and by handle."""

    name: str
    heavy: int = 0  # in units of `WEIGHT`: what its filters and advertisements have beyond the first
    held: dict[Filter | Advertisement, SessionEntry] = {}
    handles: dict[str, SessionEntry] = {}
    published: list[int] = []  # the sequences of a request that is published in parts
    # What was considered last: what is to be cancelled, and all that it covers.
    covered: tuple[Filter | Advertisement, list[SessionEntry]] | None = None


class Sessions:
    """All sessions of a broker. Errors are raised before anything has changed."""

    def __init__(self, tables: Tables, scopes: Scopes, deferred: DeferredWork) -> None:
        self._tables = tables
        self._scopes = scopes
        self._deferred = deferred
        self._sessions: dict[str, RouterSession] = {}
        self.kept: Counter[str] = Counter()  # bytes, about, by owner

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, name: str) -> None:
        """Begin a session; one that is open stays as it is."""
        self._sessions.setdefault(name, RouterSession(name))

    def close(self, name: str) -> None:
        """End a session with all that it holds. It need not be open."""
        session = self._sessions.pop(name, None)
        if session is not None:
            for held in session.held.values():
                held.handles = {}  # nothing is delivered for it any more
            self._deferred.add(owner_of(name), self._letting_go(list(session.held.values())))

    def get(self, name: str) -> RouterSession:
        """The open session of that name. Raises `NoSession`."""
        session = self._sessions.get(name)
        if session is None:
            raise NoSession(name)
        return session

    def count(self, name: str) -> int:
        """How many handles a session has, where what is large counts as several; none if it is not open."""
        session = self._sessions.get(name)
        return 0 if session is None else len(session.handles) + session.heavy

    def has(self, name: str, handle: str) -> bool:
        """Whether the session is open and the handle names something."""
        session = self._sessions.get(name)
        return session is not None and handle in session.handles

    def hold(self, name: str, handle: str, item: Filter | Advertisement) -> bool:
        """Subscribe or advertise. Returns whether the session did not hold that already.

        Raises `NoSession`, `ContradictoryFilter`, `FilterTooLarge`, `NotAllowed` or `HandleInUse`.
        """
        session = self.get(name)
        if isinstance(item, Filter):
            item.require_satisfiable()
        held = session.held.get(item)
        known = session.handles.get(handle)
        if known is not None and known is not held:
            raise HandleInUse(handle)
        fresh = held is None
        if held is None:
            routed = self._visible(name, item) if isinstance(item, Filter) else item
            if routed is None:
                raise not_seen(name, "subscribe to this")
            session.heavy += len(item.form) // WEIGHT
            held = session.held[item] = SessionEntry(name, item)
            held.entry = self._side(item).hold(routed, held)
            self.kept[owner_of(name)] += memory_of(item)
        held.handles[handle] = None
        session.handles[handle] = held
        return fresh

    def release(self, name: str, handle: str) -> None:
        """Give one handle back. Raises `NoSession` or `UnknownHandle`."""
        session = self.get(name)
        held = session.handles.pop(handle, None)
        if held is None:
            raise UnknownHandle(handle)
        del held.handles[handle]
        if not held.handles:
            del session.held[held.item]
            session.heavy -= len(held.item.form) // WEIGHT
            self._let_go(held)

    def cancel(self, name: str, item: Filter | Advertisement) -> tuple[str, ...]:
        """End all of its kind that the item covers. Returns the handles that ended. Raises `NoSession`."""
        session = self.get(name)
        self.consider_cancelling(name, item)
        covered, session.covered = session.covered, None
        assert covered is not None
        handles: list[str] = []
        for held in covered[1]:
            handles += held.handles
            for handle in held.handles:
                del session.handles[handle]
            held.handles = {}
            del session.held[held.item]
            session.heavy -= len(held.item.form) // WEIGHT
        self._deferred.add(owner_of(name), self._letting_go(covered[1]))
        return tuple(handles)

    def consider_cancelling(self, name: str, item: Filter | Advertisement) -> None:
        """Find out which of its kind the item covers, for `cancel`: what a session holds only it can change.

        May be interrupted wherever effort is spent. Raises `TooHard`.
        """
        session = self._sessions.get(name)
        if session is None or (session.covered is not None and session.covered[0] is item):
            return
        covers: Callable[[Any], bool] = item.covers
        covered = []
        for held in list(session.held.values()):
            if type(held.item) is type(item):
                spend(COMPARISON)
                if covers(held.item):
                    covered.append(held)
        session.covered = item, covered

    def require_advertised(self, name: str, notifications: tuple[Notification, ...]) -> None:
        """Raises `NotAdvertised` for the first notification that the session has not advertised."""
        advertised = [item for item in self.get(name).held if isinstance(item, Advertisement)]
        for position, notification in enumerate(notifications):
            if not any(one.covers(notification) for one in advertised):
                raise NotAdvertised(position)

    def scope_changed(self, owner: str) -> None:
        """Tell the network anew of what an owner's sessions want; what is new before what goes."""
        for name, session in self._sessions.items():
            if owner_of(name) == owner:
                for held in session.held.values():
                    if isinstance(held.item, Filter):
                        former, routed = held.entry, self._visible(name, held.item)
                        if former is not None and former.item == routed:
                            continue
                        held.entry = None if routed is None else self._tables.filters.hold(routed, held)
                        if former is not None:
                            self._tables.filters.let_go(former, held)

    def _visible(self, name: str, filter: Filter) -> Filter | None:
        """What the network is told of a filter; None if it selects nothing that the session may see."""
        narrow = self._scopes.narrow(name, filter)
        return narrow if narrow.conjunctions else None

    def _letting_go(self, several: list[SessionEntry]) -> Iterator[None]:
        for held in several:
            self._let_go(held)
            yield

    def _let_go(self, held: SessionEntry) -> None:
        self.kept[owner_of(held.session)] -= memory_of(held.item)
        if held.entry is not None:
            self._side(held.item).let_go(held.entry, held)

    def _side(self, item: Filter | Advertisement) -> Side[Any]:
        return self._tables.filters if isinstance(item, Filter) else self._tables.advertisements
