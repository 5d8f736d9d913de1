"""Requests of clients: subscribing, advertising, publishing and all else that a session asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palio.matching import MatchIndex
from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol import requests
from palio.protocol.envelope import Envelope
from palio.protocol.subjects import subject_of
from palio.routing.core import Core
from palio.routing.effects import Reply
from palio.routing.inquiry_routing import InquiryRouting
from palio.routing.occurrences import Close, Open, PublishPart
from palio.routing.sessions import HandleInUse, RouterSession


class NoJournal(PalioError):
    """A request about durable subscriptions at a broker that has none."""

    def __init__(self) -> None:
        super().__init__("This broker keeps no journal, so it has no durable subscriptions; start it with one.")


class ClientRequests:
    """Handles what sessions ask of a router."""

    def __init__(self, core: Core, asking: InquiryRouting) -> None:
        self._core = core
        self._reader = MatchIndex()
        self._asking = asking
        self._sequence = 0
        self._handlers: dict[type, Callable[[str, Any], object]] = {
            Open: lambda session, message: self._core.sessions.open(session),
            Close: self._on_close,
            requests.Subscribe: lambda session, message: self._hold(session, message, message.filter),
            requests.Advertise: self._on_advertise,
            requests.Release: self._on_release,
            requests.Unsubscribe: lambda session, message: self._cancel(session, message, message.filter),
            requests.Unadvertise: lambda session, message: self._cancel(
                session, message, message.advertisement
            ),
            requests.Publish: self._on_publish,
            PublishPart: self._on_part,
            **asking.handlers,
        }
        if core.durable is not None:
            self._handlers |= core.durable.handlers

    def handle(self, kind: type, message: Any, session: str) -> None:
        """Handles a request of a session. What is wrong with it is answered, and changes nothing.

        It is of a session that is open: all that is remembered of sessions, by whatever part of the router, is
        of such, and forgotten when they close.
        """
        try:
            if kind is not Open and kind is not Close:
                self._core.sessions.get(session)
            handler = self._handlers.get(kind)
            if handler is None:
                raise self._refusal()
            handler(session, message)
        except PalioError as problem:
            self._core.effects.append(
                Reply(session, requests.Refused.of(subject_of(message), problem, message.number))
            )

    def _refusal(self) -> PalioError:
        """What is said to who wants something kept where nothing is."""
        relay = self._core.relay
        return relay.refusal() if relay is not None else NoJournal()

    def _on_close(self, session: str, message: Close) -> None:
        self._core.sessions.close(session)
        self._asking.session_closed(session)
        if self._core.durable is not None:
            self._core.durable.session_closed(session)

    def _on_advertise(self, session: str, message: requests.Advertise) -> None:
        fresh = self._hold(session, message, message.advertisement)
        if fresh and self._core.durable is not None:
            self._core.durable.origin_changed()

    def _hold(
        self, session: str, message: requests.Subscribe | requests.Advertise, item: Filter | Advertisement
    ) -> bool:
        handle = message.handle
        if self._asking.watching.has(session, handle):
            raise HandleInUse(handle)
        fresh = self._core.sessions.hold(session, handle, item)
        self._core.effects.append(Reply(session, requests.Accepted(handle, number=message.number)))
        if message.ready:
            self._core.waves.begin(Reply(session, requests.Ready(handle)), None)
        return fresh

    def _on_release(self, session: str, message: requests.Release) -> None:
        if self._asking.watching.has(session, message.handle):
            self._asking.watching.release(session, message.handle)
        else:
            self._core.sessions.release(session, message.handle)
        self._core.effects.append(Reply(session, requests.Ended((message.handle,), number=message.number)))

    def _cancel(
        self, session: str, message: requests.Unsubscribe | requests.Unadvertise, item: Filter | Advertisement
    ) -> None:
        ended = requests.Ended(self._core.sessions.cancel(session, item), number=message.number)
        self._core.effects.append(Reply(session, ended))

    def _on_publish(self, session: str, message: requests.Publish) -> None:
        if self._core.durable is None:  # forwarding finds out first whether all of it can be read
            self.require_advertised(session, message.notifications)
        else:
            self.require_publishable(session, message.notifications)
        self._on_part(session, PublishPart(message.notifications, message.number, message.publisher, last=True))

    def require_publishable(self, session: str, notifications: tuple[Notification, ...]) -> None:
        """Raises `NotAdvertised` or `InvalidNotification` for what may not, or cannot, be published."""
        self.require_advertised(session, notifications)
        # What is wrong must be found before anything is done. An index without filters still reads it all.
        self._reader.match_encoded([one.body.attributes for one in notifications])

    def require_advertised(self, session: str, notifications: tuple[Notification, ...]) -> None:
        if self._core.configuration.advertisements:
            self._core.sessions.require_advertised(session, notifications)

    def _on_part(self, session: str, message: PublishPart) -> None:
        if self._core.relay is not None:
            raise self._refusal()
        if self._core.durable is not None:
            self._core.durable.publish(session, message)
            return
        first = self._sequence + 1
        self._sequence += len(message.notifications)
        broker, now = self._core.broker, self._core.now
        numbered = enumerate(message.notifications, first)
        envelopes = tuple([Envelope(broker, number, now, 0, broker, what) for number, what in numbered])
        effects = self._core.forwarding.take(envelopes, None)
        if message.number:
            self._note_published(self._core.sessions.get(session), message, first)
        self._core.effects += effects

    def _note_published(self, session: RouterSession, message: PublishPart, first: int) -> None:
        """Answers a request whose last notifications begin with this sequence; others may be in between."""
        sequences = session.published
        if sequences or not message.last:
            sequences.extend(range(first, first + len(message.notifications)))
        if message.last:
            first = sequences[0] if sequences else first
            dense = not sequences or sequences[-1] - first + 1 == len(sequences)
            given = () if dense else tuple(sequences)
            answer = requests.Published(message.number, self._core.broker, first, given)
            self._core.effects.append(Reply(session.name, answer))
            sequences.clear()
