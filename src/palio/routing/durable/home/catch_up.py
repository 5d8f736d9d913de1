"""Catching up: durable subscriptions are brought up to date, and filters are changed, when all have answered.

See `subscription` for how a subscription becomes live. A new filter takes the place of the old one at a
position that all origins have agreed on: up to there the old one gets everything, from there on the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from palio.model.filter import Filter
from palio.protocol.durable.letters import Fetch, Page
from palio.protocol.durable.peers import Head
from palio.protocol.durable.subscriptions import Changed, DurableReady
from palio.routing.durable.effects import Spool
from palio.routing.durable.home.spool import Change, Spooling
from palio.routing.durable.home.subscription import CatchUp, Durable, State

# A new subscription that begins with what is published from now on has this for the time of its beginning,
# until its position is known.
FROM_NOW = -1.0


class CatchingUp(Spooling):
    """The durable subscriptions here, as far as history and changes go."""

    def behind(self) -> list[Durable]:
        """Those that are to be brought up to date, and have room for it."""
        return [
            durable
            for durable in self.subscriptions.values()
            if durable.state is State.BEHIND and self._is_half_empty(durable)
        ]

    def begin_asking(self, names: Iterable[str]) -> None:
        """A wave begins: what it will say is true of the filters that are there now."""
        for name in names:
            if name in self._changes:
                self._changes[name].asked = True

    def collect(self, names: Iterable[str]) -> None:
        """Everyone is asked how far the journals are: from now on nothing that comes live may be missed."""
        for name in names:
            durable = self.subscriptions.get(name)
            if durable is not None and durable.state is State.BEHIND:
                durable.collecting = {}

    def readers(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """By what the journals know those of the subscriptions that are still here: identities and names."""
        return tuple(
            [(self.subscriptions[name].identity, name) for name in names if name in self.subscriptions]
        )

    def complete(self, names: Iterable[str], epoch: int, heads: tuple[Head, ...], *, everyone: bool) -> None:
        """Everyone in reach knows the filters, and how far the journals are is known, in one epoch.

        With `everyone`, these are all brokers that were ever heard of: none of them trims what we need.
        """
        for name in names:
            durable = self.subscriptions.get(name)
            if durable is None or durable.state is not State.BEHIND:
                continue
            if durable.collecting is None or (name in self._changes and not self._changes[name].asked):
                # It is another one of that name, or its filter was changed meanwhile: the answers say nothing
                # about these.
                durable.collecting = None
                self._wake()
                continue
            durable.epoch = epoch
            durable.go("complete")
            first = durable.since == FROM_NOW
            collected, durable.collecting = durable.collecting, None
            # Another filter comes into force at a position that all origins have agreed on, or not yet.
            changing = everyone and name in self._changes
            if changing:
                self._changes[name].agreed = epoch
            for head in heads:
                origin = head.origin
                known = durable.position.setdefault(origin, head.head if first else head.begins)
                durable.position[origin] = max(known, head.begins)
                catching_up = collected.get(origin) or CatchUp(head.head)
                catching_up.reach(head.head)
                if durable.position[origin] < catching_up.target or catching_up.buffer or changing:
                    durable.catching_up[origin] = catching_up
            if first:
                durable.since = 0.0
            if first or not durable.ready_told or durable.position != durable.written_position:
                self._save_beginning(durable, everyone)
            for origin in list(durable.catching_up):
                if origin in durable.catching_up:  # a full outbox may have ended it all
                    self._fetch_next(durable, origin)

    def _save_beginning(self, durable: Durable, everyone: bool) -> None:
        """From where on everything comes is written before anybody relies on it."""
        position = dict(durable.position)
        durable.written_position.update(position)

        def stored() -> None:
            durable.stored_position.update(position)
            if everyone and durable.state is State.LIVE and not durable.ready_told:
                durable.ready_told = True
                if durable.taker is not None:
                    self._desk.answer(durable.taker, DurableReady(durable.name))

        self._write_beginning(durable, tuple(position.items()), stored)

    def save_filter(self, durable: Durable) -> None:
        """Write what goes with the filter: how long the subscription lingers, how it is tried again."""
        self._write_beginning(durable, (), None)

    def _write_beginning(
        self, durable: Durable, position: tuple[tuple[str, int], ...], then: Callable[[], None] | None
    ) -> None:
        self._desk.effects.append(
            Spool(
                self._desk.token(then),
                durable.name,
                self.filter_to_write(durable),
                durable.identity,
                durable.generation,
                durable.since,
                position=position,
                linger=durable.linger,
                retry=durable.retry,
            )
        )

    def filter_to_write(self, durable: Durable) -> Filter:
        """A new filter that is being written must not be overwritten by the one before it."""
        change = self._changes.get(durable.name)
        return change.filter if change is not None and change.writing else durable.filter

    def _fetch_next(self, durable: Durable, origin: str) -> None:
        """Ask for the next page, or go on with what comes live if nothing is missing."""
        catching_up = durable.catching_up[origin]
        after = durable.position[origin]
        if after < catching_up.target:
            catching_up.limit = 0
            limit = min(self._desk.settings.page, self._room(durable))
            catching_up.asked_at = self._desk.now
            if not limit:  # what other origins were asked for will take all the room, or the outbox is full
                if not any(other.limit for other in durable.catching_up.values()):
                    self._no_room(durable)
                return
            catching_up.limit = limit
            narrow = self._desk.scopes.narrow(durable.name, durable.filter)
            self._fetching[durable.identity] = durable.name
            fetch = Fetch(durable.identity, narrow, after, catching_up.target, durable.since, limit)
            self._fetch(origin, fetch)
            return
        change = self._changes.get(durable.name)
        if change is None or change.agreed != durable.epoch:
            del durable.catching_up[origin]
            self._drain(durable, catching_up)
        elif all(durable.position[o] >= one.target for o, one in durable.catching_up.items()):
            self._write_change(durable, change)

    def fetched(self, origin: str, page: Page) -> None:
        """A page came."""
        durable = self._fetcher(page)
        if durable is None or durable.state is not State.LIVE:
            return
        catching_up = durable.catching_up.get(origin)
        if catching_up is None or page.after != durable.position[origin] or page.upto <= page.after:
            return
        catching_up.failing_since = None
        durable.position[origin] = page.upto
        catching_up.limit = 0
        if page.envelopes:
            self._spool(durable, durable.not_known(origin, page.envelopes), origin)
        if durable.state is State.LIVE:
            self._fetch_next(durable, origin)

    def _fetcher(self, page: Page) -> Durable | None:
        """The subscription that a page is for, if it is still here."""
        durable = self.subscriptions.get(self._fetching.get(page.reader, ""))
        return durable if durable is not None and durable.identity == page.reader else None

    def fetch_again(self) -> bool:
        """Ask again for pages that did not come. Returns whether any are missing."""
        missing = False
        for durable in self.subscriptions.values():
            for origin, catching_up in list(durable.catching_up.items()):
                missing = True
                if origin not in durable.catching_up:
                    break  # a full outbox has ended it all
                asked = catching_up.asked_at
                if asked is not None and asked + self._desk.settings.tick <= self._desk.now:
                    self._fetch_next(durable, origin)
        return missing

    def _drain(self, durable: Durable, catching_up: CatchUp) -> None:
        """Take what waited in the buffer."""
        waiting = [envelope for envelope in catching_up.buffer if durable.filter.matches(envelope.notification)]
        room = self._room(durable)
        taken = [envelope for envelope in waiting[:room] if durable.take(envelope)]
        if taken:
            self._spool(durable, taken)
        if len(waiting) > room:
            self._no_room(durable)

    # Changing the filter

    def filter_of(self, durable: Durable) -> Filter:
        """The filter that was wished for last: the one in force, or the one that is to take its place."""
        change = self._changes.get(durable.name)
        return durable.filter if change is None else change.filter

    def change(self, session: str, name: str, filter: Filter, number: int = 0) -> None:
        """Let another filter take the place of the present one, at a position that the network agrees on."""
        durable = self.of(session, name)
        filter.require_satisfiable()
        self._end_change(durable)
        change = self._changes[name] = Change(durable, filter, session, number)
        self._hold(change, filter, name)
        durable.interrupt()
        self._wake()

    def _write_change(self, durable: Durable, change: Change) -> None:
        """The old filter has everything up to the agreed position: the new one is in force from there on."""
        if change.writing:
            return
        change.writing = True
        position = dict(durable.position)

        def stored() -> None:
            durable.stored_position.update(position)
            if self._changes.get(durable.name) is change:
                self._changed(durable, change)

        self._desk.effects.append(
            Spool(
                self._desk.token(stored),
                durable.name,
                change.filter,
                durable.identity,
                durable.generation,
                durable.since,
                position=tuple(position.items()),
                linger=durable.linger,
                retry=durable.retry,
            )
        )

    def _changed(self, durable: Durable, change: Change) -> None:
        former = durable.filter
        durable.filter = change.filter
        self._hold(durable, change.filter, durable.name)
        self._end_change(durable)
        if durable.taker is not None:
            drops, adds = change.filter.counterexample(former), former.counterexample(change.filter)
            self._desk.answer(
                durable.taker,
                Changed(
                    durable.name,
                    drops.to_json() if drops else None,
                    adds.to_json() if adds else None,
                    durable.filter,
                    number=change.number if durable.taker == change.asker else 0,
                ),
            )
        for origin, catching_up in list(durable.catching_up.items()):
            if origin in durable.catching_up and durable.position[origin] >= catching_up.target:
                del durable.catching_up[origin]
                self._drain(durable, catching_up)

    def _end_change(self, durable: Durable) -> None:
        change = self._changes.pop(durable.name, None)
        if change is not None and change.entry is not None:
            self._filters.let_go(change.entry, change)
