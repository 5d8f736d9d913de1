"""`Scenario`: everything that decides a simulated run. The same scenario gives the same run, always."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar
from typing import Any, Literal, Self, TypeAlias

import msgspec

from palio.model.errors import PalioError
from palio.routing.reconfiguration.settings import Protocol

Shape: TypeAlias = Literal[
    "single", "line", "star", "tree", "hierarchy", "ring", "grid", "hypercube", "graph", "scale-free",
    "transit-stub",
]  # fmt: skip
Topology: TypeAlias = Literal["acyclic", "hierarchical", "graph", "hybrid"]
StrategyName: TypeAlias = Literal["flooding", "simple", "identity", "covering", "merging"]


class WrongScenario(PalioError):
    """A scenario that describes no network."""

    field: str
    reason: InitVar[str]
    sentence = "The scenario's field {field!r} cannot be so: {reason}"


class AnyScenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scenario of a simulator, which its tag names; as a line of JSON, too."""

    def to_json(self) -> str:
        """As one line that `from_json` reads back; what has its default value is left out."""
        changed = {
            field.name: getattr(self, field.name)
            for field in msgspec.structs.fields(type(self))
            if getattr(self, field.name) != field.default
        }
        tag = self.__struct_config__.tag
        named = {} if tag is None else {"type": tag}
        return msgspec.json.encode(named | changed).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a scenario. Raises `WrongScenario`."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as problem:
            raise WrongScenario("$", f"{problem}.") from None

    def _demand(self, holds: Callable[[Any], bool], reason: str, *fields: str) -> None:
        """Raise `WrongScenario` for the first of the fields of which it does not hold."""
        for field in fields:
            if not holds(getattr(self, field)):
                raise WrongScenario(field, reason)

    def _demand_some(self, *fields: str) -> None:
        self._demand(lambda value: value >= 1, "There must be at least one.", *fields)

    def _demand_more_than_nothing(self, *fields: str) -> None:
        self._demand(lambda value: value > 0, "It must be more than nothing.", *fields)


class Scenario(AnyScenario, frozen=True, kw_only=True):
    """A network, who is on it, and what they do.

    `shape` says how the brokers are linked, `topology` how these links are used: as they are with cycles
    (graph), by a spanning tree of equals (acyclic), by a spanning tree with a root (hierarchical), or as
    acyclic or hierarchical clusters whose roots are joined by a graph (hybrid).

    Who is where, wants what and says what depends on neither strategy nor topology nor advertisements: with
    the same seed they can be compared.
    """

    seed: int = 1
    shape: Shape = "tree"
    topology: Topology = "acyclic"
    brokers: int = 10
    strategy: StrategyName = "covering"
    merging_excess: float = 0.0
    advertisements: bool = False

    subscribers: int = 10
    publishers: int = 5
    subscriptions: int = 20  # in all, spread over the subscribers
    notifications: int = 50  # in all, spread over the publishers

    interests: int = 20  # how many different things there are to be interested in
    skew: float = 0.0  # Zipf exponent of the interest in them; 0 is uniform
    locality: float = 0.0  # the share of subscriptions that are for something published nearby
    covered: float = 0.5  # the share of subscriptions that another one covers
    churn: float = 0.0  # the share of subscriptions that are cancelled and replaced while events flow
    link_churn: float = 0.0  # the share of links that go and come back while events flow
    repeats: float = 0.0  # the share of subscriptions that are asked for once more, under a second handle
    both: float = 0.0  # the share of subscriptions that are made by publishers
    batch: int = 1  # how many notifications are published at once, at most
    haste: float = 1.0  # how many times as fast as usual everybody acts: the faster, the more races
    reconfiguration: Protocol = "notified"  # what becomes of the rows of links that go
    ready: bool = True  # whether clients ask to be told when the network knows

    keep: tuple[int, ...] | None = None  # of the script only these steps, by number, to look at a failure

    def __post_init__(self) -> None:
        self._demand_some("brokers", "interests", "batch")
        counts = ("subscribers", "publishers", "subscriptions", "notifications")
        self._demand(lambda value: value >= 0, "There cannot be fewer than none.", *counts)
        if self.subscriptions and not self.subscribers:
            raise WrongScenario("subscribers", "Somebody has to make the subscriptions.")
        if self.notifications and not self.publishers:
            raise WrongScenario("publishers", "Somebody has to publish the notifications.")
        self._demand_more_than_nothing("haste")
        shares = ("locality", "covered", "churn", "link_churn", "repeats", "both")
        self._demand(lambda value: 0.0 <= value <= 1.0, "It is a share, from 0 to 1.", *shares)
