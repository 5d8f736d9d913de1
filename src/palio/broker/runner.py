"""`EffectRunner`: lets the router take a message, and does what it says, in its order.

Answers and events are put on their connections, and written at the end of the turn; effects on the store are
handed over together, and their completions come back as messages. What cannot be said, because no frame can
bring it or because its kind may not pass, is counted, and whoever would wait for it is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from palio.broker import fitting
from palio.broker.border import bounced
from palio.broker.connection import BrokerConnection
from palio.broker.counts import BrokerCounts
from palio.broker.documents.newest import NewestVersions
from palio.broker.documents.outlived import OutlivedDocuments
from palio.broker.documents.staging import confirmed_documents
from palio.broker.host import Host
from palio.broker.notices import Notices
from palio.broker.operations import OperationLog
from palio.broker.overlay_news import OverlayNews
from palio.broker.registry import Registry
from palio.broker.request_guard import answered
from palio.broker.scheduling import Scheduler
from palio.broker.sharing import BrokerSharing
from palio.broker.storing import StoreBridge
from palio.broker.timers import Timers
from palio.broker.unlisted import UnlistedMessage
from palio.protocol.deliveries import Lost
from palio.protocol.durable.subscriptions import Rejected
from palio.protocol.encoding import encode_envelopes
from palio.protocol.envelope import Envelope
from palio.protocol.frames import MAX_FRAME
from palio.protocol.inquiries import Requested, Respond
from palio.protocol.requests import Published, Refused
from palio.protocol.vocabulary import OPTIONAL
from palio.routing.documents.current import with_documents
from palio.routing.durable.effects import STORE_EFFECTS, Append, Hand, HasLeft, Read, ReportForgotten, ReportGap
from palio.routing.effects import CloseLink, Deliver, Effect, Reply, Send, SetTimer, SharedChanged, SharedReady
from palio.routing.occurrences import StoreMessage
from palio.routing.overlay.effects import MADE, Dial, OverlayEvent, Resolve
from palio.routing.overlay.manager import REMOVED
from palio.routing.overlay.settings import normal
from palio.routing.router import Router

if TYPE_CHECKING:
    from palio.broker.dialling import Dialling

# Steps of work without hurry that are done at once: each takes some tens of microseconds, rarely milliseconds.
WORK_STEPS = 8
# Why something that is kept cannot be delivered.
TOO_LARGE = f"It has more than the {MAX_FRAME:,} bytes that a frame may have."


class _Tidying(msgspec.Struct, eq=False):
    """Work of the router that has no hurry, for one owner."""

    owner: Hashable
    work: Callable[[Hashable], bool]
    weight: float = 1.0

    def take_turn(self, until: float) -> bool:
        while self.work(self.owner):
            if perf_counter() >= until:
                return True
        return False


class EffectRunner:
    """The router, which is set before the first message comes, and what comes of it."""

    def __init__(
        self,
        registry: Registry,
        storing: StoreBridge,
        counts: BrokerCounts,
        host: Host,
        operations: OperationLog,
        *,
        broker: str,
        scheduler: Scheduler,
        log: logging.Logger,
        publishes_overlay: bool = False,
    ) -> None:
        self.router: Router
        self.dialling: Dialling
        self.newest_documents = NewestVersions()
        self.outlived: OutlivedDocuments | None = None
        self.are_documents = False  # whether what the router is being told of comes from reading documents
        self._scheduler = scheduler
        self._tidying: dict[Hashable, _Tidying] = {}
        self._registry = registry
        self._storing = storing
        self._counts = counts
        self._operations = operations
        self._now = host.now
        self._log = log
        self.notices = Notices(broker, self.handle, advertises=self._advertises)
        publish = self._publish_overlay if publishes_overlay else None
        self.overlay_news = OverlayNews(log, host.now, publish)
        self.left: asyncio.Future[None]  # done when the broker has left its network; set when it starts
        self._changed = host.changed
        self._timers = Timers(host.call_at, self.on_timer)
        self.sharing = BrokerSharing(lambda: self.router, self.carry_out, host.now, log)
        self._to_store: list[Any] = []
        self._encoded: tuple[tuple[Envelope, ...], msgspec.Raw] | None = None
        registry.flushed = self._turn_ended
        self._handlers: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            Deliver: self._deliver,
            Reply: self._reply,
            Hand: self._hand,
            SetTimer: self._timers.set,
            CloseLink: self._close_link,
            Dial: self._dial,
            Resolve: self._resolve,
            OverlayEvent: self._tell_of_overlay,
            ReportGap: self._report_gap,
            ReportForgotten: self._report_forgotten,
            HasLeft: self._has_left,
            SharedChanged: self.sharing.changed,
            SharedReady: self.sharing.ready,
            **dict.fromkeys(STORE_EFFECTS, self._to_store.append),
            Append: self._append,
            Read: self._read,
        }

    def _advertises(self) -> bool:
        return self.router.configuration.advertisements

    # In

    def handle(self, message: Any, source: str) -> None:
        """Let the router handle a message, and carry out its effects."""
        effects = self.router.handle(message, source, self._now())
        session = self._registry.sessions.get(source)
        self.carry_out(effects, None if session is None else session.account)

    def complete(self, messages: Iterable[StoreMessage]) -> None:
        """Let the router handle completions of the store, and carry out the effects."""
        self.carry_out(self.router.complete(messages, self._now()))

    def work(self, owner: Hashable) -> bool:
        """Let the router do something that has no hurry, for an owner. Returns whether there is more."""
        effects, more = self.router.work(owner, WORK_STEPS, self._now())
        self.carry_out(effects)
        if not more:
            self._tidying.pop(owner, None)
        return more

    def on_timer(self, name: str) -> None:
        self.carry_out(self.router.on_timer(name, self._now()))

    def stop(self) -> None:
        self._timers.cancel()
        self.notices.close()

    def _soon(self, message: Any, source: str) -> None:
        """Not now, while the router's effects are being carried out."""
        asyncio.get_running_loop().call_soon(self.handle, message, source)

    # Out

    def carry_out(self, effects: Sequence[Effect], owner: Hashable = None) -> None:
        """Carries out effects of the router, in their order; they follow from what somebody asked for."""
        handlers = self._handlers
        for effect in effects:
            handlers[type(effect)](effect)
        if self._to_store:
            self._storing.submit(tuple(self._to_store), owner)
            self._to_store.clear()
        if self._changed is not None:
            self._changed()
        if self.router.owners_of_work:
            for whose in list(self.router.owners_of_work):
                if whose not in self._tidying:
                    self._tidying[whose] = _Tidying(whose, self.work)
                    self._scheduler.ready(self._tidying[whose])

    def _turn_ended(self) -> None:
        self._encoded = None

    def _append(self, effect: Append) -> None:
        operations = self._operations
        if operations.current is not None:
            if (gathered := operations.take_along()) is not None:
                self._to_store.append(gathered)
            effect = operations.with_row(effect)
        if self.are_documents:
            effect = with_documents(effect, self.newest_documents.tell)
        self._to_store.append(effect)

    def _read(self, effect: Read) -> None:
        if self.outlived is not None and self.outlived.take(effect):
            return
        completions = self._storing.completions
        self._to_store.append(effect if completions is None else completions.asked(effect))

    def _send(self, effect: Send) -> None:
        connection = self._registry.links.get(effect.broker)
        if connection is None:
            return
        message: Any = effect.message
        if (border := connection.border) is not None:
            try:
                message = border.leaving(message)
            except UnlistedMessage as problem:
                self._withhold(problem, connection)
                return
            if message is None:
                answer = bounced(effect.message, effect.broker)
                if answer is not None:
                    self._soon(answer, effect.broker)
                return
        for payload in fitting.letters(message):
            connection.put(payload)

    def _deliver(self, effect: Deliver) -> None:
        connection = self._registry.sessions.get(effect.session)
        if connection is None:
            self._counts.dropped["session gone"] += len(effect.envelopes)
            return
        # Many sessions mostly get the same: the comparison is by identity, and so costs next to nothing.
        if self._encoded is None or self._encoded[0] != effect.envelopes:
            self._encoded = effect.envelopes, encode_envelopes(effect.envelopes)
        for payload, count in fitting.events(effect.handles, effect.envelopes, self._encoded[1]):
            if payload is None:
                self._lose(connection)
            else:
                connection.put(payload, count)

    def _reply(self, effect: Reply) -> None:
        connection = self._registry.sessions.get(effect.session)
        self._operations.answered(effect.session, effect.answer)
        if type(effect.answer) is Refused:
            self._counts.refused_requests[effect.answer.error] += 1
        if connection is None:
            return
        if type(effect.answer) in OPTIONAL and type(effect.answer).__name__.lower() not in connection.knows:
            return  # the other end would take it for an error, and leave
        given = effect.answer
        if connection.made and (counts := connection.made.pop(getattr(given, "number", 0), None)) is not None:
            given = confirmed_documents(given, counts) if type(given) is Published else given
        try:
            answer = answered(given, connection.principal)
        except UnlistedMessage as problem:
            self._withhold(problem, connection)
            return
        for payload in fitting.answers(answer):
            if payload is not None:
                connection.put(payload)
                continue
            self._lose(connection)
            if type(effect.answer) is Requested:  # nobody shall wait for what it would have said
                self._say_for(effect.session, Respond(effect.answer.id))

    def _hand(self, effect: Hand) -> None:
        connection = self._registry.sessions.get(effect.session)
        if connection is None:
            return
        for payload, deliveries in fitting.handed(connection.principal.called(effect.name), effect.deliveries):
            if payload is not None:
                connection.put(payload)
                continue
            # It counts as an attempt like any other.
            number = deliveries[0][0]
            extra = {"durable": effect.name, "delivery": number, "reason": TOO_LARGE}
            self._log.warning("A delivery does not fit into a frame.", extra=extra)
            self._say_for(effect.session, Rejected(effect.name, (number,), reason=TOO_LARGE))

    def _close_link(self, effect: CloseLink) -> None:
        connection = self._registry.links.pop(effect.broker, None)
        self._log.warning("A link cannot be used.", extra={"neighbour": effect.broker, "reason": effect.reason})
        if effect.why == REMOVED:
            self.dialling.forget_broker(effect.broker)
        if connection is not None:
            connection.why = effect.why
            if effect.why == REMOVED and connection.peer is not None and connection.added is None:
                self.dialling.forget(normal(connection.peer.address))
            connection.end(effect.reason)

    def _dial(self, effect: Dial) -> None:
        self.dialling.once(effect)

    def _resolve(self, effect: Resolve) -> None:
        self.dialling.resolve(effect)

    def _tell_of_overlay(self, event: OverlayEvent) -> None:
        """Tells what has happened to a link, also whoever waits for one to be there."""
        if event.what == MADE and (connection := self._registry.links.get(event.broker)) is not None:
            self.dialling.made(connection)
        self.overlay_news.tell(event)

    def _publish_overlay(self, event: OverlayEvent, at: float) -> None:
        if self.notices.overlay(event, at):
            asyncio.get_running_loop().call_soon(self.notices.publish)

    def _report_gap(self, effect: ReportGap) -> None:
        """Logs what may be missing, for whom: of the journal here, or for a durable subscription here."""
        gap = effect.gap
        extra = {"origin": gap.origin, "after": gap.after, "upto": gap.upto}
        if not effect.durable:
            sentence = "The journal here came back older than it was: others have read more."
        elif gap.what == "damaged":
            sentence = "A durable subscription misses events that are damaged in a journal."
        elif gap.upto is None:
            sentence = "A journal came back older than it was: a durable subscription may miss some of it."
        else:
            sentence = "A durable subscription misses what a journal has trimmed: one of them came back older."
        self._log.warning(sentence, extra=extra | ({"durable": effect.durable} if effect.durable else {}))
        if self.notices.gap(effect):
            asyncio.get_running_loop().call_soon(self.notices.publish)

    def _report_forgotten(self, effect: ReportForgotten) -> None:
        """Logs that a broker is forgotten, and what the journal here gives up by that."""
        extra = {
            "forgotten": effect.broker,
            "why": effect.why,
            "subscriptions": effect.readers,
            "after": effect.read,
            "upto": effect.head,
        }
        log = self._log.warning if effect.readers else self._log.info
        log("A broker is forgotten: nothing is kept for its durable subscriptions.", extra=extra)
        if self.notices.forgotten(effect):
            asyncio.get_running_loop().call_soon(self.notices.publish)

    def _has_left(self, effect: HasLeft) -> None:
        if not self.left.done():
            self._log.info("The broker has left the network: it is forgotten everywhere, and may stop.")
            self.left.set_result(None)

    # What cannot be said

    def _lose(self, connection: BrokerConnection) -> None:
        """Counts an event, or an answer, that no frame can bring."""
        self._counts.dropped["too large"] += 1
        self._log.warning("What does not fit into a frame is not sent.", extra={"connection": connection.name})
        connection.say(Lost(1, TOO_LARGE))

    def _withhold(self, problem: UnlistedMessage, connection: BrokerConnection) -> None:
        """Counts what this broker would say, and may not."""
        self._counts.dropped["unlisted"] += 1
        self._log.error("A message is not sent.", extra={"connection": connection.name, "reason": str(problem)})

    def _say_for(self, session: str, message: Rejected | Respond) -> None:
        """Say, soon, what a client would that cannot be given what it was to be given."""

        def say() -> None:
            if session in self._registry.sessions:
                self.handle(message, session)

        asyncio.get_running_loop().call_soon(say)
