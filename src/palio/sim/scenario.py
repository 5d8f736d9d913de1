"""`Scenario`: everything that decides a simulated run. The same scenario gives the same run, always."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Shape: TypeAlias = Literal[
    "single", "line", "star", "tree", "hierarchy", "ring", "grid", "hypercube", "graph", "scale-free",
    "transit-stub",
]  # fmt: skip
Topology: TypeAlias = Literal["acyclic", "hierarchical", "graph", "hybrid"]


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network, who is on it, and what they do.

    `shape` says how the brokers are linked, `topology` how these links are used: as they are with cycles
    (graph), by a spanning tree of equals (acyclic), by a spanning tree with a root (hierarchical), or as
    acyclic or hierarchical clusters whose roots are joined by a graph (hybrid).
    """

    seed: int = 1
    shape: Shape = "tree"
    topology: Topology = "acyclic"
    brokers: int = 10
    strategy: Literal["flooding", "simple", "identity", "covering", "merging"] = "covering"
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
