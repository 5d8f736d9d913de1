"""Dispatch: what comes without being asked for (events, requests, replies, news) goes to whom it is for."""

from __future__ import annotations

from typing import Any

from palio.client import reading
from palio.client.durable import DurableSubscription
from palio.client.errors import ConnectionLost
from palio.client.event import IncomingRequest
from palio.client.options import ClientStatistics
from palio.client.replay import Replay
from palio.client.replies import Replies, Watch
from palio.client.session import ClientSession
from palio.client.session_handles import SessionHandle
from palio.client.subscription import Subscription
from palio.model.errors import PalioError
from palio.protocol.deliveries import Lost
from palio.protocol.durable import control, journals, subscriptions
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.inquiries import Inspected, Request, Respond, Traced, Wanted
from palio.protocol.invocations import Invoked
from palio.protocol.subjects import subject_of

# What is for whoever has asked, and for nobody else.
_PLAIN_ANSWERS = (
    *(reading.ReceivedSurvey, Traced, Invoked, control.Sought, subscriptions.Requeued, subscriptions.Discarded),
    *(journals.Forgot, journals.JournalsListed, journals.Held, journals.JournalTrimmed),
)


class Dispatch:
    """Dispatches what comes to the subscriptions, requests and replays that it is for."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._held = session.held
        self._parts: dict[int, list[Any]] = {}  # of long answers, by number
        session.handlers |= {
            reading.ReceivedEvents: self._arrived,
            reading.ReceivedDeliveries: self._handed,
            reading.ReceivedRequest: self._asked,
            reading.ReceivedReply: self._answered,
            reading.ReceivedReplayPage: self._answered,
            subscriptions.Done: self._done,
            subscriptions.Taken: self._taken,
            subscriptions.GapNoticed: self._gap_noticed,
            Lost: self._lost,
            Wanted: self._wanted,
            Inspected: self._inspected,
            control.Paused: self._paused,
            **dict.fromkeys(_PLAIN_ANSWERS, session.answered),
        }

    def statistics(self) -> ClientStatistics:
        session = self._session
        return ClientStatistics(
            session.state.value,
            session.broker,
            session.connections,
            session.publishing.statistics(),
            {name: one.statistics() for name, one in self._held.items() if isinstance(one, Subscription)},
            dict(session.dropped),
        )

    # Events

    def _arrived(self, message: reading.ReceivedEvents) -> None:
        first, *others = message.handles
        for handle in others:
            subscription = self._held.get(handle)
            if isinstance(subscription, Subscription):
                subscription.take([event.copy() for event in message.envelopes])
        subscription = self._held.get(first)
        if isinstance(subscription, Subscription):
            subscription.take(message.envelopes)
        elif not others:
            self._session.dropped["unsubscribed"] += len(message.envelopes)

    def _handed(self, message: reading.ReceivedDeliveries) -> None:
        if (subscription := self._durable(message.name)) is not None:
            subscription.hand(message.deliveries)

    def _done(self, answer: subscriptions.Done) -> None:
        if (subscription := self._durable(answer.name)) is not None:
            subscription.done(answer)

    def _taken(self, answer: subscriptions.Taken) -> None:
        if (subscription := self._durable(answer.name)) is not None:
            subscription.taken()

    def _gap_noticed(self, answer: subscriptions.GapNoticed) -> None:
        if (subscription := self._durable(answer.name)) is not None:
            gap = JournalGap(answer.origin, answer.after, answer.upto, answer.noticed, answer.what)
            subscription.gap_noticed(gap)

    def _paused(self, answer: control.Paused) -> None:
        if (subscription := self._durable(answer.name)) is not None:
            subscription.paused = answer.paused
        self._session.answered(answer)

    def _durable(self, name: str) -> DurableSubscription | None:
        found = self._held.get(name)
        return found if isinstance(found, DurableSubscription) else None

    def _lost(self, lost: Lost) -> None:
        self._session.dropped["lost by the broker"] += lost.count
        for held in list(self._held.values()):
            if isinstance(held, Subscription):
                held.lost(lost.count, lost.reason)

    # Questions

    def expect(self, request: Request | journals.Replay, answers: Replies | Replay) -> None:
        """Send a request, and dispatch its answers there."""
        self._session.hold(PendingRequest(self._session, request, answers))
        self._session.say(request)

    def _answered(self, answer: reading.ReceivedReply | reading.ReceivedReplayPage) -> None:
        asking = self._session.held_by(answer.number)
        if isinstance(asking, PendingRequest) and asking.answers.take(answer):  # type: ignore[arg-type]
            self._session.forget(asking)

    def _asked(self, message: reading.ReceivedRequest) -> None:
        found = [self._held[handle] for handle in message.handles if handle in self._held]
        subscriptions = [one for one in found if isinstance(one, Subscription)]
        if not subscriptions:
            self._session.say(Respond(message.id))
            return
        question = IncomingRequest(
            len(subscriptions), lambda reply, problem: self._session.say(Respond(message.id, reply, problem))
        )
        for subscription in subscriptions:
            event = message.envelope.copy()
            event._question = question
            subscription.take([event])

    def _wanted(self, answer: Wanted) -> None:
        watch = self._held.get(answer.handle)
        if isinstance(watch, Watch):
            watch.told(answer.wanted)
            self._session.resolve(watch.number, answer)

    def _inspected(self, answer: Inspected) -> None:
        parts = self._parts.setdefault(answer.number, [])
        parts.append(answer.result)
        if answer.last:
            lists = len(parts) > 1
            result = [row for part in parts for row in part] if lists else parts[0]
            self._session.resolve(answer.number, result)

    def forget_parts(self, number: int) -> None:
        """Stop dispatching the answer to a request: it is complete, or nobody waits for it."""
        self._parts.pop(number, None)


class PendingRequest(SessionHandle):
    """A pending request. It is not retried: who has taken it once would take it twice."""

    def __init__(
        self, session: ClientSession, request: Request | journals.Replay, answers: Replies | Replay
    ) -> None:
        super().__init__(session, subject_of(request), request.number)
        self._request = request
        self.answers = answers
        answers.given_up = self._end

    def request(self) -> Any:
        return self._request

    def disconnected(self) -> None:
        self.fail(ConnectionLost(self.name, "The answers were not complete."))

    def fail(self, problem: PalioError) -> None:
        self.answers.fail(problem)
        super().fail(problem)
