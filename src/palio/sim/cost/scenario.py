"""`CostScenario`: everything that decides a measured run, and `CostOutcome`: what it cost."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from palio.sim.scenario import AnyScenario, Shape, WrongScenario

Outage: TypeAlias = Literal["none", "home", "origin", "link"]


class CostScenario(AnyScenario, frozen=True, kw_only=True, tag="cost"):
    """A network without cycles, who is on it, how much they publish and what goes wrong once.

    Publishers are at `origins` brokers, subscriptions at `homes`; both are drawn, and are the same brokers
    where there are not enough. A notification is about one of `topics` topics, and each subscription wants one.
    With the same seed, transient and durable runs have the same network, clients and notifications.

    The outage begins `lead` seconds after the first notification and lasts `outage_seconds`; publishing goes
    on during it and for `tail` seconds after it. Without one, notifications are published for `tail` seconds.
    """

    seed: int = 1
    shape: Shape = "tree"
    brokers: int = 8
    delivery: Literal["transient", "durable"] = "durable"
    origins: int = 4
    homes: int = 4
    subscriptions: int = 40
    topics: int = 20
    rate: float = 100.0  # notifications a second, of all publishers together

    outage: Outage = "none"
    outage_seconds: float = 0.0
    lead: float = 3.0
    tail: float = 5.0

    def __post_init__(self) -> None:
        self._demand_some("brokers", "origins", "homes", "subscriptions", "topics")
        self._demand(lambda value: value <= self.brokers, "There are not so many brokers.", "origins", "homes")
        self._demand_more_than_nothing("rate", "tail")
        self._demand(lambda value: value >= 0, "It cannot be less than nothing.", "outage_seconds", "lead")
        if self.outage != "none" and self.delivery == "transient":
            raise WrongScenario("outage", "Transient subscriptions do not catch up.")
        if self.outage == "link" and self.brokers < 2:
            raise WrongScenario("outage", "A single broker has no link.")


class CostOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a measured run cost. Messages are those between brokers, counted once for each link.

    Set-up is all until every subscription is ready; everything else is from the first notification until all
    is quiet. Bytes are those of the messages as the wire encodes them. Times are simulated seconds; only
    `wall_seconds` is read from a clock.
    """

    violations: int = 0  # notifications that should have come and did not, or came twice, and errors
    setup_messages: int = 0
    setup_bytes: int = 0

    published: int = 0
    deliveries: int = 0
    messages: int = 0
    bytes: int = 0
    forward_messages: int = 0  # notifications on their way
    forward_bytes: int = 0
    mark_messages: int = 0  # marks, and how far readers are
    mark_bytes: int = 0
    letter_messages: int = 0  # fetches and pages
    letter_bytes: int = 0
    question_messages: int = 0  # how far the journals are
    question_bytes: int = 0
    link_messages: int = 0  # filters and greetings on links that come back, waves, changes of the network
    link_bytes: int = 0

    appends: int = 0  # writes of the journals
    spool_writes: int = 0  # writes of durable subscriptions: what came, was acknowledged, and positions
    cursor_writes: int = 0  # writes of how far readers are
    journal_reads: int = 0
    reads_one_by_one: int = 0  # how many they would have been, without retries, one for each subscription
    entries_read: int = 0  # journal entries that these reads looked at

    backlog: int = 0  # deliveries that were due when the outage ended
    catch_up_seconds: float = 0.0  # from the end of the outage until the last of these was handed out
    latency_mean: float = 0.0  # from the publisher's wish to the client, of what no outage held up
    latency_p99: float = 0.0
    simulated_seconds: float = 0.0
    wall_seconds: float = 0.0
