"""Watches: whether anybody wants what an advertisement describes, and when that changes.

For each advertisement that is watched, the broker counts the filters of its table that overlap it: those of its
own sessions and durable subscriptions, and those that came from neighbours; where owners have rights, as far as
the one who watches may publish it. All is counted once, when the first watch of it begins; then only what
enters or leaves the table is looked at, which is work for the one who watches, and not for the one who
subscribes. Who watches is told when all of that has been dealt with, so a filter that takes the place of
another one is no news.

A broker cannot know everything. Some neighbours get every notification, whatever they want (a master, or
everyone where notifications are flooded): as long as there is one, somebody may want it. And with
advertisements, filters come only towards who advertises what they select: who watches has to advertise it, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.effort import COMPARISON, spend
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
    coming: deque[tuple[Filter, int]] = msgspec.field(default_factory=deque)  # filters to be looked at, 1 or -1


class Watching:
    """All that is watched at one broker."""

    def __init__(self, core: Core, overlap: Callable[[Advertisement, Filter], bool]) -> None:
        self._core = core
        self._overlap = overlap
        self._scopes = core.scopes
        self._watched: dict[tuple[str, Advertisement], _Watched] = {}  # by owner, who may publish what it may
        self._sessions: dict[str, dict[str, Advertisement]] = {}  # by session and handle
        self._changed = False
        # What was considered: answers by identity, with the filters, so that they stay what they are.
        self._considered: dict[tuple[str, Advertisement], dict[int, tuple[Filter, bool]]] = {}

    def consider(self, session: str, message: Watch) -> None:
        """Find out which filters a new watch counts, for `watch`. May be interrupted; raises `TooHard`."""
        key = self._key(session, message.advertisement)
        if key not in self._watched and key not in self._considered:
            answers: dict[int, tuple[Filter, bool]] = {}
            for entry in list(self._core.tables.filters.table.entries()):
                spend(COMPARISON)
                wanted = self._is_wanted(session, message.advertisement, entry.item)
                answers[id(entry.item)] = entry.item, wanted
            self._considered.clear()  # of others it is forgotten: they have gone, or ask again
            self._considered[key] = answers

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
            answers = self._considered.pop(key, {})
            watched = self._watched[key] = _Watched(advertisement, self._count(session, advertisement, answers))
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
                watched.count = self._count(owner + SEPARATOR, advertisement, {})
                watched.coming.clear()
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
            if watched.coming:
                continue
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

    def _count(
        self, name: str, advertisement: Advertisement, answers: Mapping[int, tuple[Filter, bool]]
    ) -> int:
        count = 0
        for entry in self._core.tables.filters.table.entries():
            known = answers.get(id(entry.item))
            count += self._is_wanted(name, advertisement, entry.item) if known is None else known[1]
        return count

    def _is_wanted(self, name: str, advertisement: Advertisement, filter: Filter) -> bool:
        """Whether a filter selects something that is advertised, and that its owner may publish."""
        return self._overlap(advertisement, self._scopes.wanted(name, filter))

    def _noticed(self, entry: TableEntry[Filter], step: int) -> None:
        """Handles a filter that has entered the table, or left it."""
        for (owner, advertisement), watched in self._watched.items():
            watched.coming.append((entry.item, step))
            if len(watched.coming) == 1:
                self._core.deferred.add(owner, self._looking(owner, advertisement, watched))

    def _looking(self, owner: str, advertisement: Advertisement, watched: _Watched) -> Iterator[None]:
        while watched.coming:
            filter, step = watched.coming[0]
            if self._is_wanted(owner + SEPARATOR, advertisement, filter):
                watched.count += step
            watched.coming.popleft()
            self._changed = True
            yield
