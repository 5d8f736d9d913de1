"""Request and reply: a notification that all its takers may answer, and the way back of their replies.

A request goes the way of a notification. Each broker counts to how many takers here and to how many neighbours
it went. A reply is passed on towards the asker at once and not kept; a neighbour's last word says that none
will come from there any more. When every taker has replied and every neighbour has had its last word, so has
this broker. One that has neither takers nor neighbours to ask has it at once: so a request that reaches nobody
is answered as fast as the network can tell.

Who did not answer is counted: takers whose time was over, and neighbours that did not have their last word,
each as one, since nobody knows how many takers are behind them. A session that ends has nothing to say.

A taker that fails says so: its problem goes the way of a reply, and the asker knows that there will be none.

Takers are sessions. Durable subscriptions are none: they get what is journaled, when they can, and a request is
neither journaled nor worth anything later.
"""

from __future__ import annotations

from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.protocol.inquiries import UNTOLD, Answered, Enquire, Request, Requested, Respond, Responded
from palio.routing.core import Core
from palio.routing.echoes import LONGEST_WAIT, Asker, Echo, Echoes, Key, WrongTimeout
from palio.routing.effects import Reply, Send


class _RequestEcho(Echo):
    """A request that is being answered here: which sessions have not replied, and how many never will."""

    __slots__ = ("_requests", "missing", "takers")

    def __init__(self, requests: Requests, envelope: Envelope, asker: Asker) -> None:
        super().__init__(envelope, asker)
        self._requests = requests
        self.takers: dict[str, None] = {}
        self.missing = 0

    def cut(self, branch: str, reason: str) -> None:
        self.missing += 1

    def give_up(self) -> None:
        self.missing += len(self.takers)
        self._requests.dismiss(self)

    def is_complete(self) -> bool:
        return not self.branches and not self.takers

    def conclude(self) -> None:
        self._requests.pass_on(self, None, last=True, missing=self.missing)

    def forgotten(self) -> None:
        self._requests.dismiss(self)


class Requests:
    """This broker's part in request and reply."""

    def __init__(self, core: Core, echoes: Echoes) -> None:
        self._core = core
        self._echoes = echoes
        self._taking: dict[str, dict[Key, None]] = {}  # the requests that each session has not replied to

    # The way there

    def ask(self, session: str, message: Request) -> None:
        """Begins a request. Raises `NoSession`, `NotAdvertised`, `WrongTimeout` or `TooManyInquiries`."""
        if not 0.0 < message.timeout <= LONGEST_WAIT:
            raise WrongTimeout(message.timeout)
        if self._core.configuration.advertisements:
            self._core.sessions.require_advertised(session, (message.notification,))
        envelope = self._echoes.begin(session, message.notification)
        self._spread(envelope, Asker(None, session, message.number), message.timeout)

    def enquire(self, broker: str, message: Enquire) -> None:
        """Handles an `Enquire`: a neighbour passes a request on."""
        envelope = message.envelope
        was_here = self._echoes.was_here(envelope)
        if not was_here and self._echoes.objection(envelope) is None:
            self._spread(envelope, Asker(broker), message.within)
        else:  # who is asked by two ways answers by one of them; otherwise answers are missing
            missing = 0 if was_here else 1
            answer = Answered(envelope.origin, envelope.sequence, last=True, missing=missing)
            self._core.effects.append(Send(broker, answer))

    def _spread(self, envelope: Envelope, asker: Asker, within: float) -> None:
        way = self._core.forwarding.way(envelope, asker.neighbour)
        asked = _RequestEcho(self, envelope, asker)
        for session, handles in way.sessions:
            if not self._core.scopes.sees(session, envelope.notification, "request"):
                continue
            asked.takers[session] = None
            self._taking.setdefault(session, {})[asked.key] = None
            self._core.effects.append(Reply(session, Requested(_id(asked.key), handles, envelope)))
        self._echoes.start(asked, within, way.ports, lambda left: Enquire(way.onward, left))

    # The way back

    def respond(self, session: str, message: Respond) -> None:
        """Handles the reply of a taker. What nobody waits for any more is dropped. Raises `NoSession`."""
        self._core.sessions.get(session)
        asked = self._echoes.get(_key(message.id))
        if not isinstance(asked, _RequestEcho) or session not in asked.takers:
            self._echoes.dropped["late"] += 1
            return
        self._dismiss_one(asked, session)
        if message.notification is not None or message.problem is not None:
            self.pass_on(asked, message.notification, problem=message.problem)
        self._echoes.settle(asked)

    def answered(self, broker: str, message: Answered) -> None:
        """Handles an `Answered`: a neighbour passes a reply on, or has its last word."""
        asked = self._echoes.of_branch((message.origin, message.sequence), broker)
        if not isinstance(asked, _RequestEcho):
            return
        if message.notification is not None or message.problem is not None:
            self.pass_on(asked, message.notification, problem=message.problem)
        if message.last:
            asked.missing += message.missing
            del asked.branches[broker]
            self._echoes.settle(asked)

    def pass_on(
        self,
        asked: _RequestEcho,
        notification: Notification | None,
        *,
        last: bool = False,
        missing: int = 0,
        problem: str | None = None,
    ) -> None:
        """Passes a reply on to who asked, if it may see it."""
        asker = asked.asker
        if notification is not None and asker.neighbour is None:
            if not self._core.scopes.sees(asker.session, notification, "reply"):
                if not last:
                    return
                notification = None
        if problem is not None and asker.neighbour is None and not self._core.scopes.sees_all(asker.session):
            problem = UNTOLD
        self._echoes.tell(
            asked,
            Responded(asked.asker.number, notification, last, missing, problem),
            Answered(*asked.key, notification, last, missing, problem),
        )

    # What ends without a reply

    def session_closed(self, session: str) -> None:
        """Counts a session that ends as having nothing to say to any request."""
        for key in list(self._taking.get(session, ())):
            asked = self._echoes.get(key)
            if isinstance(asked, _RequestEcho):
                self._dismiss_one(asked, session)
                self._echoes.settle(asked)

    def dismiss(self, asked: _RequestEcho) -> None:
        """Forgets the takers of a request: nobody waits for them any more."""
        for session in list(asked.takers):
            self._dismiss_one(asked, session)

    def _dismiss_one(self, asked: _RequestEcho, session: str) -> None:
        del asked.takers[session]
        taking = self._taking[session]
        del taking[asked.key]
        if not taking:
            del self._taking[session]


def _id(key: Key) -> str:
    """The name of a request for its takers: the number first, since brokers may have any name."""
    origin, sequence = key
    return f"{sequence} {origin}"


def _key(id: str) -> Key:
    sequence, _, origin = id.partition(" ")
    return origin, int(sequence) if sequence.isdecimal() and len(sequence) < 20 else -1
