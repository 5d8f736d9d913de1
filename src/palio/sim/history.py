"""`History`: what happened at the edge of the network. All that the oracle gets to see.

Requests, answers and deliveries are noted in the order in which they happen, each with its *moment*: the
number of the event in which it happened. Moments order everything, also what happens at the same time. Of
the inside of the network there is one fact more: when each notification was last seen on its way.
"""

from __future__ import annotations

from typing import NamedTuple

from palio.routing.messages import Answer, ClientMessage, Envelope


class Request(NamedTuple):
    """A client sent a message; its access broker has it at the same moment."""

    moment: int
    time: float
    broker: str
    session: str
    message: ClientMessage


class Answered(NamedTuple):
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


class History:
    """Everything that clients said and heard in one run.

    `rests` are the moments at which the network was at rest: nothing was under way. `disturbances` are spans
    of moments in which links were missing, up to the rest after they were back; what is published then may
    get lost. `last_seen` says when each notification (by origin and sequence) was last under way.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answered] = []
        self.deliveries: list[Delivery] = []
        self.rests: list[int] = []
        self.disturbances: list[tuple[int, int]] = []
        self.last_seen: dict[tuple[str, int], int] = {}
        self.unquiet: str = ""  # why the run was stopped before it came to rest, if it was
        self.refused_links: list[tuple[str, str, str]] = []  # broker, neighbour, reason
