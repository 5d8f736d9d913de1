"""Echoes: questions that go the way of a notification, and whose answers come back the same way.

A broker that hears a question works out where a notification would go from here, asks the neighbours on that
way, and answers the one that asked it when all of them have answered. So an answer that comes says that all
behind its sender have been asked. What a question is about, and what answers are made of, is for those who use
this: `tracing` and `requests`.

- A question is named by the broker where it began and a number of that broker. One that was here before is not
  gone on with, so there are no loops, whatever brokers think of the network while it changes.
- Each broker gives the next ones a little less time than it has itself, so that whoever does not answer is
  found out by its neighbour, who still has the time to say so. Times are lengths, not moments, since clocks
  may differ.
- Nobody waits for a neighbour whose link goes down; a question whose asker is gone is forgotten.
- All that is kept is bounded, by number and by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TypeAlias

import msgspec

from palio.model.errors import PalioError
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.protocol.vocabulary import InquiryAnswer, InquiryPeerMessage
from palio.routing.core import Core
from palio.routing.effects import Reply, Send, SetTimer
from palio.routing.forwarding import Seen

# Of the time that a broker has, the next ones get this share.
SHARE_OF_TIME = 15 / 16
# Nobody waits longer than this for an answer, in seconds.
LONGEST_WAIT = 3_600.0
# Questions that one session may have open, and all that a broker works on at a time, with those of neighbours.
MAX_PER_SESSION = 1_024
MAX_PENDING = 65_536
# An answer may be a tree as deep as the way is long, and readers of trees have only so much patience.
MAX_DEPTH = 256

TIMER = "echoes"
INCARNATION_BITS = 30  # what follows is a sequence on the wire, which has at most 62 bits

Key: TypeAlias = tuple[str, int]


class TooManyInquiries(PalioError):
    """A session, or the broker, has too many questions open."""

    limit: int
    sentence = "There are {limit:,} requests and traces open already, which is the limit; wait for answers."


class WrongTimeout(PalioError):
    """A time to wait that is none."""

    timeout: float
    sentence = f"A request cannot wait for {{timeout:g}} seconds: it is more than 0, at most {LONGEST_WAIT:,g}."


class Asker(msgspec.Struct, frozen=True, gc=False):
    """Who wants an answer: a neighbour; or a session of this broker, by the number that it gave it."""

    neighbour: str | None
    session: str = ""
    number: int = 0


class Echo:
    """A question that is being answered here: who asked it, and which neighbours have not answered."""

    __slots__ = ("asker", "branches", "key", "until")

    def __init__(self, envelope: Envelope, asker: Asker) -> None:
        self.key: Key = envelope.origin, envelope.sequence
        self.asker = asker
        self.branches: dict[str, None] = {}
        self.until = 0.0

    def cut(self, branch: str, reason: str) -> None:
        """Note that a neighbour will not answer any more."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Handles the timeout: all neighbours that did not answer have been cut."""

    def forgotten(self) -> None:
        """Handles that whoever asked is gone, and nobody will be answered."""

    def is_complete(self) -> bool:
        return not self.branches

    def conclude(self) -> None:
        """Answer: all that there will be is there."""
        raise NotImplementedError


class EchoStatistics(msgspec.Struct, frozen=True):
    """What a broker works on, and what came of answers that nobody waited for."""

    pending: int
    dropped: dict[str, int]


class Echoes:
    """All questions that are being answered at one broker."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._number = core.configuration.incarnation << INCARNATION_BITS
        self._seen = Seen()
        self._pending: dict[Key, Echo] = {}
        self._asked: dict[str, dict[Key, None]] = {}  # by sessions of this broker
        self._deadlines: list[tuple[float, Key]] = []  # a heap; some of them are answered
        self._timer: float | None = None
        self.dropped: Counter[str] = Counter()

    def statistics(self) -> EchoStatistics:
        return EchoStatistics(len(self._pending), dict(self.dropped))

    # Questions

    def begin(self, session: str, notification: Notification) -> Envelope:
        """Begins a question of a session. Raises `NoSession` or `TooManyInquiries`."""
        self._core.sessions.get(session)
        if len(self._asked.get(session, ())) >= MAX_PER_SESSION:
            raise TooManyInquiries(MAX_PER_SESSION)
        if len(self._pending) >= MAX_PENDING:
            raise TooManyInquiries(MAX_PENDING)
        self._number += 1
        broker = self._core.broker
        self._seen.add(broker, self._number)
        return Envelope(broker, self._number, self._core.now, 0, broker, notification)

    def was_here(self, envelope: Envelope) -> bool:
        """Deduplication: whether a question came by another way before. It is noted."""
        return not self._seen.add(envelope.origin, envelope.sequence)

    def objection(self, envelope: Envelope) -> str | None:
        """Why a question of a neighbour is not gone on with, as a sentence."""
        if envelope.hops > MAX_DEPTH:
            return f"Inquiries end after {MAX_DEPTH} hops."
        if len(self._pending) >= MAX_PENDING:
            return "This broker has too many inquiries to answer."
        return None

    def start(
        self, echo: Echo, within: float, ports: list[str], message: Callable[[float], InquiryPeerMessage]
    ) -> None:
        """Ask the neighbours, with a message for the time that they get; answer when all is there."""
        within = min(max(within, 0.0), LONGEST_WAIT)
        if ports:
            asked = message(within * SHARE_OF_TIME)
            for port in ports:
                echo.branches[port] = None
                self._core.effects.append(Send(port, asked))
        if echo.is_complete():
            echo.conclude()
            return
        echo.until = self._core.now + within
        self._pending[echo.key] = echo
        if echo.asker.neighbour is None:
            self._asked.setdefault(echo.asker.session, {})[echo.key] = None
        self._watch_time(echo)

    def get(self, key: Key) -> Echo | None:
        """A question that is open here."""
        return self._pending.get(key)

    def of_branch(self, key: Key, branch: str) -> Echo | None:
        """The question that a neighbour was asked and has not answered; what it says otherwise is dropped."""
        echo = self._pending.get(key)
        if echo is None or branch not in echo.branches:
            self.dropped["late"] += 1
            return None
        return echo

    def settle(self, echo: Echo) -> None:
        """Answers a question if that was the last answer that it waited for."""
        if echo.is_complete():
            self._forget(echo)
            echo.conclude()

    def tell(self, echo: Echo, to_session: InquiryAnswer, to_neighbour: InquiryPeerMessage) -> None:
        """Send an answer, or a part of one, to who asked."""
        neighbour = echo.asker.neighbour
        if neighbour is None:
            self._core.effects.append(Reply(echo.asker.session, to_session))
        else:
            self._core.effects.append(Send(neighbour, to_neighbour))

    # What ends without an answer

    def link_lost(self, broker: str) -> None:
        """Handles a lost link: nobody waits for that neighbour, and nobody is there to be answered."""
        for echo in list(self._pending.values()):
            if echo.asker.neighbour == broker:
                self._forget(echo)
                echo.forgotten()
            elif broker in echo.branches:
                self._cut(echo, broker, "The link to this broker went down.")
                self.settle(echo)

    def session_closed(self, session: str) -> None:
        """Forgets what a session has asked; brokers that work on it find out that their time is over."""
        for key in list(self._asked.get(session, ())):
            echo = self._pending[key]
            self._forget(echo)
            echo.forgotten()

    def on_timer(self) -> None:
        """Handles timeouts: questions whose time is over are answered with what there is."""
        self._timer = None
        now = self._core.now
        while self._deadlines:
            until, key = self._deadlines[0]
            echo = self._pending.get(key)
            if echo is not None and until > now:
                self._set_timer(until)
                return
            heappop(self._deadlines)
            if echo is not None:
                for branch in list(echo.branches):
                    self._cut(echo, branch, "This broker did not answer in time.")
                echo.give_up()
                self.settle(echo)

    def _cut(self, echo: Echo, branch: str, reason: str) -> None:
        del echo.branches[branch]
        echo.cut(branch, reason)

    def _forget(self, echo: Echo) -> None:
        del self._pending[echo.key]
        session = echo.asker.session
        if echo.asker.neighbour is None:
            asked = self._asked[session]
            del asked[echo.key]
            if not asked:
                del self._asked[session]

    def _watch_time(self, echo: Echo) -> None:
        # One timer for all, for the earliest. It may come due for one that is answered; then it is set again.
        if len(self._deadlines) > 2 * len(self._pending) + 1_024:
            self._deadlines = [one for one in self._deadlines if one[1] in self._pending]
            heapify(self._deadlines)
        heappush(self._deadlines, (echo.until, echo.key))
        if self._timer is None or echo.until < self._timer:
            self._set_timer(echo.until)

    def _set_timer(self, at: float) -> None:
        self._timer = at
        self._core.effects.append(SetTimer(TIMER, at))
