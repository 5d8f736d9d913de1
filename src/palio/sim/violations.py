"""Violations: what can be wrong with a run. Each kind is a record, and `str` of it is a sentence."""

from __future__ import annotations

import msgspec

Name = tuple[str, int]  # of a notification: origin and sequence


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all; `session` and `notification` say whom and what it is about, where it is about any."""

    session: str = ""
    notification: Name | None = None

    @property
    def _what(self) -> str:
        return "a notification" if self.notification is None else "{}#{}".format(*self.notification)


class Missing(Violation, frozen=True, kw_only=True):
    """A notification that had to come and did not."""

    filter: str

    def __str__(self) -> str:
        return f"{self.session} did not get {self._what}, which its subscription `{self.filter}` selects."


class Unwanted(Violation, frozen=True, kw_only=True):
    """A notification for a session that has no subscription for it."""

    ended: bool = False

    def __str__(self) -> str:
        reason = "after its subscription had ended" if self.ended else "without a subscription that selects it"
        return f"{self.session} got {self._what} {reason}."


class Duplicate(Violation, frozen=True, kw_only=True):
    """The same notification for the same session once more."""

    def __str__(self) -> str:
        return f"{self.session} got {self._what} more than once."


class WrongHandles(Violation, frozen=True, kw_only=True):
    """A delivery that names other subscriptions than those that the notification satisfies."""

    expected: tuple[str, ...]
    got: tuple[str, ...]

    def __str__(self) -> str:
        expected, got = (" ".join(handles) or "none" for handles in (self.expected, self.got))
        return f"{self.session} got {self._what} for the handles {got}; it should have been {expected}."


class OutOfOrder(Violation, frozen=True, kw_only=True):
    """Two notifications of one publisher the wrong way round."""

    publisher: str
    after: Name

    def __str__(self) -> str:
        later = "{}#{}".format(*self.after)
        return f"{self.session} got {self._what} of {self.publisher} after {later}, which is younger."


class NeverPublished(Violation, frozen=True, kw_only=True):
    """Something that nobody said, or not so."""

    altered: bool = False

    def __str__(self) -> str:
        if self.altered:
            return f"{self.session} got {self._what} with another content than was published."
        return f"{self.session} got {self._what}, which nobody published."


class WrongAnswer(Violation, frozen=True, kw_only=True):
    """A request that was not answered as it should have been."""

    request: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.session} was answered `{self.got}` to `{self.request}`, not `{self.expected}`."


class NotReady(Violation, frozen=True, kw_only=True):
    """A client that waits for `ready` although the network is at rest."""

    handle: str

    def __str__(self) -> str:
        return f"The network is at rest and {self.session} has not been told that {self.handle} is ready."


class NotAtRest(Violation, frozen=True, kw_only=True):
    """A network that goes on and on."""

    reason: str

    def __str__(self) -> str:
        return f"The network does not come to rest: {self.reason}."


class Crashed(Violation, frozen=True, kw_only=True):
    """A broker that ended with an error."""

    error: str

    def __str__(self) -> str:
        return f"A broker ended with an error: {self.error}."


class LinkRefused(Violation, frozen=True, kw_only=True):
    """A link that a broker would not use."""

    broker: str
    neighbour: str
    reason: str

    def __str__(self) -> str:
        return f"{self.broker} refused its link with {self.neighbour}: {self.reason}"


class RowsDiffer(Violation, frozen=True, kw_only=True):
    """A broker recorded something else as sent than its neighbour has."""

    broker: str
    neighbour: str
    what: str
    number: int
    sent: str
    received: str

    def __str__(self) -> str:
        return (
            f"{self.broker} recorded for {self.neighbour} the {self.what} {self.number} as `{self.sent}`, "
            f"which is `{self.received}` there."
        )


class TableLacks(Violation, frozen=True, kw_only=True):
    """A table after churn lacks something that a table built from scratch has."""

    broker: str
    neighbour: str
    filter: str

    def __str__(self) -> str:
        return f"At {self.broker}, nothing from {self.neighbour} covers `{self.filter}`, which is wanted there."


class TableExcess(Violation, frozen=True, kw_only=True):
    """A table after churn holds something that nobody wants any more."""

    broker: str
    neighbour: str
    filter: str

    def __str__(self) -> str:
        return f"At {self.broker}, `{self.filter}` is still there for {self.neighbour}; nobody wants it there."
