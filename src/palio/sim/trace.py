"""`RunTrace`: every message that a broker handled in a run, and what its clients got.

For people, and for tests.

A line is `time broker < source: message`; what a client gets is `time broker > session: answer`. The same
scenario gives the same text, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from palio.protocol import requests
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Forward, Hello, Interest, LinkState, Update
from palio.protocol.vocabulary import Answer, DurableAnswer, InquiryAnswer
from palio.routing.effects import Deliver
from palio.routing.occurrences import LinkUp, Message

Traced: TypeAlias = Message | Answer | DurableAnswer | InquiryAnswer | Deliver | str  # a text: a timer's name
# What goes to a client.
_OUTWARD = (Deliver, requests.Accepted, requests.Ready, requests.Ended, requests.Published, requests.Refused)


class TraceEntry(NamedTuple):
    moment: int
    time: float
    broker: str
    source: str
    message: Traced

    def __str__(self) -> str:
        arrow = ">" if isinstance(self.message, _OUTWARD) else "<"
        return f"{self.time:.6f} {self.broker} {arrow} {self.source}: {describe(self.message)}"


class RunTrace:
    """The entries of a run, in order."""

    def __init__(self) -> None:
        self.entries: list[TraceEntry] = []

    def note(self, moment: int, time: float, broker: str, source: str, message: Traced) -> None:
        """Something that a broker was told by a source, or told a session."""
        self.entries.append(TraceEntry(moment, time, broker, source, message))

    def lines(self) -> Iterator[str]:
        return map(str, self.entries)

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines())


def describe(message: Traced) -> str:
    """A message in one line that a person can read."""
    match message:
        case str():
            return message
        case requests.Subscribe(handle, filter, ready):
            return f"subscribe {handle}{' (ready)' if ready else ''}: {filter}"
        case requests.Unsubscribe(filter):
            return f"unsubscribe: {filter}"
        case requests.Release(handle):
            return f"release {handle}"
        case requests.Advertise(handle, advertisement, ready):
            return f"advertise {handle}{' (ready)' if ready else ''}: {advertisement}"
        case requests.Unadvertise(advertisement):
            return f"unadvertise: {advertisement}"
        case requests.Publish(notifications, request):
            return f"publish {request}: {_joined(one.to_json() for one in notifications)}"
        case requests.Accepted(handle) | requests.Ready(handle):
            return f"{_name(message)} {handle}"
        case requests.Ended(handles):
            return f"ended {' '.join(handles) or 'nothing'}"
        case requests.Published(request, origin, sequence):
            return f"published {request} as {origin}#{sequence}"
        case requests.Refused(subject, error, reason):
            return f"refused {subject} ({error}): {reason}"
        case LinkUp(kind, cost):
            return f"link up ({kind.value}, cost {cost})"
        case Hello(kind, cost, terms, component):
            return f"hello ({kind.value}, cost {cost}, {terms}, {component.broker}.{component.count})"
        case Update():
            return _update(message)
        case Interest(broker, update, whole):
            return f"interest{' whole' if whole else ''} of {broker}: {_update(update)}"
        case Forward(envelopes):
            return f"forward {_joined(map(_envelope, envelopes))}"
        case LinkState(broker, version, links):
            shown = ", ".join(f"{name} at {cost}" for name, cost in links)
            return f"link state of {broker}, version {version}: {shown}"
        case Deliver(_, envelopes, handles):
            return f"deliver {_joined(map(_envelope, envelopes))} for {' '.join(handles)}"
    values = [getattr(message, field) for field in message.__struct_fields__]
    return f"{_name(message)}{' ' if values else ''}{' '.join(map(str, values))}"


def _name(message: object) -> str:
    return type(message).__name__.lower()


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(texts)


def _update(update: Update) -> str:
    parts = [f"+{number} {filter}" for number, filter in update.add]
    parts += [f"-{number}" for number in update.remove]
    parts += [f"+a{number} {advertisement}" for number, advertisement in update.advertise]
    parts += [f"-a{number}" for number in update.withdraw]
    return f"update {update.version}: {_joined(parts)}"


def _envelope(envelope: Envelope) -> str:
    return f"{envelope.origin}#{envelope.sequence} (hop {envelope.hops}) {envelope.notification.to_json()}"
