"""One connection of a broker, to a client or to a neighbour: a shell around a `Conversation`.

It has the socket, the clock, and what the broker decides: who may come in, who has to wait, and what becomes of
who does not read. What is said on it is handed to the broker, as (source, message). What the conversation does
not allow ends the connection with a sentence; it never reaches the core.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

import msgspec

from palio.broker.access import ANYONE, Principal
from palio.broker.border import Border, border
from palio.broker.limits import MAX_NAME
from palio.broker.misdirected import http_answer, where_http_is
from palio.broker.outgoing import Outgoing, OutgoingStatistics
from palio.broker.settings import Peer
from palio.broker.states import TRANSITIONS, ConnectionState
from palio.language import read_filter
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.conversation import SILENT, Conversation
from palio.protocol.encoding import UnreadableMessage, decode, refusal_of
from palio.protocol.frames import GREETING_FRAME, FrameTooLarge
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.heartbeat import Bye, Heartbeat
from palio.protocol.inquiries import Inspect
from palio.protocol.requests import Publish, Refused
from palio.protocol.strangers import NotPalio
from palio.protocol.violations import ProtocolViolation
from palio.protocol.vocabulary import FROM_BROKERS, FROM_CLIENTS

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# Seconds after which a message counts as one that costs the broker much: a filter that is hard to understand.
LONG_THOUGHT = 0.05
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


class BrokerConnection(asyncio.Protocol):
    """A connection of a broker that was accepted, or (with a `peer`) dialled."""

    def __init__(self, broker: BrokerServer, peer: Peer | None = None, token: str | None = None) -> None:
        self.broker = broker
        self.peer = peer
        self._token = token
        self._border: tuple[Any, Border | None] = None, None
        self.role: Role | None = None
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
        self._reading = True  # as far as the broker goes
        self._open = True  # and in fact
        self._resting = False
        self._waiting: deque[bytes] = deque()
        self.acting_for: Principal | None = None  # known without a greeting's token: it is from within

    def statistics(self) -> ConnectionStatistics:
        role = self.role.value if self.role is not None else "unknown"
        heard = self._conversation.received_frames, self._conversation.received_bytes
        said = self.outgoing.statistics()
        return ConnectionStatistics(self.name, role, self.state.value, self.address, self._since, *heard, said)

    def go(self, event: str) -> None:
        """Change the state as the table of transitions says."""
        self.state = TRANSITIONS[self.state][event]

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The verified certificate of the other end, if it has shown one."""
        return self._transport.get_extra_info("peercert") if self._transport is not None else None

    @property
    def border(self) -> Border | None:
        """What a neighbour may get and give; None for one of the same domain, who may everything.

        For a broker that was dialled the settings say so, for one that has connected its principal's rights.
        """
        allowed = self.peer if self.peer is not None else self.principal.rights
        if self._border[0] is not allowed:
            if isinstance(allowed, Peer):
                found = border(read_filter(allowed.export), Filter(), self.broker.dropped)
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
        self._converse()
        self.broker.admission.connected(self)

    def _converse(self) -> None:
        settings = self.broker.settings
        heartbeat = Heartbeat(settings.heartbeat, self._loop.time())
        if self.peer is None:
            self._conversation = Conversation(heartbeat, decode, self.put, frame_limit=GREETING_FRAME)
            return
        # Who was dialled may go on right after its welcome; who dials has to wait for it.
        peer, limit = self.peer, settings.limits.peer_frame(settings.durable)
        greet = Greet(PROTOCOL, Role.PEER, settings.name, self._token, peer.kind, peer.cost, settings.heartbeat)
        self._conversation = Conversation(
            heartbeat, decode, self.put, greet=greet, hears=FROM_BROKERS, frame_limit=limit
        )

    def data_received(self, data: bytes) -> None:
        try:
            self._waiting += self._conversation.feed(data, self._loop.time())
        except NotPalio as problem:
            self._refuse_stranger(problem.spoken)
            return
        except FrameTooLarge as problem:
            self.refuse(problem)
            return
        if not self._resting:
            self._take()

    def _take(self) -> None:
        """Reads messages. Throttling: who makes the broker think for long has to wait as long."""
        waiting = self._waiting
        while waiting and self.state not in _ENDED:
            payload = waiting.popleft()
            began = self._loop.time()
            kind: type | None = None
            try:
                kind = self._hear(payload)
            except PalioError as problem:
                self.refuse(problem)
            except Exception:
                self.broker.log.exception("A message could not be handled.", extra={"connection": self.name})
                self.refuse(ProtocolViolation("The broker could not handle this message; this is its mistake."))
            took = self._loop.time() - began
            if took > LONG_THOUGHT and kind is not Publish and self.role is not Role.PEER:
                self._rest(took)
                return

    def _rest(self, seconds: float) -> None:
        self._resting = True
        self._read_or_wait()
        self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._resting = False
        self._conversation.heartbeat.heard = self._loop.time()
        self._take()
        self._read_or_wait()

    def connection_lost(self, exception: Exception | None) -> None:
        if self.is_live and self._waiting:
            self._take()  # what was said before the end was meant, as far as it is no long thought again
        was_live = self.is_live
        moved = self.state is ConnectionState.MOVED
        if not self.reason:
            self.reason = f"The connection was lost: {exception}." if exception else "The other end closed it."
        self.go("lost")
        self.broker.admission.disconnected(self, was_live=was_live and not moved)
        if not self.closed.done():
            self.closed.set_result(self.reason)

    def pause_writing(self) -> None:
        self.outgoing.pause()
        if self.state is ConnectionState.LIVE:
            self.go("paused")

    def resume_writing(self) -> None:
        if self.state is ConnectionState.SUSPENDED:
            self.go("resumed")
        self.outgoing.resume()

    # Hearing

    def _hear(self, payload: bytes) -> type | None:
        """Handles one message. Returns what it was, if it was one for the broker."""
        try:
            message = self._conversation.hear(payload)
        except UnreadableMessage as problem:
            refusal = refusal_of(payload, problem) if self.role is Role.CLIENT and problem.error else None
            if refusal is None:
                raise
            self.say(refusal)
            return None
        kind = type(message)
        if kind is Inspect:
            self.broker.inspected(self, message)
        elif kind is Bye or kind is Refused:
            self.end(message.reason, quietly=True)
        elif kind is Greet:
            self._greeted(message)
        elif kind is Welcome:
            self._welcomed(message)
        elif message is not None:
            self.broker.take(message, self, len(payload))
        return kind

    def _greeted(self, greet: Greet) -> None:
        _require_name(greet.name)
        self.broker.admission.admit(self, greet)
        is_client = greet.role is Role.CLIENT
        self.name = self.principal.own(greet.name) if is_client else greet.name
        self.role = greet.role
        settings = self.broker.settings
        limits = settings.limits
        self._conversation.welcome(
            greet,
            Welcome(PROTOCOL, settings.name, max_frame=limits.frame, journal=settings.journal),
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
        self.broker.admission.admit_peer(self, welcome.broker)
        self.go("greeted")
        self.broker.admission.linked(self, self.peer.kind, self.peer.cost)

    # Saying

    def say(self, message: Any) -> None:
        """Send a message, at the end of this turn."""
        self._conversation.say(message)

    def put(self, payload: bytes, events: int = 0) -> None:
        """Send the bytes of a message, at the end of this turn."""
        self.outgoing.put(payload, events)
        self.broker.will_flush(self)

    def flush(self) -> None:
        """Write what was said in this turn; end what is beyond its limits."""
        self.outgoing.flush()
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

    def read(self, reading: bool) -> None:
        """Backpressure: read what comes in, or let it wait."""
        if reading != self._reading:
            self._reading = reading
            self._read_or_wait()

    def _read_or_wait(self) -> None:
        wanted = self._reading and not self._resting
        if self._transport is not None and wanted != self._open and not self._transport.is_closing():
            self._open = wanted
            if wanted:
                self._conversation.heartbeat.heard = self._loop.time()
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    # The end

    def refuse(self, problem: PalioError) -> None:
        """End the connection with the reason, as an answer."""
        if self.state in _ENDED:
            return
        self.broker.admission.refused(problem, self.address, self.name)
        self._conversation.refuse(problem)
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
