"""`Conversation`: one end of a connection. It is deterministic: no clock, no socket, no randomness.

Bytes and times go in (`feed`, `beat`), and so does what is to be said (`say`, `ask`). Messages come out
(`hear`), and so do the bytes of messages, to whoever was named to take them (`put`). Who connects, and who is
connected to, are the same class: the one greets, the other welcomes. Around it are shells that have a socket
and a clock: a broker's connection, a client's, the visitor who speaks for HTTP; in tests a link with neither.

Invariants, to which tests refer:

1. Until the greeting is over nothing is heard but the greeting, and its refusal; whatever else comes is a
   violation. After it, nothing is heard that the role of the other end does not allow.
2. Both ends speak the same version, or neither hears anything else: who finds another one refuses, with a
   sentence that names both, in a form that every version reads.
3. What is said is put in the order in which it was said.
4. A request has a number that no other one of this end has; an answer or a refusal has that of its request.
5. A ping is answered in its place: who hears the answer knows that all that it said before has been heard.
6. Who hears nothing for three heartbeats, and as long as an answer takes, takes the other end for gone, unless
   it did not listen itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from palio.model.errors import PalioError
from palio.protocol.encoding import encode
from palio.protocol.frames import MAX_FRAME, Frames, FrameTooLarge
from palio.protocol.greeting import CONNECTION, Greet, Welcome, require_version
from palio.protocol.heartbeat import Bye, Due, Heartbeat, Ping, Pong
from palio.protocol.pairing import Pairing
from palio.protocol.requests import Refused
from palio.protocol.strangers import NotPalio, spoken_instead
from palio.protocol.violations import ProtocolViolation

Kept = TypeVar("Kept")
SILENT = "It was silent for too long."


def _unsaid(payload: bytes) -> None:
    """What is said when nobody is there any more."""


class Conversation(Generic[Kept]):
    """What was said and heard on one connection, as far as the protocol goes.

    `read` makes a message of bytes, `put` takes the bytes of a message. With a `greet`, this end connects and
    `hears` these kinds of messages once it is welcome; without one it is connected to. `pairing` has the
    requests of this end, which may be older than the connection.
    """

    def __init__(
        self,
        heartbeat: Heartbeat,
        read: Callable[[bytes], Any],
        put: Callable[[bytes], None],
        *,
        greet: Greet | None = None,
        hears: frozenset[type] = frozenset(),
        frame_limit: int = MAX_FRAME,
        pairing: Pairing[Kept] | None = None,
    ) -> None:
        self.heartbeat = heartbeat
        self._read = read
        self._put = put
        self._greet = greet
        self._will_hear = hears
        self._hears: frozenset[type] = frozenset()
        self.frames = Frames(frame_limit)
        self.pairing: Pairing[Kept] = Pairing() if pairing is None else pairing
        self.is_greeted = False
        self.received_frames = self.received_bytes = 0
        if greet is not None:
            self.say(greet)

    # Hearing

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """The messages that are complete now, as bytes. Raises `FrameTooLarge` and `NotPalio`."""
        self.heartbeat.heard = now
        self.received_bytes += len(data)
        try:
            payloads = self.frames.feed(data)
        except FrameTooLarge as problem:
            spoken = None if self.received_frames else spoken_instead(problem.head)
            if spoken is None:
                raise
            raise NotPalio(spoken) from None
        self.received_frames += len(payloads)
        return payloads

    def hear(self, payload: bytes) -> Any:
        """The message that bytes say, if it is for the shell; None if it was for the conversation alone.

        Raises what `read` raises, and `ProtocolViolation` for what has no place here now.
        """
        message = self._read(payload)
        kind = type(message)
        if kind in self._hears:
            return message
        if kind is Ping:
            self.say(Pong(number=message.number))
            return None
        if kind is Pong:
            self.heartbeat.answered(message.number)
            return message if self.pairing.get(message.number) is not None else None
        if kind is Bye or (kind is Refused and message.subject == CONNECTION):
            return message
        if kind is Greet and self._greet is None and not self.is_greeted:
            require_version(message.protocol)
            return message
        if kind is Welcome and self._greet is not None and not self.is_greeted:
            require_version(message.protocol)
            self.heartbeat.agree(message.heartbeat)
            self._hears = self._will_hear
            self.is_greeted = True
            return message
        raise ProtocolViolation(f"A {kind.__name__.lower()!r} message has no place here now.")

    def welcome(self, greet: Greet, welcome: Welcome, *, hears: frozenset[type], frame_limit: int) -> None:
        """Take the connection of who has greeted, and hear these kinds of messages from it."""
        self.heartbeat.agree(greet.heartbeat)
        self.frames.limit = frame_limit
        self._hears = hears
        self.is_greeted = True
        self.say(msgspec.structs.replace(welcome, heartbeat=self.heartbeat.every))

    # Saying

    def say(self, message: Any) -> None:
        """Something that is no request, or whose answer nobody waits for."""
        self._put(encode(message))

    def end(self) -> None:
        """Say nothing more, and forget who would have to bring it to the other end."""
        self._put = _unsaid

    def ask(self, request: Any, kept: Kept) -> int:
        """Say a request, and keep something until it is answered. Returns its number."""
        numbered = self.pairing.numbered(request)
        self.pairing.add(numbered, kept)
        self.say(numbered)
        number: int = numbered.number
        return number

    def refuse(self, problem: PalioError) -> None:
        """Say why this connection is not taken, or ends."""
        self.say(Refused.of(CONNECTION, problem))

    # Time

    def beat(
        self, now: float, stood_still: float = 0.0, *, listening: bool = True, speaking: bool = True
    ) -> bool:
        """Measure the silence, at least every `heartbeat.pause` seconds; this end `stood_still` for some of it.

        Says `Ping` if that is due. Returns whether the other end is to be taken for gone.
        """
        self.heartbeat.excuse(stood_still, now)
        due = self.heartbeat.due(now, listening=listening, speaking=speaking and self.is_greeted)
        if due is Due.PING:
            self.heartbeat.said = now
            self.say(Ping(number=self.heartbeat.ping(now)))
        return due is Due.GONE
