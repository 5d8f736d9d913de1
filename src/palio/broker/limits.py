"""Limits on what clients do: how many connect, from where and as whom, and how fast they publish.

Each has an error that says the number and the setting, and is counted by the name of that error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from palio.model.errors import PalioError, TooFast, cut

# A client may publish at once what it may publish in so many seconds.
BURST_SECONDS = 1.0
# Characters of a name: of a broker, of a client, of what a client names. It travels with events, as a label.
MAX_NAME = 255


class TooManyConnections(PalioError):
    """There are as many connections as there may be: in all, of one machine, or of one principal."""

    limit: int
    of: str = ""

    def sentence(self) -> str:
        whose = f" of {self.of}" if self.of else ""
        return f"This broker has {self.limit:,} connections{whose}, as many as it may."


class TooManySubscriptions(PalioError):
    """A client has as many subscriptions and advertisements as it may."""

    limit: int
    sentence = (
        "This client has {limit:,} subscriptions, durable ones among them, and advertisements, as many as it "
        "may; release some, or raise the limit `limits.subscriptions` of the broker."
    )


class TooMuchSubscribed(PalioError):
    """A principal, or all of them, have as much subscribed and advertised as a broker has memory for."""

    limit: int
    setting: str
    sentence = (
        "The subscriptions and advertisements of this broker's clients need more than {limit:,} bytes of its "
        "memory, as much as they may; release some, or raise the limit `{setting}` of the broker."
    )


class WrongName(PalioError):
    """A name of a client's own that cannot be one: `what` it is of, and how many characters it `got`."""

    what: str
    got: int
    limit: int = MAX_NAME
    sentence = "The name of {what} has 1 to {limit:,} characters; this one has {got:,}. Choose another one."


def require_name(what: str, name: str) -> None:
    """Raises `WrongName` for an empty name, and for one that is too long to be carried around."""
    if not 0 < len(name) <= MAX_NAME:
        raise WrongName(what, got=len(name))


class TooManyAttributes(PalioError, kw_only=True):
    """A notification with more attributes than are taken."""

    limit: int
    got: int
    sentence = "This notification has {got:,} attributes; the limit `limits.attributes` is {limit:,}."


class ReservedAttribute(PalioError):
    """An attribute that only the broker gives, which has read a document."""

    attribute: str
    sentence = (
        "The attribute {attribute!r} says what a document is, and comes from reading it. Publish the document "
        "itself: `publish_document`, `palio pub --xml` or POST /documents."
    )


class BrokersOnly(PalioError):
    """An attribute that only brokers give, which say by it what has happened to their links."""

    attribute: str = cut(200)
    sentence = "The attribute {attribute!r} is for what brokers say of their links; choose another name."


class ConnectionTally:
    """How many there are of each: connections by address, or by principal."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()

    def add(self, key: str) -> None:
        """One more. Raises `TooManyConnections`; it counts all the same, until it is removed."""
        self._counts[key] += 1
        if self._counts[key] > self._limit:
            raise TooManyConnections(self._limit, key)

    def remove(self, key: str) -> None:
        self._counts[key] -= 1
        if self._counts[key] <= 0:
            del self._counts[key]


class Rates:
    """Rate limits on publishing: a token bucket a client, which fills at the rate and holds a second of it.

    Where clients have principals, those of one principal have one bucket: who connects again wins nothing.
    """

    def __init__(self, rate: float, now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}  # how much there is, and since when

    def require(self, client: str, count: int) -> None:
        """Take so many out of a client's bucket. Raises `TooFast` if it has less, and takes nothing."""
        if not self._rate:
            return
        now = self._now()
        most = max(1.0, self._rate * BURST_SECONDS)
        there, since = self._buckets.get(client, (most, now))
        there = min(most, there + (now - since) * self._rate)
        # What is more than a bucket holds could never be: it goes through when the bucket is full, and is owed.
        if there < min(count, most):
            self._buckets[client] = there, now
            raise TooFast(self._rate)
        self._buckets[client] = there - count, now

    def forget(self, client: str) -> None:
        self._buckets.pop(client, None)
