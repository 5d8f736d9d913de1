"""Metrics: the numbers of an `Outcome`, from what the network counted and the oracle found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from palio.protocol import peers
from palio.protocol.requests import Advertise, Release, Subscribe, Unadvertise, Unsubscribe
from palio.routing.router import RouterStatistics
from palio.sim.network import SimulatedNetwork
from palio.sim.oracle import Verdict
from palio.sim.outcome import Outcome
from palio.sim.sessions import SessionRecord

_GREETINGS = (peers.Hello, peers.Goodbye, peers.Joined)
_ACKNOWLEDGEMENTS = (peers.Acknowledge, peers.Known)
_UPDATES = (peers.Update, peers.Interest)


def measure(network: SimulatedNetwork, verdict: Verdict, *, wall_seconds: float) -> Outcome:
    """Everything that is measured about a run."""
    history, counts, record = network.history, network.counts, verdict.record
    messages, cost = network.traffic()
    updates, update_cost = network.traffic(*_UPDATES)
    forwards, forwards_cost = network.forwards()
    statistics = [station.router.statistics() for station in network.stations]
    requests = [type(request.message) for request in history.requests]
    advertisement_releases = sum(
        handle in one.handles
        for request in history.requests
        if isinstance(request.message, Release)
        for handle in (request.message.handle,)
        for one in record.sessions[request.session].advertisements
    )
    return Outcome(
        brokers=len(network.stations),
        links=len(network.layout.links),
        sessions=len(record.sessions),
        violations=len(verdict.violations),
        messages=messages,
        cost=cost,
        subscription_messages=updates - counts.advertisement_messages,
        subscription_cost=update_cost - counts.advertisement_cost,
        forwards=forwards,
        forwards_cost=forwards_cost,
        subscribes=requests.count(Subscribe),
        unsubscribes=requests.count(Unsubscribe) + requests.count(Release) - advertisement_releases,
        advertises=requests.count(Advertise),
        unadvertises=requests.count(Unadvertise) + advertisement_releases,
        published=len(record.publications),
        refused=record.refused,
        deliveries=len(history.deliveries),
        deliveries_expected=verdict.expected,
        deliveries_possible=verdict.possible,
        notifications_checked=verdict.checked,
        matching_calls=sum(one.forwarding.taken for one in statistics),
        matched_ids=sum(one.forwarding.matched for one in statistics),
        simulated_messages=network.handled,
        simulated_seconds=network.now,
        wall_seconds=wall_seconds,
        **msgspec.structs.asdict(counts),
        **_kinds(network),
        **_tables(network, statistics),
        **_delays(network, record),
    )


def _kinds(network: SimulatedNetwork) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kinds in (
        ("forward", (peers.Forward,)),
        ("acknowledgement", _ACKNOWLEDGEMENTS),
        ("link_state", (peers.LinkState,)),
        ("greeting", _GREETINGS),
    ):
        found[f"{name}_messages"], found[f"{name}_cost"] = network.traffic(*kinds)
    return found


def _tables(network: SimulatedNetwork, statistics: list[RouterStatistics]) -> dict[str, Any]:
    rows = [one.rows_received for one in statistics]
    routers = [station.router for station in network.stations]
    advertisements = [
        sum(len(one.received_advertisements(name)) for name in one.neighbours()) for one in routers
    ]
    return {
        "table_rows": sum(rows),
        "table_rows_mean": sum(rows) / len(rows),
        "table_rows_max": max(rows),
        "advertisement_rows": sum(advertisements),
        "advertisement_rows_mean": sum(advertisements) / len(advertisements),
        "advertisement_rows_max": max(advertisements),
    }


def _delays(network: SimulatedNetwork, record: SessionRecord) -> dict[str, Any]:
    hops, latencies = [], []
    for delivery in network.history.deliveries:
        publication = record.publications.get((delivery.envelope.origin, delivery.envelope.sequence))
        if publication is not None:
            hops.append(float(delivery.envelope.hops))
            latencies.append(delivery.time - publication.time)
    return {
        **spread("hops", hops),
        **spread("latency", latencies),
        "ready_mean": _mean(record.waits),
        "ready_max": max(record.waits, default=0.0),
    }


def spread(name: str, values: list[float]) -> dict[str, Any]:
    values.sort()
    return {
        f"{name}_mean": _mean(values),
        f"{name}_p50": _share(values, 0.5),
        f"{name}_p99": _share(values, 0.99),
        f"{name}_max": values[-1] if values else 0.0,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _share(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0.0
