"""Considering: what a message will ask about filters is asked before it is handled, and remembered for it.

Handling a message is one step: nothing else happens in between. But reasoning about filters may take long, and
who is served next waits for it. So a shell that has other things to do calls `consider` first: it asks all that
handling the message will ask, and changes nothing else. It may be interrupted wherever effort is spent, and
other messages be handled meanwhile: what has come or gone by then is looked at when the message is handled.

A request of a client that asks more than it may (`TooHard`) is refused, before anything has changed. To place a
filter among others is no request of anybody: what cannot be compared in time counts as not covering, so that
nobody has to pay for what others have subscribed to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.effort import pause
from palio.model.errors import TooHard
from palio.model.filter import Filter
from palio.protocol import requests
from palio.protocol.durable.subscriptions import Attach, Change
from palio.protocol.inquiries import Watch
from palio.protocol.peers import Interest, Update
from palio.routing.clients import ClientRequests
from palio.routing.core import Core
from palio.routing.facts import Facts
from palio.routing.occurrences import PublishPart
from palio.routing.watching import Watching

Item = TypeVar("Item")

# Notifications of a batch that are looked at, or published, in one piece: about a millisecond.
AT_ONCE = 256


def in_pieces(several: tuple[Item, ...], sizes: Iterable[int], most: int) -> list[tuple[Item, ...]]:
    """A batch in pieces of at most `AT_ONCE` items and, but for a larger one alone, `most` bytes of them."""
    begins, total = [0], 0
    for place, size in enumerate(sizes):
        total += size
        if place and (total > most or place - begins[-1] >= AT_ONCE):
            begins.append(place)
            total = size
    return [several[begin:end] for begin, end in zip(begins, [*begins[1:], len(several)], strict=True)]


class Considering:
    """Asks ahead. What it finds out is kept by those who will want to know it."""

    def __init__(self, core: Core, facts: Facts, watching: Watching, clients: ClientRequests) -> None:
        self._core = core
        self._clients = clients
        self._facts = facts
        self._watching = watching
        self._handlers: dict[type, Callable[[str, Any], None]] = {
            requests.Subscribe: lambda session, message: self._wanted(session, message.filter),
            requests.Advertise: lambda session, message: self._advertised(message.advertisement),
            requests.Unsubscribe: lambda session, message: self._cancelled(session, message.filter),
            requests.Unadvertise: lambda session, message: self._cancelled(session, message.advertisement),
            Attach: lambda session, message: self._wanted(message.name, message.filter),
            Change: lambda session, message: self._wanted(message.name, message.filter),
            PublishPart: self._published,
            Watch: watching.consider,
            Update: lambda broker, message: self._told(message),
            Interest: lambda broker, message: self._told(message.update),
        }

    def consider(self, message: Any, source: str) -> None:
        """Asks what the message of a session or of a neighbour will ask. Raises `TooHard`, for sessions."""
        handler = self._handlers.get(type(message))
        if handler is not None:
            handler(source, message)

    def _published(self, session: str, message: PublishPart) -> None:
        """Looks whether a part of a large batch can be published: all are, before one of them is handled.

        Raises what is wrong.
        """
        self._clients.require_publishable(session, message.notifications)
        pause()

    def _wanted(self, name: str, filter: Filter | None) -> None:
        """Considers a filter of a session, or of a durable subscription of that name."""
        if filter is None:
            return
        hash(filter)
        if filter.contradiction is None:
            self._placed(self._core.scopes.narrow(name, filter))

    def _placed(self, filter: Filter) -> None:
        if filter.conjunctions and self._core.tables.orders:
            self._facts.filters.consider(filter)
        if self._core.tables.attracts:
            with suppress(TooHard):
                for other in list(self._core.tables.advertisements.table.entries()):
                    self._facts.overlap(other.item, filter)

    def _advertised(self, advertisement: Advertisement) -> None:
        hash(advertisement)
        if self._core.tables.attracts:
            if self._core.tables.orders:
                self._facts.advertisements.consider(advertisement)
            with suppress(TooHard):
                for other in list(self._core.tables.filters.table.entries()):
                    self._facts.overlap(advertisement, other.item)

    def _cancelled(self, session: str, item: Filter | Advertisement) -> None:
        self._core.sessions.consider_cancelling(session, item)

    def _told(self, update: Update) -> None:
        for _, filter in update.add:
            hash(filter)
            self._placed(filter)
        for _, advertisement in update.advertise:
            self._advertised(advertisement)
