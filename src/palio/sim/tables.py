"""Tables: what brokers know of each other, checked when the network is at rest.

Two things are demanded.

- What a broker recorded as sent on a link is what its neighbour holds for it, number by number; and in a
  graph everyone holds of a broker what that broker has announced.
- After any churn the tables are those that a network builds from scratch for what the clients hold at the
  end. "Are" means: on each link, the two sets of filters cover each other as unions. Where a strategy decides
  which filters it sends (all but merging do), they are the same filters.

Imperfect merging sends more than is wanted, by choice, and what it sends depends on the order of events. There
the table must cover all that a broker that does not merge would send, and each filter must stay within the
bound, measured against what its sender was told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from palio.model.advertisement import Advertisement
from palio.model.errors import FilterTooLarge
from palio.model.filter import Filter
from palio.model.merging import excess
from palio.protocol.peers import LinkKind
from palio.sim.network import NetworkStation, SimulatedNetwork
from palio.sim.scenario import Scenario
from palio.sim.sessions import SessionRecord
from palio.sim.violations import RowsDiffer, TableExcess, TableLacks, Violation

_ROUNDING = 1e-9

_Item = TypeVar("_Item", Filter, Advertisement)


def consistency(network: SimulatedNetwork) -> Iterator[Violation]:
    """Whether both ends of each link agree on what was said."""
    for station, neighbour in _tree_links(network):
        broker, other = station.name, neighbour.name
        sent, received = station.router.sent(other), neighbour.router.received(broker)
        yield from _differences(broker, other, "subscription", sent, received)
        advertised = station.router.sent_advertisements(other)
        heard = neighbour.router.received_advertisements(broker)
        yield from _differences(broker, other, "advertisement", advertised, heard)
    for station, subject, announced, held in _announcements(network):
        yield from _compared(station.name, subject, held, announced, _surplus)


def compare(
    network: SimulatedNetwork, fresh: SimulatedNetwork, scenario: Scenario, record: SessionRecord
) -> Iterator[Violation]:
    """Whether the tables after churn are those of a network that was built from scratch."""
    merging = scenario.strategy == "merging"
    imperfect = merging and scenario.merging_excess > 0
    left_over = _uncovered if merging else _surplus
    again = {station.name: station for station in fresh.stations}
    for station, neighbour in _tree_links(network):
        broker, source = neighbour.name, station.name
        sent = list(station.router.sent(broker).values())
        wanted = list(again[source].router.sent(broker).values())
        yield from _compared(broker, source, sent, wanted, left_over, exceeding=not imperfect)
        if imperfect:
            yield from _beyond_bound(station, broker, sent, scenario.merging_excess, record)
        advertised = list(station.router.sent_advertisements(broker).values())
        expected = list(again[source].router.sent_advertisements(broker).values())
        yield from _compared(broker, source, advertised, expected, _uncovered_by_one)
    if _has_graph(network):
        for station in network.stations:
            announced = station.router.interest().get(station.name, [])
            wanted = again[station.name].router.interest().get(station.name, [])
            yield from _compared("graph", station.name, announced, wanted, left_over, exceeding=not imperfect)


# What both ends say


def _tree_links(network: SimulatedNetwork) -> Iterator[tuple[NetworkStation, NetworkStation]]:
    """Each direction in which rows are sent: up in a hierarchy, both ways between equals.

    A link that only one end uses is none; that it was refused is a violation of its own.
    """
    stations = {station.name: station for station in network.stations}
    for station in network.stations:
        for name, kind in station.router.neighbours().items():
            agreed = station.name in stations[name].router.neighbours()
            if agreed and kind in (LinkKind.PEER, LinkKind.MASTER):
                yield station, stations[name]


def _has_graph(network: SimulatedNetwork) -> bool:
    return any(link.kind is LinkKind.GRAPH for link in network.layout.links)


def _announcements(
    network: SimulatedNetwork,
) -> Iterator[tuple[NetworkStation, str, list[Filter], list[Filter]]]:
    if not _has_graph(network):
        return
    inside = [
        station
        for station in network.stations
        if any(kind is LinkKind.GRAPH for kind in station.router.neighbours().values())
    ]
    known = {station.name: station.router.interest() for station in inside}
    for station in inside:
        for subject, told in known.items():
            yield station, subject, told.get(subject, []), known[station.name].get(subject, [])


def _differences(
    broker: str, neighbour: str, what: str, sent: Mapping[int, _Item], received: Mapping[int, _Item]
) -> Iterator[Violation]:
    if sent == received:
        return
    for number in sorted({*sent, *received}):
        if sent.get(number) != received.get(number):
            here, there = (str(rows.get(number, "nothing")) for rows in (sent, received))
            yield RowsDiffer(
                broker=broker, neighbour=neighbour, what=what, number=number, sent=here, received=there
            )


# What there is, and what is wanted


def _compared(
    broker: str,
    source: str,
    sent: list[_Item],
    wanted: list[_Item],
    left_over: Callable[[list[_Item], list[_Item]], Iterator[str]],
    *,
    exceeding: bool = True,
) -> Iterator[Violation]:
    """What is left of each when it is compared with the other; an excess only where that is a mistake."""
    for text in left_over(wanted, sent):
        yield TableLacks(broker=broker, neighbour=source, filter=text)
    for text in left_over(sent, wanted) if exceeding else ():
        yield TableExcess(broker=broker, neighbour=source, filter=text)


def _surplus(filters: list[Filter], others: list[Filter]) -> Iterator[str]:
    return map(str, (Counter(filters) - Counter(others)).elements())


def _uncovered_by_one(ones: list[Advertisement], others: list[Advertisement]) -> Iterator[str]:
    return (str(one) for one in ones if not any(other.covers(one) for other in others))


def _uncovered(filters: list[Filter], others: list[Filter]) -> Iterator[str]:
    """Those that the others, taken together, do not cover."""
    for filter in filters:
        if any(other.covers(filter) for other in others):
            continue
        boxes = tuple(box for other in others if other.overlaps(filter) for box in other.conjunctions)
        if not Filter(boxes).covers(filter):
            yield str(filter)


def _beyond_bound(
    station: NetworkStation, neighbour: str, sent: list[Filter], bound: float, record: SessionRecord
) -> Iterator[Violation]:
    """Filters of which a larger share than allowed is nobody's wish, as far as their sender knows."""
    told = list(record.filters_at(station.name))
    for name in station.router.neighbours():
        if name != neighbour:
            told += station.router.received(name).values()
    for broker, filters in station.router.interest().items():
        if broker != station.name:
            told += filters
    for filter in sent:
        if len(filter.conjunctions) != 1:
            continue
        whole = filter.conjunctions[0]
        parts = [box for one in told for box in one.conjunctions if whole.includes(box)]
        try:
            _, share = excess(whole, parts)
        except FilterTooLarge:
            continue
        if share > bound + _ROUNDING:
            yield TableExcess(broker=neighbour, neighbour=station.name, filter=str(filter))
