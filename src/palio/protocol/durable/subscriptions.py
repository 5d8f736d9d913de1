"""Durable subscriptions: attaching, acknowledging, rejecting and ending, and what clients are told."""

from __future__ import annotations

from typing import Annotated

import msgspec

from palio.model.filter import Filter
from palio.protocol.base import Moment, Number, Numbered, WireMessage
from palio.protocol.durable.attempts import MAX_REASON
from palio.protocol.durable.lineage import GapKind, Lineage
from palio.protocol.durable.retry import Patience, Retry


class OfSubscription(Numbered, frozen=True):
    """About a durable subscription, by its name, which is unique in the network (principal and name)."""

    name: str


class OfDeliveries(OfSubscription, frozen=True):
    """About deliveries or dead letters of a durable subscription, by their numbers."""

    deliveries: tuple[Number, ...]


class Attach(OfSubscription, frozen=True):
    """Become the taker (consumer) of a durable subscription; create it if there is none of that name.

    `since` is for a new one: "now", "all", or a time in seconds; and so is `after`, a position: of the origins
    that it names, what follows those sequences is wanted, and `lineages` are those of the journals that it is a
    position of, where that is known. A subscription of that name at a home that cannot be
    reached is not guessed to be none: that is refused, unless the client asks to begin `anew`.

    If there is one with another filter, that is refused, unless the client takes it `as_is`. Without a filter
    the one that is there is meant, and none is created.

    `linger` is how many seconds the subscription outlives its taker. None leaves that as it is, which for a new
    one is the broker's own limit. `retry` is how often and after which pauses the subscription wants what
    failed to be tried again; None leaves that as it is, too. `in_flight` is how many deliveries may be out to
    this taker at a time, and `patience` how it is treated otherwise, if not as the broker says.
    """

    filter: Filter | None
    since: str | Moment = "now"
    anew: bool = False
    linger: Moment | None = None
    in_flight: Number | None = None
    after: dict[str, Number] | None = None
    patience: Patience | None = None
    as_is: bool = False
    retry: Retry | None = None
    lineages: dict[str, Lineage] | None = None

    @property
    def expected(self) -> Filter | None:
        return None if self.as_is else self.filter


class Change(OfSubscription, frozen=True):
    """Change the filter of a durable subscription in place."""

    filter: Filter


class Acknowledged(OfDeliveries, frozen=True):
    """Acknowledge deliveries: the client has done with them."""


class Rejected(OfDeliveries, frozen=True):
    """Reject deliveries: the client could not deal with them; they are redelivered, or become dead letters.

    They come after a pause, or after the `delay`, in seconds. A taker that knows that nobody ever will be able
    to deal with them wants them to be dead letters at once. The reason is for whoever looks at these.
    """

    delay: Moment | None = None
    reason: Annotated[str, msgspec.Meta(max_length=MAX_REASON)] = ""
    dead_letter: bool = False


class Detach(OfSubscription, frozen=True):
    """Stop being the taker; the subscription stays."""


class Finish(OfSubscription, frozen=True):
    """End a durable subscription for good."""


class Requeue(OfDeliveries, frozen=True):
    """Redeliver dead letters after all, as if for the first time, says whoever asks for it."""


class Discard(OfDeliveries, frozen=True):
    """Discard dead letters: they are not needed any more, says whoever asks for it."""


# The answers.


class Attached(OfSubscription, frozen=True):
    """Answers `Attach`: the session is the taker of what is on disk at this home, with this filter."""

    home: str
    created: bool = False
    filter: Filter | None = None
    paused: bool = False


class DurableReady(WireMessage, frozen=True):
    """It is ready: what is confirmed to a publisher from now on, anywhere in reach, will be delivered."""

    name: str


class Done(OfDeliveries, frozen=True):
    """Answers `Acknowledged`: that is on disk, and the events will not be delivered again."""


class Changed(OfSubscription, frozen=True):
    """Answers `Change`: the new filter is in force; examples of what it drops and adds, if there are any."""

    drops: str | None
    adds: str | None
    filter: Filter | None = None


class Taken(WireMessage, frozen=True):
    """Fencing: another session has become the taker, here or at another home."""

    name: str


class GapNoticed(WireMessage, frozen=True):
    """A journal came back older than it was: what it had after one sequence up to another may be missing.

    Those are sequences of the journal as it was; without an end, nobody knows how far that was. What is
    published there from now on is delivered, under sequences that were given before. It is said when it is
    noticed (a time by the clock of the home), and to whoever attaches later, too.

    So it is said if events in between are damaged, or deliveries, by their numbers, at their home.
    """

    name: str
    origin: str
    after: Number
    upto: Number | None
    noticed: Moment
    what: GapKind = "older"


class Requeued(OfDeliveries, frozen=True):
    """Answers `Requeue`: these were dead letters and are deliveries again, on disk."""


class Discarded(OfDeliveries, frozen=True):
    """Answers `Discard`: these were dead letters and are gone, on disk."""
