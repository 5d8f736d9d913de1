"""One connection of a broker, to a client or to a neighbour: a shell around a `Conversation`.

It has the socket, the clock, and what the broker decides: who may come in, who has to wait, and what becomes of
who does not read. What comes on it waits (`inbox`) until it is its turn (`scheduling`), and is understood a
little at a time (`thinking`); then it is handed to the broker, as (source, message). What the conversation does
not allow ends the connection with a sentence; it never reaches the core.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import msgspec

from palio.broker.access import ANYONE, Principal
from palio.broker.accounts import FAR, GRACE, SMALL, ShareUsedUp
from palio.broker.border import Border, border
from palio.broker.inbox import LIGHT_BYTES, LIGHT_BYTES_ALONE, Inbox, Work
from palio.broker.limits import MAX_NAME
from palio.broker.misdirected import http_answer, where_http_is
from palio.broker.outgoing import Outgoing, OutgoingStatistics
from palio.broker.restraint import HeldBack, SlowFrame
from palio.broker.settings import Peer
from palio.broker.states import TRANSITIONS, ConnectionState
from palio.model.effort import Meter, metered
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.conversation import SILENT, Conversation
from palio.protocol.encoding import ABOUT_CONTENT, UnreadableMessage, decode, refusal_of, unread
from palio.protocol.frames import GREETING_FRAME, FrameTooLarge
from palio.protocol.greeting import CONNECTION, PROTOCOL, Greet, Role, Welcome
from palio.protocol.heartbeat import Bye, Heartbeat
from palio.protocol.inquiries import Inspect
from palio.protocol.invocations import Invoke
from palio.protocol.requests import PublishDocuments, Refused
from palio.protocol.strangers import NotPalio
from palio.protocol.violations import ProtocolViolation
from palio.protocol.vocabulary import FROM_BROKERS, FROM_CLIENTS, SERVED
from palio.routing.occurrences import LinkUp

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# Bytes that have come and wait for their turn, up to which more is read.
READ_AHEAD = 1024 * 1024
# How many times as much as clients a neighbour may have done: many clients stand behind it (a guess).
LINK_WEIGHT = 8.0
# Steps of understanding what a neighbour says: it is done piece by piece, however much it is.
_WITHOUT_END = 1 << 62
# States in which nothing more is taken from the other end.
_ENDED = (ConnectionState.CLOSED, ConnectionState.DRAINING, ConnectionState.MOVED)


def _require_name(name: str) -> None:
    """Names go with every event: `ENVELOPE_ROOM` has room for those that are as long as they may be."""
    if not 0 < len(name) <= MAX_NAME:
        raise ProtocolViolation(f"A name of 1 to {MAX_NAME} characters is needed.")


class ConnectionStatistics(msgspec.Struct, frozen=True):
    """A connection, as operators see it."""

    name: str
    role: str
    state: str
    address: str
    since: float
    received_frames: int
    received_bytes: int
    outgoing: OutgoingStatistics
    throttled: float = 0.0  # seconds for which it was not read from, as it had sent more than was taken
    round_trip: float | None = None  # seconds from a ping to its answer, lately; of neighbours


class BrokerConnection(asyncio.Protocol):
    """A connection of a broker that was accepted, or (with a `peer`) dialled."""

    def __init__(
        self,
        broker: BrokerServer,
        peer: Peer | None = None,
        token: str | None = None,
        *,
        asks: bool = False,
        added: asyncio.Future[str] | None = None,
    ) -> None:
        self.broker = broker
        self.peer = peer
        self.asks = asks  # whether the end that has dialled asks for the link, and may be refused
        self.added = added  # by an operator, who waits for it to be in use
        self.was_linked = False
        self.refusal: Refused | None = None  # what has ended it, if somebody has refused it
        self.why = ""  # the same of a link, in a word, if a router has
        self._token = token
        self._border: tuple[Any, Border | None] = None, None
        self.role: Role | None = None
        self.knows: frozenset[str] = frozenset()  # of what not everyone knows, by its name on the wire
        self.binding = "palio"  # how what comes on it is said, for the operation log
        self.name = ""  # of a session: with its principal's name before it
        self.principal: Principal = ANYONE
        self.state = ConnectionState.CONNECTING
        self.reason = ""  # why it ended, as a sentence
        self.address = ""
        self.host = ""
        self.closed = asyncio.get_running_loop().create_future()
        settings = broker.settings
        self.outgoing = Outgoing(settings.limits.outgoing, settings.when_slow)
        self._loop = asyncio.get_running_loop()
        self._since = broker.now()
        self._transport: asyncio.Transport | None = None
        self._began = self._loop.time()
        self._conversation: Conversation[None]
        self.owner: Hashable = None  # for whom what comes is done
        self.weight = 1.0
        self._reading = True  # as far as the broker goes
        self._open = True  # and in fact
        self._inbox = Inbox(broker.stacks)
        # Documents that are being confirmed: by number of the request, how many events were made of each.
        self.made: dict[int, tuple[int, ...]] = {}
        self._lost_for: tuple[Exception | None] | None = None  # gone, and what it has said is still being heard
        self.account: Hashable = self  # where what is held for it is counted, and how much was
        self._counted = 0
        self._over_since: float | None = None
        self._held_back = HeldBack()
        self._slow_frame = SlowFrame()
        self.acting_for: Principal | None = None  # known without a greeting's token: it is from within

    def statistics(self) -> ConnectionStatistics:
        role = self.role.value if self.role is not None else "unknown"
        heard = self._conversation.received_frames, self._conversation.received_bytes
        said = self.outgoing.statistics()
        throttled = round(self._held_back.seconds(self._loop.time()), 3)
        return ConnectionStatistics(
            self.name,
            role,
            self.state.value,
            self.address,
            self._since,
            *heard,
            said,
            throttled,
            self._conversation.heartbeat.round_trip,
        )

    def go(self, event: str) -> None:
        """Change the state as the table of transitions says."""
        self.state = TRANSITIONS[self.state][event]

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The verified certificate of the other end, if it has shown one."""
        return self._transport.get_extra_info("peercert") if self._transport is not None else None

    @property
    def is_by_quic(self) -> bool:
        """Whether it came over UDP."""
        return self._transport is not None and bool(self._transport.get_extra_info("quic"))

    @property
    def border(self) -> Border | None:
        """What a neighbour may get and give; None for one of the same domain, who may everything.

        For a broker that was dialled the settings say so, for one that has connected its principal's rights.
        """
        allowed = self.peer if self.peer is not None else self.principal.rights
        if self._border[0] is not allowed:
            if isinstance(allowed, Peer):
                found = border(allowed.exported, Filter(), self.broker.dropped)
            else:
                found = border(allowed.subscribe, allowed.publish, self.broker.dropped)
            self._border = allowed, found
        return self._border[1]

    def may_replace(self, other: BrokerConnection) -> bool:
        """Whether this can be the link to the same broker as another one that bears its name.

        Within a domain a name is believed. A broker of another domain has to be the same principal, or be
        dialled at the same address, and cannot take the place of one that this broker itself has dialled.
        """
        if self.border is None and other.border is None:
            return True
        if self.border is None or other.border is None:
            return False
        if self.peer is None:
            return other.peer is None and self.principal.name == other.principal.name
        return other.peer is None or self.peer.address == other.peer.address

    @property
    def is_live(self) -> bool:
        return self.state in (ConnectionState.LIVE, ConnectionState.SUSPENDED)

    # Of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.outgoing.connect(self._transport)
        host, port = (self._transport.get_extra_info("peername") or ("?", 0))[:2]
        self.host = str(host)
        self.address = f"{host}:{port}"
        self._work_for(("address", self.host) if self.peer is None else ("link", self.peer.address))
        self._converse()
        self.broker.admission.connected(self)

    def _converse(self) -> None:
        settings = self.broker.settings
        heartbeat = Heartbeat(settings.heartbeat, self._loop.time(), often=self.peer is not None)
        if self.peer is None:
            self._conversation = Conversation(heartbeat, decode, self.put, frame_limit=GREETING_FRAME)
            return
        # Who was dialled may go on right after its welcome; who dials has to wait for it.
        peer, limit = self.peer, settings.limits.peer_frame(settings.durable)
        greet = Greet(
            PROTOCOL,
            Role.PEER,
            settings.name,
            self._token,
            peer.kind,
            peer.cost,
            settings.heartbeat,
            asks=self.asks,
        )
        self._conversation = Conversation(
            heartbeat, decode, self.put, greet=greet, hears=FROM_BROKERS, frame_limit=limit
        )

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        try:
            payloads = self._conversation.feed(data, now)
        except NotPalio as problem:
            self._refuse_stranger(problem.spoken)
            return
        except FrameTooLarge as problem:
            self.refuse(problem)
            return
        if payloads:
            for payload in payloads:
                self._inbox.add(payload, now)
            self.broker.scheduler.ready(self)
            if self._inbox.is_empty:
                return  # it was its turn, which has ended with the following
        self._count()
        self._read_or_wait()

    # Turns

    def _work_for(self, owner: Hashable, weight: float = 1.0) -> None:
        if self.owner is not None:
            self.broker.scheduler.leave(self)
        self.owner, self.weight = owner, weight

    def take_turn(self, until: float) -> bool:
        """Hears messages that have come, one after the other, until about that moment."""
        inbox = self._inbox
        while inbox.has_next:
            if self.state in _ENDED and inbox.begins:
                inbox.clear()
                break
            try:
                if not inbox.take(self._hear, until, light=self._most_light, steps=self._most_steps):
                    return True
            except PalioError as problem:
                self.refuse(problem)
            except Exception:
                self.broker.log.exception("A message could not be handled.", extra={"connection": self.name})
                self.refuse(ProtocolViolation("The broker could not handle this message; this is its mistake."))
            if inbox.has_next and perf_counter() >= until and self.state not in _ENDED:
                self._count()
                self._read_or_wait()
                return True
        outgoing = self.outgoing
        waits = outgoing.paused or outgoing.unsent or len(self._conversation.frames)
        if not self._open or self._counted or waits:
            self._count()
            self._read_or_wait()
        if self._lost_for is not None and not inbox.held:
            self._gone(*self._lost_for)
        return False

    @property
    def _most_light(self) -> int:
        return LIGHT_BYTES if self.broker.scheduler.is_crowded else LIGHT_BYTES_ALONE

    @property
    def _most_steps(self) -> int:
        return _WITHOUT_END if self.role is Role.PEER else self.broker.settings.limits.steps

    def hold(self, size: int) -> None:
        """Hears nothing more until `go_on`: a message of so many bytes is worked on elsewhere."""
        self._inbox.hold(size)

    def go_on(self, work: Work, size: int) -> None:
        """Ends what `hold` has begun: in its next turn it does this, and then hears what has come since.

        What handles few bytes is given no meter, as with messages that are small.
        """
        if self._inbox.go_on(work, size):
            self.broker.scheduler.ready(self)

    def _give_up_thinking(self) -> None:
        """Nothing more of what has come is heard."""
        self._inbox.give_up()
        self.broker.scheduler.leave(self)

    # What is held

    def _count(self) -> None:
        """Counts what is held for the client, and ends the connection of one that is far over its share."""
        inbox = self._inbox
        held = len(self._conversation.frames) + inbox.bytes + inbox.held + self.outgoing.held
        if held < SMALL or self.role is Role.PEER or self.state is ConnectionState.CLOSED:
            held = 0
        if held == self._counted and not held:
            return
        accounts = self.broker.accounts
        accounts.change(self.account, held - self._counted)
        self._counted = held
        over = accounts.over(self.account) if held else 0.0
        self.outgoing.tight = over > 1.0
        if over <= 1.0:
            self._over_since = None
        elif self._over_since is None:
            self._over_since = self._loop.time()
        if over > FAR:
            self._end_over_share()

    def _count_for(self, account: Hashable) -> None:
        self.broker.accounts.change(self.account, -self._counted)
        self._counted = 0
        self.account = account

    def _end_over_share(self) -> None:
        problem = ShareUsedUp(self.broker.accounts.share)
        self.broker.admission.refused(problem, self.address, self.name)
        self.abort(str(problem))

    def connection_lost(self, exception: Exception | None) -> None:
        if self.is_live and (not self._inbox.is_empty or self._inbox.held):
            self._lost_for = (exception,)  # what was said before the end was meant
            self.outgoing.disconnect()
            self.broker.scheduler.ready(self)
        else:
            self._gone(exception)

    def _gone(self, exception: Exception | None) -> None:
        self._lost_for = None
        was_live = self.is_live
        moved = self.state is ConnectionState.MOVED
        if not self.reason:
            self.reason = f"The connection was lost: {exception}." if exception else "The other end closed it."
        self.go("lost")
        self._give_up_thinking()
        self._count()
        self.broker.admission.disconnected(self, was_live=was_live and not moved)
        if not self.closed.done():
            self.closed.set_result(self.reason)
        # What refers to each other would stay in memory until somebody looks for garbage: of who connects again
        # and again, that would be much.
        self.outgoing.disconnect()
        self._conversation.end()
        self._transport = self.account = None

    def pause_writing(self) -> None:
        self.outgoing.pause()
        if self.state is ConnectionState.LIVE:
            self.go("paused")

    def resume_writing(self) -> None:
        if self.state is ConnectionState.SUSPENDED:
            self.go("resumed")
        self.outgoing.resume()
        self._count()
        self._read_or_wait()

    # Hearing

    def _hear(self, payload: bytes, came: float, meter: Meter | None) -> None:
        """Handles one message, which came at a moment. What is found out about its content may be metered."""
        if meter is not None and self.role is Role.CLIENT and self._is_too_late(payload, came):
            return
        try:
            if meter is None:
                message = self._conversation.hear(payload)
            else:
                with metered(meter):
                    message = self._conversation.hear(payload)
        except UnreadableMessage as problem:
            refusal = refusal_of(payload, problem) if self.role is Role.CLIENT and problem.error else None
            if refusal is None:
                raise
            about = refusal.subject.partition(" ")[2]
            self.broker.operations.note(self, refusal.kind, about, size=len(payload), problem=refusal.reason)
            self.say(refusal)
            return
        kind = type(message)
        if kind is Inspect:
            self.broker.inspected(self, message, len(payload), meter)
        elif kind is Invoke:
            self.broker.invoked(self, message, len(payload), meter)
        elif kind is PublishDocuments:
            self.broker.documents.publishing.take(self, message, len(payload))
        elif kind is Bye or kind is Refused:
            self.refusal = message if kind is Refused else None
            self.end(message.reason, quietly=True)
        elif kind is Greet:
            self._greeted(message)
        elif kind is Welcome:
            self._welcomed(message)
        elif message is not None:
            self.broker.take(message, self, len(payload), meter)

    def _is_too_late(self, payload: bytes, came: float) -> bool:
        """Throttling: whether a request that reasoning is needed for has waited too long, or for nobody."""
        waited = self._loop.time() - came
        if self._lost_for is None and waited <= self.broker.settings.limits.patience:
            return False
        request = unread(payload)
        if request is None or request.kind not in ABOUT_CONTENT:
            return False
        if self._lost_for is None:
            self.broker.throttled(self, request, waited)
        return True

    def _greeted(self, greet: Greet) -> None:
        _require_name(greet.name)
        self.asks = greet.asks
        self.broker.admission.admit(self, greet)
        is_client = greet.role is Role.CLIENT
        self.name = self.principal.own(greet.name) if is_client else greet.name
        self.role = greet.role
        self.knows = frozenset(greet.knows)
        if is_client:
            self._work_for(self.principal.name)
            if self.principal.name:
                self._count_for(self.principal.name)
        else:
            self._work_for(("link", self.name), LINK_WEIGHT)
        self._conversation.heartbeat.often = not is_client
        settings = self.broker.settings
        limits = settings.limits
        self._conversation.welcome(
            greet,
            Welcome(PROTOCOL, settings.name, max_frame=limits.frame, journal=settings.journal, knows=SERVED),
            hears=FROM_CLIENTS if is_client else FROM_BROKERS,
            frame_limit=limits.frame if is_client else limits.peer_frame(settings.durable),
        )
        self.go("greeted")
        self.broker.admission.greeted(self, greet)

    def _welcomed(self, welcome: Welcome) -> None:
        assert self.peer is not None
        _require_name(welcome.broker)
        self.name = welcome.broker
        self.role = Role.PEER
        self._work_for(("link", self.name), LINK_WEIGHT)
        self.broker.admission.admit_peer(self, welcome.broker)
        self.go("greeted")
        by_hand = self.added is not None
        dialled = self.peer.address if self.asks and not by_hand else ""
        link_up = LinkUp(self.peer.kind, self.peer.cost, dialled, by_hand=by_hand)
        self.broker.admission.linked(self, link_up)

    # Saying

    def say(self, message: Any) -> None:
        """Send a message, at the end of this turn."""
        self._conversation.say(message)

    def put(self, payload: bytes, events: int = 0) -> None:
        """Send the bytes of a message, at the end of this turn."""
        self.outgoing.put(payload, events)
        if self.outgoing.paused:
            self._count()
        self.broker.will_flush(self)

    def flush(self) -> None:
        """Write what was said in this turn; end what is beyond its limits."""
        self.outgoing.flush()
        if self.outgoing.unsent or self._counted:
            self._count()
        if self.outgoing.paused:
            limit = self.broker.settings.limits.link
            if self.role is Role.PEER and self.outgoing.statistics().waiting_bytes > limit:
                self.abort("The neighbour did not read what was sent to it.")
            elif self.outgoing.overflowed and self.role is not Role.PEER:
                self.abort("The client did not read what was sent to it, and its policy is to be disconnected.")
        else:
            self._conversation.heartbeat.said = self._loop.time()

    def beat(self, now: float, deaf: float) -> None:
        """Heartbeat: from time to time, is the other end there, and does it know that we are?

        For `deaf` seconds this broker itself stood still: what came meanwhile may not have been read yet, and
        nobody is taken for silent because of that.
        """
        self._began = min(now, self._began + deaf)
        speaking = self.is_live and not self.outgoing.paused
        gone = self._conversation.beat(now, deaf, listening=self._open, speaking=speaking)
        if self.state is ConnectionState.CONNECTING:
            if now - self._began > self.broker.settings.limits.greeting:
                self.abort("It did not greet in time.")
        elif gone:
            self.abort(SILENT)
        elif self.role is Role.PEER:
            self._look_at_link(now)
        elif self._counted and self.is_live:
            self.outgoing.look()
            self._count()
            self._read_or_wait()
            if self._over_since is not None and now - self._over_since > GRACE:
                self._end_over_share()

    def _look_at_link(self, now: float) -> None:
        """Says that a neighbour is held back, and ends the link to one that does not finish what it sends."""
        if seconds := self._held_back.to_be_told(now):
            extra = {"neighbour": self.name, "seconds": round(seconds, 1)}
            self.broker.log.warning("A neighbour sends more than is taken, and has to wait.", extra=extra)
        held = len(self._conversation.frames) if self._open else 0  # for what is not read it need not hurry
        if self._slow_frame.is_slow(self._conversation.received_frames, held, now):
            self.abort("The neighbour did not finish what it began to send.")

    def read(self, reading: bool) -> None:
        """Backpressure: read what comes in, or let it wait."""
        if reading != self._reading:
            self._reading = reading
            self._read_or_wait()

    def _read_or_wait(self) -> None:
        ahead = READ_AHEAD if self._open else READ_AHEAD // 2
        wanted = (
            self._reading
            and self._inbox.bytes < ahead
            and (self.outgoing.waiting_answers < ahead or self.role is Role.PEER)
            and self._over_since is None
        )
        if self._transport is not None and wanted != self._open and not self._transport.is_closing():
            self._open = wanted
            now = self._loop.time()
            if wanted:
                self._held_back.end(now)
                self._conversation.heartbeat.heard = now
                self._transport.resume_reading()
            else:
                self._held_back.begin(now)
                self._transport.pause_reading()

    # The end

    def refuse(self, problem: PalioError) -> None:
        """End the connection with the reason, as an answer."""
        if self.state in _ENDED:
            return
        self.broker.admission.refused(problem, self.address, self.name)
        kind = "greet" if self.state is ConnectionState.CONNECTING else "connection"
        self.broker.operations.note(self, kind, self.address, problem=problem)
        self._conversation.refuse(problem)
        self.refusal = Refused.of(CONNECTION, problem)
        self.end(str(problem), quietly=True)

    def _refuse_stranger(self, spoken: str) -> None:
        if spoken != "HTTP" or self.peer is not None or self._transport is None:
            advice = " Use palio:// for this port, or give the broker a certificate." if spoken == "TLS" else ""
            self.refuse(NotPalio(spoken, advice))
            return
        reached = self._transport.get_extra_info("sockname")
        other = NotPalio(spoken, f" {where_http_is(self.broker, reached)}")
        if self.state is ConnectionState.CONNECTING:
            self.broker.admission.refused(other, self.address)
            self._transport.write(http_answer(str(other)))
            self.end(str(other), quietly=True)

    def end(self, reason: str, *, quietly: bool = False, event: str = "ending") -> None:
        """End the connection in order: what was said before still goes out."""
        if self.state in _ENDED:
            return
        self.reason = reason
        was_live = self.is_live
        if not quietly:
            self.say(Bye(reason, event == "taken over"))
        self.go("refused" if self.state is ConnectionState.CONNECTING else event)
        if was_live:
            self.broker.admission.ended(self)
        self._give_up_thinking()
        self.outgoing.resume()
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: str) -> None:
        """End the connection at once."""
        if self._transport is None or self.state is ConnectionState.CLOSED:
            return
        if not self.reason:
            self.reason = reason
            self.broker.admission.gave_up(self)
        self._transport.abort()
