"""How a broker routes. Everything in `Terms` must be the same at all brokers of a network."""

from __future__ import annotations

from dataclasses import InitVar
from enum import Enum

import msgspec

from palio.matching.hints import Hints
from palio.model.errors import PalioError
from palio.routing.durable.desk import DurableSettings
from palio.routing.overlay.settings import OverlaySettings
from palio.routing.reconfiguration.settings import ReconfigurationSettings

# What a relay says in its terms: a broker of a version that knows no relays refuses it.
RELAY = "relay"

# A notification that has made more hops than this is in a loop, or in a network larger than any we know of.
DEFAULT_HOP_LIMIT = 4_096


class Strategy(Enum):
    """Which subscriptions a broker tells its neighbours of."""

    FLOODING = "flooding"  # none: every notification goes everywhere
    SIMPLE = "simple"  # each one
    IDENTITY = "identity"  # each different one
    COVERING = "covering"  # those that no other one covers
    MERGING = "merging"  # those, and several of them as one


class WrongConfiguration(PalioError):
    """Settings that do not go together."""

    setting: str
    reason: InitVar[str]
    sentence = "The setting {setting!r} cannot be so: {reason}"


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one router.

    `advertisements` chooses advertisement-based semantics: only what a publisher advertised may be published,
    and subscriptions travel only towards advertisements that they overlap (where they travel at all: flooding
    and hierarchies do not spread advertisements).
    `merging_excess` is the largest share of a merged filter that nobody asked for; 0 merges perfectly only.
    `incarnation` must be larger after each restart that lost the state of the router.
    `scoped` says that names have owners, who may see what they are told (see `scopes`).
    `hints` tell the index how frequent values are before it has seen any.
    `durable` turns on journals and durable subscriptions, at all brokers of a network or at none; but for a
    `relay`, which passes on what the others keep.
    `overlay` says whether this broker chooses its links itself, and how; each broker of a network for itself.
    `reconfiguration` says what becomes of the rows of a lost link; each broker of a network for itself.
    `patient` lets work that has no hurry wait for `Router.work`, instead of doing it at once.
    """

    broker: str
    strategy: Strategy = Strategy.COVERING
    advertisements: bool = False
    merging_excess: float = 0.0
    hop_limit: int = DEFAULT_HOP_LIMIT
    incarnation: int = 0
    scoped: bool = False
    hints: Hints | None = None
    durable: DurableSettings | None = None
    relay: bool = False
    overlay: OverlaySettings = OverlaySettings()
    reconfiguration: ReconfigurationSettings = ReconfigurationSettings()
    patient: bool = False

    def __post_init__(self) -> None:
        if not self.broker:
            raise WrongConfiguration("broker", "A broker needs a name.")
        if not 0.0 <= self.merging_excess < 1.0:
            raise WrongConfiguration("merging_excess", "It is a share, from 0 up to but below 1.")
        if self.hop_limit < 1:
            raise WrongConfiguration("hop_limit", "At least one hop must be allowed.")
        if self.relay and self.durable is not None:
            raise WrongConfiguration(
                "relay", "A relay keeps nothing, so it has no durable delivery of its own."
            )

    @property
    def terms(self) -> str:
        """What neighbours must agree on, as a text that they compare."""
        flooding = "flooding" if self.strategy is Strategy.FLOODING else "routing"
        semantics = "advertisement" if self.advertisements else "subscription"
        kept = RELAY if self.relay else "durable" if self.durable else "transient"
        return f"{flooding}, {semantics}-based, {kept}"

    def agrees_with(self, terms: str) -> bool:
        """Whether a neighbour has the terms of this broker; a relay has them with those who have a journal."""
        return _with_journals(terms) == _with_journals(self.terms)


def is_relay(terms: str) -> bool:
    """Whether a broker that says these terms is a relay."""
    return terms.endswith(f", {RELAY}")


def _with_journals(terms: str) -> str:
    return terms.removesuffix(RELAY) + "durable" if is_relay(terms) else terms
