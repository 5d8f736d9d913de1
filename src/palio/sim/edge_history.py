"""`History`: what happened at the edge of the network. All that the oracle gets to see.

Requests, answers and deliveries are noted in the order in which they happen, each with its *moment*: the
number of the event in which it happened. Moments order everything, also what happens at the same time. Of
the inside of the network there is one fact more: when each notification was last seen on its way.
"""

from __future__ import annotations

from typing import NamedTuple

from palio.protocol.envelope import Envelope
from palio.protocol.vocabulary import Answer
from palio.routing.occurrences import SubscriberMessage


class ClientRequest(NamedTuple):
    """A client sent a message; its access broker has it at the same moment."""

    moment: int
    time: float
    broker: str
    session: str
    message: SubscriberMessage


class BrokerAnswer(NamedTuple):
    """A broker answered a session."""

    moment: int
    time: float
    session: str
    answer: Answer


class Delivery(NamedTuple):
    """A session got a notification."""

    moment: int
    time: float
    session: str
    envelope: Envelope
    handles: tuple[str, ...]


class Disturbance(NamedTuple):
    """A link was missing, from the first moment to the last: the rest of the network after it was back."""

    begin: int
    end: int
    link: int


class History:
    """Everything that clients said and heard in one run.

    `rests` are the moments at which the network was at rest: nothing was under way. What is published during
    one of the `disturbances` may get lost on its way over that link. `last_seen` says when each notification
    (by origin and sequence) was last under way.
    """

    def __init__(self) -> None:
        self.requests: list[ClientRequest] = []
        self.answers: list[BrokerAnswer] = []
        self.deliveries: list[Delivery] = []
        self.rests: list[int] = []
        self.disturbances: list[Disturbance] = []
        self.last_seen: dict[tuple[str, int], int] = {}
        self.unquiet: str = ""  # why the run was stopped before it came to rest, if it was
        self.crash: str = ""  # the error that a broker ended with, if one did
        self.refused_links: list[tuple[str, str, str]] = []  # broker, neighbour, reason

    @property
    def is_broken(self) -> bool:
        """Whether the run ended before its time."""
        return bool(self.unquiet or self.crash)
