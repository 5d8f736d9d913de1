"""Subscribing, advertising, publishing: what clients ask of the broker that they are with, and what it answers.

A handle is the client's own name for a subscription or an advertisement.
"""

from __future__ import annotations

from typing import Any

from palio.model.advertisement import Advertisement
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.base import Number, Numbered, Paired, WireMessage


class Subscribe(Numbered, frozen=True):
    """Ask for all that the filter selects.

    A filter that the session has subscribed already is the same subscription, with one more handle.
    With `ready`, a `Ready` follows once the whole network knows of it.
    """

    handle: str
    filter: Filter
    ready: bool = False


class Release(Numbered, frozen=True):
    """Release a handle; a subscription or an advertisement without handles ends."""

    handle: str


class Unsubscribe(Numbered, frozen=True):
    """End every subscription of the session that the filter covers, whatever its handles."""

    filter: Filter


class Advertise(Numbered, frozen=True):
    """Advertise what will be published. Handles, repetition and `ready` are as in `Subscribe`."""

    handle: str
    advertisement: Advertisement
    ready: bool = False


class Unadvertise(Numbered, frozen=True):
    """End every advertisement of the session that this one covers, whatever its handles."""

    advertisement: Advertisement


class Publish(WireMessage, frozen=True):
    """Publish notifications, in the order in which their takers shall get them.

    Whoever publishes the same again, under the same ids, is recognised by its name: that of the session, or
    that of a `publisher` that has several sessions, at the same time or one after the other.
    """

    notifications: tuple[Notification, ...]
    number: Number = 0
    publisher: str = ""


class PublishDocuments(WireMessage, frozen=True):
    """Publish XML documents, each the payload of a notification, as `Publish` does.

    Their broker reads them first: what the paths of their family find is added to the attributes, and what
    cannot be read refuses all of them. It came into this version of the protocol later
    (`vocabulary.LATER_REQUESTS`).
    """

    notifications: tuple[Notification, ...]
    number: Number = 0
    publisher: str = ""


# The answers.


class Accepted(Numbered, frozen=True):
    """The broker holds the subscription or advertisement; `handle` is its name."""

    handle: str


class Ready(WireMessage, frozen=True):
    """The whole network knows of the subscription or advertisement."""

    handle: str


class Ended(Numbered, frozen=True):
    """These handles have come to their end, by whatever request."""

    handles: tuple[str, ...]


class Published(Paired, frozen=True):
    """Confirmation: the notifications were taken and numbered from `sequence` on at this origin.

    `sequences` names all of them, where some were known already and have other numbers.
    """

    origin: str
    sequence: Number
    sequences: tuple[Number, ...] = ()


_LONGEST_FIELD = 4_096


def _travels(value: Any) -> bool:
    """Whether a field of an error goes with it: it is plain, and not long."""
    match value:
        case str():
            return len(value) <= _LONGEST_FIELD
        case int():
            return -(2**63) <= value < 2**63
        case _:
            return isinstance(value, float)


class Refused(Numbered, frozen=True):
    """A request that was not carried out, or (without a number) a connection that is not taken, or ends.

    `subject` says for people which it was (`subjects`). `error` names the type of the error, `reason` is its
    sentence, `fields` what the sentence is made of.
    """

    subject: str
    error: str
    reason: str
    fields: dict[str, Any] = {}  # noqa: RUF012 (a struct makes a new one each time)

    @property
    def kind(self) -> str:
        """What kind of request it was."""
        return self.subject.partition(" ")[0]

    @classmethod
    def of(cls, subject: str, problem: PalioError, number: int = 0) -> Refused:
        """The refusal that tells somebody of an error."""
        plain = {name: value for name, value in problem.fields.items() if _travels(value)}
        return cls(subject, type(problem).__name__, str(problem), plain, number=number)
