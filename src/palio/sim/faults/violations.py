"""Violations of what durable delivery promises. Each kind is a broken promise, `str` of it is a sentence."""

from __future__ import annotations

from palio.sim.violations import Violation


class BrokenPromise(Violation, frozen=True, kw_only=True):
    """The base of all; `session` is the durable subscription, `number` that of the notification."""

    number: int | None = None

    @property
    def _it(self) -> str:
        place = "" if self.notification is None else " ({}#{})".format(*self.notification)
        return f"n={self.number}{place}"


class LostNotification(BrokenPromise, frozen=True, kw_only=True):
    """A confirmed notification that a subscription should have got and did not."""

    def __str__(self) -> str:
        return f"{self.session} was ready before {self._it} was published, which was confirmed and never came."


class HistoryLost(BrokenPromise, frozen=True, kw_only=True):
    """A notification of the time from which on the subscription wanted everything."""

    since: str | float

    def __str__(self) -> str:
        return f"{self.session} wanted everything since {self.since}, and {self._it} of that never came."


class Outside(BrokenPromise, frozen=True, kw_only=True):
    """Something that the subscription's filter does not select."""

    filter: str

    def __str__(self) -> str:
        return f"{self.session} got {self._it}, which its filter `{self.filter}` does not select."


class AfterEnd(BrokenPromise, frozen=True, kw_only=True):
    """Something for a subscription that has ended."""

    def __str__(self) -> str:
        return f"{self.session} got {self._it} after it had been told that it has ended."


class AfterDone(BrokenPromise, frozen=True, kw_only=True):
    """Something once more whose acknowledgement had been answered."""

    def __str__(self) -> str:
        return f"{self.session} got {self._it} again, although its acknowledgement had been answered."


class Disorder(BrokenPromise, frozen=True, kw_only=True):
    """First deliveries of a publisher the wrong way round."""

    after: int

    def __str__(self) -> str:
        return f"{self.session} got {self._it} for the first time after the younger n={self.after}."


class Unmarked(BrokenPromise, frozen=True, kw_only=True):
    """A redelivery that claims to be the first delivery."""

    def __str__(self) -> str:
        return f"{self.session} got {self._it} again without a mark that it is a redelivery."


class TwoDeliveries(BrokenPromise, frozen=True, kw_only=True):
    """One notification under two delivery numbers."""

    deliveries: tuple[int, int]

    def __str__(self) -> str:
        one, other = self.deliveries
        return f"{self.session} got {self._it} as delivery {one} and as delivery {other}."


class OneDelivery(BrokenPromise, frozen=True, kw_only=True):
    """Two notifications under one delivery number."""

    delivery: int
    other: int

    def __str__(self) -> str:
        return f"{self.session} got both {self._it} and n={self.other} as delivery {self.delivery}."


class BegunAgain(BrokenPromise, frozen=True, kw_only=True):
    """A subscription that is another one than before, though nobody has ended it."""

    def __str__(self) -> str:
        return (
            f"{self.session} got {self._it} from another subscription of its name, and had not ended the first."
        )


class Ghost(BrokenPromise, frozen=True, kw_only=True):
    """A taker that is not connected."""

    broker: str
    taker: str

    def __str__(self) -> str:
        return f"At {self.broker} the taker of {self.session} was {self.taker}, which is not connected."


class PublishedTwice(BrokenPromise, frozen=True, kw_only=True):
    """A notification with an id that is in the journal twice."""

    other: tuple[str, int]

    def __str__(self) -> str:
        return "{} was published once and is in the journal also as {}#{}.".format(self._it, *self.other)


class SequenceReused(BrokenPromise, frozen=True, kw_only=True):
    """A sequence that was seen or confirmed and given to another notification."""

    other: int

    def __str__(self) -> str:
        return f"{self._it} has the sequence that n={self.other} had."


class ConfirmedTooEarly(BrokenPromise, frozen=True, kw_only=True):
    """A confirmation of something that is not on disk."""

    def __str__(self) -> str:
        return f"{self._it} was confirmed and is not on disk."


class NeverSaid(BrokenPromise, frozen=True, kw_only=True):
    """A delivery of something that no origin has in its journal, or not so."""

    def __str__(self) -> str:
        return f"{self.session} got {self._it}, which was never on disk at its origin."


class Expired(BrokenPromise, frozen=True, kw_only=True):
    """A delivery of something that had outlived its lifetime."""

    late: float

    def __str__(self) -> str:
        return f"{self.session} got {self._it} {self.late:.3f} s after the end of its lifetime."


class TrimmedTooFar(BrokenPromise, frozen=True, kw_only=True):
    """A journal that was trimmed beyond the position of a subscription."""

    origin: str
    upto: int
    position: int

    def __str__(self) -> str:
        return (
            f"The journal of {self.origin} was trimmed up to {self.upto}, and {self.session} has "
            f"everything only up to {self.position}."
        )


class WrongEpoch(BrokenPromise, frozen=True, kw_only=True):
    """An event or a mark that says of all brokers that it has met that they are in one epoch, and is wrong."""

    broker: str

    def __str__(self) -> str:
        origin, sequence = self.notification or ("", 0)
        return f"{self.broker} sent {origin}#{sequence} with an epoch that it was not in."


class WrongHomes(BrokenPromise, frozen=True, kw_only=True):
    """A subscription that is not at exactly one home when all is quiet, or one that has ended and is at one."""

    homes: tuple[str, ...]
    place: str
    ended: bool

    def __str__(self) -> str:
        homes = " and ".join(self.homes) or "nowhere"
        ended = " although it has ended" if self.ended else ""
        return f"At the end {self.session} is at {homes}{ended} ({self.place})."


class Unanswered(BrokenPromise, frozen=True, kw_only=True):
    """A client that waits for something although all faults are long over."""

    what: str

    def __str__(self) -> str:
        return f"Long after the last fault, {self.what}."


class DuringPause(BrokenPromise, frozen=True, kw_only=True):
    """Something that was delivered while the subscription was paused."""

    def __str__(self) -> str:
        return f"{self.session} was paused, and {self._it} was delivered all the same."


class Unquiet(BrokenPromise, frozen=True, kw_only=True):
    """A network that goes on and on after the last fault."""

    reason: str

    def __str__(self) -> str:
        return f"The network does not fall silent: {self.reason}."


class TooMuchInMemory(BrokenPromise, frozen=True, kw_only=True):
    """More in the memory of a broker than its settings allow."""

    broker: str
    what: str
    found: int
    allowed: int

    def __str__(self) -> str:
        return f"{self.broker} had {self.found} of {self.what} in memory, of which {self.allowed} are allowed."


class EndedWithError(BrokenPromise, frozen=True, kw_only=True):
    """A broker that ended with an error of its own."""

    error: str

    def __str__(self) -> str:
        return f"A broker ended with an error: {self.error}."
