"""Violations: what can be wrong with a run. Each kind is a record, and `str` of it is a sentence."""

from __future__ import annotations

from typing import ClassVar

import msgspec

Name = tuple[str, int]  # of a notification: origin and sequence


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all; `session` and `notification` say whom and what it is about, where it is about any.

    `sentence` has the fields in their places, and `it` for the notification.
    """

    sentence: ClassVar[str]
    session: str = ""
    notification: Name | None = None

    def __str__(self) -> str:
        return self.sentence.format(**msgspec.structs.asdict(self), it=self._it)

    @property
    def _it(self) -> str:
        return "a notification" if self.notification is None else "{}#{}".format(*self.notification)


class Missing(Violation, frozen=True, kw_only=True):
    sentence = "{session} did not get {it}, which its subscription `{filter}` selects."
    filter: str


class Unwanted(Violation, frozen=True, kw_only=True):
    """A notification for a session that has no subscription for it."""

    ended: bool = False

    def __str__(self) -> str:
        reason = "after its subscription had ended" if self.ended else "without a subscription that selects it"
        return f"{self.session} got {self._it} {reason}."


class Duplicate(Violation, frozen=True, kw_only=True):
    sentence = "{session} got {it} more than once."


class WrongHandles(Violation, frozen=True, kw_only=True):
    """A delivery that names other subscriptions than those that the notification satisfies."""

    expected: tuple[str, ...]
    got: tuple[str, ...]

    def __str__(self) -> str:
        expected, got = (" ".join(handles) or "none" for handles in (self.expected, self.got))
        return f"{self.session} got {self._it} for the handles {got}; it should have been {expected}."


class OutOfOrder(Violation, frozen=True, kw_only=True):
    sentence = "{session} got {it} of {publisher} after {after[0]}#{after[1]}, which is younger."
    publisher: str
    after: Name


class NeverPublished(Violation, frozen=True, kw_only=True):
    """Something that nobody said, or not so."""

    altered: bool = False

    def __str__(self) -> str:
        if self.altered:
            return f"{self.session} got {self._it} with another content than was published."
        return f"{self.session} got {self._it}, which nobody published."


class WrongAnswer(Violation, frozen=True, kw_only=True):
    sentence = "{session} was answered `{got}` to `{request}`, not `{expected}`."
    request: str
    expected: str
    got: str


class NotReady(Violation, frozen=True, kw_only=True):
    """A client that waits for `ready` although the network is at rest."""

    sentence = "The network is at rest and {session} has not been told that {handle} is ready."
    handle: str


class NotAtRest(Violation, frozen=True, kw_only=True):
    sentence = "The network does not come to rest: {reason}."
    reason: str


class Crashed(Violation, frozen=True, kw_only=True):
    sentence = "A broker ended with an error: {error}."
    error: str


class LinkRefused(Violation, frozen=True, kw_only=True):
    sentence = "{broker} refused its link with {neighbour}: {reason}"
    broker: str
    neighbour: str
    reason: str


class RowsDiffer(Violation, frozen=True, kw_only=True):
    sentence = "{broker} recorded for {neighbour} the {what} {number} as `{sent}`, which is `{received}` there."
    broker: str
    neighbour: str
    what: str
    number: int
    sent: str
    received: str


class TableLacks(Violation, frozen=True, kw_only=True):
    sentence = "At {broker}, nothing from {neighbour} covers `{filter}`, which is wanted there."
    broker: str
    neighbour: str
    filter: str


class TableExcess(Violation, frozen=True, kw_only=True):
    sentence = "At {broker}, `{filter}` is still there for {neighbour}; nobody wants it there."
    broker: str
    neighbour: str
    filter: str
