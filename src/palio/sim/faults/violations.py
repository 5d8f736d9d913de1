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
    sentence = "{session} was ready before {it} was published, which was confirmed and never came."


class HistoryLost(BrokenPromise, frozen=True, kw_only=True):
    """A notification of the time from which on the subscription wanted everything."""

    sentence = "{session} wanted everything since {since}, and {it} of that never came."
    since: str | float


class Outside(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} got {it}, which its filter `{filter}` does not select."
    filter: str


class AfterEnd(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} got {it} after it had been told that it has ended."


class AfterDone(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} got {it} again, although its acknowledgement had been answered."


class Disorder(BrokenPromise, frozen=True, kw_only=True):
    """First deliveries of a publisher the wrong way round."""

    sentence = "{session} got {it} for the first time after the younger n={after}."
    after: int


class Unmarked(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} got {it} again without a mark that it is a redelivery."


class TwoDeliveries(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} got {it} as delivery {deliveries[0]} and as delivery {deliveries[1]}."
    deliveries: tuple[int, int]


class OneDelivery(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} got both {it} and n={other} as delivery {delivery}."
    delivery: int
    other: int


class BegunAgain(BrokenPromise, frozen=True, kw_only=True):
    """A subscription that is another one than before, though nobody has ended it."""

    sentence = "{session} got {it} from another subscription of its name, and had not ended the first."


class Ghost(BrokenPromise, frozen=True, kw_only=True):
    sentence = "At {broker} the taker of {session} was {taker}, which is not connected."
    broker: str
    taker: str


class PublishedTwice(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{it} was published once and is in the journal also as {other[0]}#{other[1]}."
    other: tuple[str, int]


class SequenceReused(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{it} has the sequence that n={other} had."
    other: int


class ConfirmedTooEarly(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{it} was confirmed and is not on disk."


class NeverSaid(BrokenPromise, frozen=True, kw_only=True):
    """A delivery of something that no origin has in its journal, or not so."""

    sentence = "{session} got {it}, which was never on disk at its origin."


class Expired(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} got {it} {late:.3f} s after the end of its lifetime."
    late: float


class TrimmedTooFar(BrokenPromise, frozen=True, kw_only=True):
    sentence = (
        "The journal of {origin} was trimmed up to {upto}, and {session} has everything only up to {position}."
    )
    origin: str
    upto: int
    position: int


class WrongEpoch(BrokenPromise, frozen=True, kw_only=True):
    """An event or a mark that says of all brokers that it has met that they are in one epoch, and is wrong."""

    sentence = "{broker} sent {notification[0]}#{notification[1]} with an epoch that it was not in."
    broker: str


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
    sentence = "Long after the last fault, {what}."
    what: str


class LeftTooEarly(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{broker} left the network with {head} events, of which {session} had read {position}."
    broker: str
    head: int
    position: int


class ForgottenTooEarly(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{broker} forgot {other} as being away for too long, which it had been for {seconds:.1f} s."
    broker: str
    other: str
    seconds: float


class ForgottenByBoth(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{broker} and {other} did not see each other, and each forgot the other."
    broker: str
    other: str


class DuringPause(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{session} was paused, and {it} was delivered all the same."


class Unquiet(BrokenPromise, frozen=True, kw_only=True):
    sentence = "The network does not fall silent: {reason}."
    reason: str


class TooMuchInMemory(BrokenPromise, frozen=True, kw_only=True):
    sentence = "{broker} had {found} of {what} in memory, of which {allowed} are allowed."
    broker: str
    what: str
    found: int
    allowed: int


class EndedWithError(BrokenPromise, frozen=True, kw_only=True):
    sentence = "A broker ended with an error: {error}."
    error: str
