"""Sessions as the history tells them: what each client held, from when to when, and what it published.

This is the oracle's model of a client at its access broker. It is a few dozen lines of dictionaries, on
purpose: it has to be right at sight. It also knows how each request should be answered.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol import requests
from palio.protocol.vocabulary import Answer
from palio.routing.occurrences import Close, Open
from palio.sim.edge_history import BrokerAnswer, ClientRequest, History
from palio.sim.trace import describe
from palio.sim.violations import Name, NotReady, Violation, WrongAnswer

FOREVER = sys.maxsize  # a moment that never comes


class HeldSpan(msgspec.Struct, eq=False):
    """Something that a session holds from the moment `begin` up to, not including, the moment `end`.

    From `known` on the whole network knows of it. `handles` has the span of each handle.
    """

    begin: int
    known: int = FOREVER
    end: int = FOREVER
    handles: dict[str, tuple[int, int]] = {}

    def handles_at(self, moment: int) -> list[str]:
        return [handle for handle, (begin, end) in self.handles.items() if begin <= moment < end]

    def overlaps(self, begin: int, end: int) -> bool:
        return self.begin <= end and begin < self.end


class HeldSubscription(HeldSpan, eq=False, kw_only=True):
    filter: Filter


class HeldAdvertisement(HeldSpan, eq=False, kw_only=True):
    advertisement: Advertisement


class SessionHistory(msgspec.Struct, eq=False):
    """All that a session ever held, under all the sessions of that name."""

    name: str
    broker: str
    open: bool = False
    subscriptions: list[HeldSubscription] = []
    advertisements: list[HeldAdvertisement] = []
    # What is held now
    handles: dict[str, HeldSpan] = {}
    by_filter: dict[Filter, HeldSubscription] = {}
    by_advertisement: dict[Advertisement, HeldAdvertisement] = {}


class TakenPublication(msgspec.Struct, frozen=True):
    """A notification that was taken, and the span of moments in which it was under way."""

    number: int  # in the order of publication, over all publishers
    name: Name
    session: str
    notification: Notification
    begin: int
    end: int
    time: float


class SessionRecord:
    """What `replay` makes of a history."""

    def __init__(self) -> None:
        self.sessions: dict[str, SessionHistory] = {}
        self.publications: dict[Name, TakenPublication] = {}
        self.violations: list[Violation] = []
        self.refused = 0
        self.waits: list[float] = []  # seconds from a request to its `Ready`

    def filters_at(self, broker: str) -> Iterator[Filter]:
        """What the clients of a broker want at the end."""
        for session in self.sessions.values():
            if session.broker == broker:
                yield from session.by_filter


def replay(history: History, *, advertisements: bool) -> SessionRecord:
    """Go through the requests in their order and keep account of who holds what."""
    return _Replay(history, advertisements).record


class _Replay:
    def __init__(self, history: History, advertisements: bool) -> None:
        self._history = history
        self._strict = advertisements
        self.record = SessionRecord()
        self._waiting: dict[tuple[str, str], tuple[HeldSpan, ClientRequest]] = {}
        answers: dict[int, list[Answer]] = {}
        ready = []
        for answered in history.answers:
            answers.setdefault(answered.moment, []).append(answered.answer)
            if isinstance(answered.answer, requests.Ready):
                ready.append(answered)
        for request in history.requests:
            session = self.record.sessions.setdefault(
                request.session, SessionHistory(request.session, request.broker)
            )
            self._request(session, request, answers.get(request.moment, []))
        self._known(ready)

    def _request(self, session: SessionHistory, request: ClientRequest, answers: list[Answer]) -> None:
        message, moment = request.message, request.moment
        self.record.refused += any(isinstance(one, requests.Refused) for one in answers)
        match message:
            case requests.Subscribe(handle, filter):
                known = session.by_filter.get(filter)
                if known is None:
                    known = session.by_filter[filter] = HeldSubscription(moment, filter=filter)
                    session.subscriptions.append(known)
                self._take(session, request, known, handle)
                self._expect(request, answers, requests.Accepted(handle))
            case requests.Advertise(handle, advertisement):
                made = session.by_advertisement.get(advertisement)
                if made is None:
                    made = session.by_advertisement[advertisement] = HeldAdvertisement(
                        moment, advertisement=advertisement
                    )
                    session.advertisements.append(made)
                self._take(session, request, made, handle)
                self._expect(request, answers, requests.Accepted(handle))
            case requests.Release(handle):
                held = session.handles.get(handle)
                if held is not None:
                    self._give_back(session, held, [handle], moment)
                    self._expect_ended(request, answers, [handle])
            case requests.Unsubscribe(filter):
                covered = [one for own, one in session.by_filter.items() if filter.covers(own)]
                self._expect_ended(request, answers, self._end(session, covered, moment))
            case requests.Unadvertise(advertisement):
                within = [one for own, one in session.by_advertisement.items() if advertisement.covers(own)]
                self._expect_ended(request, answers, self._end(session, within, moment))
            case Open():
                session.open = True
            case Close():
                session.open = False
                self._end(session, [*session.by_filter.values(), *session.by_advertisement.values()], moment)
            case requests.Publish():
                self._publish(session, request, message, answers)

    def _take(self, session: SessionHistory, request: ClientRequest, held: HeldSpan, handle: str) -> None:
        held.handles[handle] = (request.moment, FOREVER)
        session.handles[handle] = held
        self._waiting[session.name, handle] = (held, request)

    def _end(self, session: SessionHistory, all_held: Iterable[HeldSpan], moment: int) -> list[str]:
        ended = []
        for held in all_held:
            handles = held.handles_at(moment)
            self._give_back(session, held, handles, moment)
            ended += handles
        return ended

    def _give_back(self, session: SessionHistory, held: HeldSpan, handles: list[str], moment: int) -> None:
        for handle in handles:
            held.handles[handle] = (held.handles[handle][0], moment)
            del session.handles[handle]
        if not held.handles_at(moment):
            held.end = moment
            if isinstance(held, HeldSubscription):
                del session.by_filter[held.filter]
            elif isinstance(held, HeldAdvertisement):
                del session.by_advertisement[held.advertisement]

    def _publish(
        self, session: SessionHistory, request: ClientRequest, message: requests.Publish, answers: list[Answer]
    ) -> None:
        allowed = not self._strict or all(
            any(one.covers(notification) for one in session.by_advertisement)
            for notification in message.notifications
        )
        published = next((one for one in answers if isinstance(one, requests.Published)), None)
        if published is None or not allowed:
            refused = next((one for one in answers if isinstance(one, requests.Refused)), None)
            if allowed or refused is None:
                self._complain(request, answers, "published" if allowed else "refused")
        if published is None:
            return
        for offset, notification in enumerate(message.notifications):
            name = (published.origin, published.sequence + offset)
            if name in self.record.publications:
                self._complain(request, answers, "published under a name that no other one has")
            self.record.publications[name] = TakenPublication(
                number=len(self.record.publications),
                name=name,
                session=session.name,
                notification=notification,
                begin=request.moment,
                end=max(request.moment, self._history.last_seen.get(name, 0)),
                time=request.time,
            )

    # Answers

    def _expect(self, request: ClientRequest, answers: list[Answer], expected: Answer) -> None:
        if expected not in answers:
            self._complain(request, answers, describe(expected))

    def _expect_ended(self, request: ClientRequest, answers: list[Answer], handles: list[str]) -> None:
        ended = sorted(handle for one in answers if isinstance(one, requests.Ended) for handle in one.handles)
        if ended != sorted(handles):
            self._complain(request, answers, describe(requests.Ended(tuple(handles))))

    def _complain(self, request: ClientRequest, answers: list[Answer], expected: str) -> None:
        self.record.violations.append(
            WrongAnswer(
                session=request.session,
                request=describe(request.message),
                expected=expected,
                got="; ".join(map(describe, answers)) or "nothing",
            )
        )

    def _known(self, ready: list[BrokerAnswer]) -> None:
        told: set[tuple[str, str]] = set()
        for moment, time, session, answer in ready:
            assert isinstance(answer, requests.Ready)
            key = (session, answer.handle)
            if key in self._waiting:
                held, request = self._waiting[key]
                held.known = min(held.known, moment)
                self.record.waits.append(time - request.time)
                told.add(key)
        rests = self._history.rests
        for (session, handle), (held, request) in self._waiting.items():
            place = bisect_left(rests, request.moment)
            if place == len(rests):
                continue
            held.known = min(held.known, rests[place])
            message = request.message
            asked = isinstance(message, requests.Subscribe | requests.Advertise) and message.ready
            if asked and (session, handle) not in told and held.handles[handle][1] > rests[place]:
                self.record.violations.append(NotReady(session=session, handle=handle))
