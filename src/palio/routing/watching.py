"""Watches: whether anybody wants what an advertisement describes, and when that changes.

For each advertisement that is watched, the broker counts the filters of its table that overlap it: those of its
own sessions and durable subscriptions, and those that came from neighbours; where owners have rights, as far as
the one who watches may publish it. All is counted once, when the first watch of it begins; then only what
enters or leaves the table is looked at. Who watches is told when a message has been dealt with altogether, so a
filter that takes the place of another one is no news.

A broker cannot know everything. Some neighbours get every notification, whatever they want (a master, or
everyone where notifications are flooded): as long as there is one, somebody may want it. And with
advertisements, filters come only towards who advertises what they select: who watches has to advertise it, too.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.inquiries import Wanted, Watch
from palio.routing.configuration import Strategy
from palio.routing.core import Core
from palio.routing.effects import Reply
from palio.routing.scopes import SEPARATOR, owner_of
from palio.routing.sessions import HandleInUse
from palio.routing.table import TableEntry

# Each different advertisement that is watched costs a comparison for every filter that comes or goes.
MAX_WATCHES_PER_SESSION = 64


class TooManyWatches(PalioError):
    """A session watches too much."""

    limit: int
    sentence = "This session watches {limit} advertisements already, which is the limit; release one."


class _Watched(msgspec.Struct, eq=False):
    """An advertisement that somebody watches: how many filters overlap it, and who was told what."""

    advertisement: Advertisement
    count: int
    told: dict[tuple[str, str], bool] = {}  # by session and handle


class Watching:
    """All that is watched at one broker."""

    def __init__(self, core: Core, overlap: Callable[[Advertisement, Filter], bool]) -> None:
        self._core = core
        self._overlap = overlap
        self._scopes = core.scopes
        self._watched: dict[tuple[str, Advertisement], _Watched] = {}  # by owner, who may publish what it may
        self._sessions: dict[str, dict[str, Advertisement]] = {}  # by session and handle
        self._changed = False

    def watch(self, session: str, message: Watch) -> None:
        """Begins a watch. Raises `NoSession`, `HandleInUse` or `TooManyWatches`."""
        self._core.sessions.get(session)
        handle, advertisement = message.handle, message.advertisement
        mine = self._sessions.get(session, {})
        if self._core.sessions.has(session, handle) or mine.get(handle, advertisement) != advertisement:
            raise HandleInUse(handle)
        if handle not in mine and len(mine) >= MAX_WATCHES_PER_SESSION:
            raise TooManyWatches(MAX_WATCHES_PER_SESSION)
        key = self._key(session, advertisement)
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _Watched(advertisement, self._count(session, advertisement))
            self._core.tables.filters.noticed = self._noticed
        self._sessions.setdefault(session, {})[handle] = advertisement
        wanted = watched.told[session, handle] = self._wanted(watched)
        self._core.effects.append(Reply(session, Wanted(handle, wanted, number=message.number)))

    def has(self, session: str, handle: str) -> bool:
        """Whether a session watches something by that handle."""
        return handle in self._sessions.get(session, ())

    def release(self, session: str, handle: str) -> None:
        mine = self._sessions[session]
        advertisement = mine.pop(handle)
        if not mine:
            del self._sessions[session]
        key = self._key(session, advertisement)
        watched = self._watched[key]
        del watched.told[session, handle]
        if not watched.told:
            del self._watched[key]
            if not self._watched:
                self._core.tables.filters.noticed = None

    def session_closed(self, session: str) -> None:
        for handle in list(self._sessions.get(session, ())):
            self.release(session, handle)

    def scope_changed(self, owner: str) -> None:
        """Handles a change of rights: count anew what the owner watches."""
        for (one, advertisement), watched in self._watched.items():
            if one == owner:
                watched.count = self._count(owner + SEPARATOR, advertisement)
                self._changed = True

    def links_changed(self) -> None:
        """Handles that there may be other neighbours that get everything."""
        self._changed = bool(self._watched)

    def settle(self) -> None:
        """Tells those who watch something that the message just handled has changed."""
        if not self._changed:
            return
        self._changed = False
        for watched in self._watched.values():
            wanted = self._wanted(watched)
            for (session, handle), told in watched.told.items():
                if told is not wanted:
                    watched.told[session, handle] = wanted
                    self._core.effects.append(Reply(session, Wanted(handle, wanted)))

    def _wanted(self, watched: _Watched) -> bool:
        if watched.count or self._core.forwarding.takes_all:
            return True
        flooding = self._core.configuration.strategy is Strategy.FLOODING
        return flooding and bool(self._core.graph_links)

    def _key(self, session: str, advertisement: Advertisement) -> tuple[str, Advertisement]:
        return owner_of(session) if self._scopes.on else "", advertisement

    def _count(self, name: str, advertisement: Advertisement) -> int:
        entries = self._core.tables.filters.table.entries()
        return sum([self._is_wanted(name, advertisement, entry.item) for entry in entries])

    def _is_wanted(self, name: str, advertisement: Advertisement, filter: Filter) -> bool:
        """Whether a filter selects something that is advertised, and that its owner may publish."""
        return self._overlap(advertisement, self._scopes.wanted(name, filter))

    def _noticed(self, entry: TableEntry[Filter], step: int) -> None:
        """Handles a filter that has entered the table, or left it."""
        for (owner, advertisement), watched in self._watched.items():
            if self._is_wanted(owner + SEPARATOR, advertisement, entry.item):
                watched.count += step
                self._changed = True
