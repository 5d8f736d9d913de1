"""How large the tables of brokers become with XPath subscriptions, by strategy: what XNet claims for covering.

A tree of brokers, simulated. At each of them clients subscribe to cards by XPath, as they like: to a brand, a
supplier, prices up to some amount, or several of these. Then cards are published, read as a broker reads them,
and the simulator's oracle checks who got what. What counts are the rows that all brokers have from their
neighbours. The yardstick is `simple`, by which each subscription is told to everybody.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, cast

import msgspec

from benchmarks.documents.cards import BRANDS, SUPPLIERS, card_family, cards
from benchmarks.documents.report import XmlRow
from palio.documents import DocumentReader, FamilyPaths, read_selection
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.requests import Publish, Subscribe
from palio.routing.configuration import Configuration, Strategy
from palio.routing.facts import Facts
from palio.routing.occurrences import Open
from palio.routing.router import Router
from palio.sim.clients import ClientStep, LinkStep, Phase, Step
from palio.sim.network import SimulatedNetwork
from palio.sim.oracle import judge
from palio.sim.scenario import StrategyName
from palio.sim.shapes import draw
from palio.sim.topologies import lay_out

BROKERS: Final = 31
PUBLISHED: Final = 40  # cards, from every third broker
STRATEGIES: Final = (("identity", 0.0), ("covering", 0.0), ("merging", 0.0), ("merging", 0.1))
_SECONDS: Final = 10.0  # of simulated time, for a phase
Tell = Callable[[str], None]


def table_sizes(counts: Sequence[int], tell: Tell) -> list[XmlRow]:
    """The rows of all tables, for so many subscriptions, by strategy."""
    rows = []
    for count in counts:
        tell(f"{count:,} subscriptions by XPath, simple")
        wanted = xpath_filters(count)
        simple = simulated_rows(wanted, "simple", 0.0)
        for strategy, excess in STRATEGIES:
            tell(f"{count:,} subscriptions by XPath, {strategy}")
            ours = simulated_rows(wanted, cast("StrategyName", strategy), excess)
            name = f"{strategy}, up to {excess:.0%} more than wanted" if excess else strategy
            what = f"{count:,} XPath subscriptions at {BROKERS} brokers, {name}"
            rows.append(
                XmlRow(
                    "tables", what, ours, simple, "simple: each one told to all", simple / ours, unit="rows",
                    x=count, line=f"{name}: ",
                )
            )  # fmt: skip
    return rows


def xpath_filters(count: int) -> list[Filter]:
    """What clients want of cards; brands and suppliers as popular as Zipf's law says."""
    chance = random.Random(11)
    families = {"card": FamilyPaths(card_family())}
    brands, suppliers = ([1 / (rank + 1) for rank in range(many)] for many in (BRANDS, SUPPLIERS))

    def wish() -> str:
        [brand] = chance.choices(range(BRANDS), brands)
        [supplier] = chance.choices(range(SUPPLIERS), suppliers)
        parts = (
            f'xpath("/c:card/c:brand") = "brand {brand}"',
            f'xpath("/c:card/c:supplier") = "supplier {supplier}"',
            f'xpath("/c:card/c:price") < {chance.randrange(5, 100, 5)}',
        )
        chosen = chance.choice(((0,), (1,), (0, 1), (0, 2), (0, 2), (1, 2), (0, 1, 2), (0, 1, 2)))
        return "family card where " + " and ".join([parts[one] for one in chosen])

    return [read_selection(wish(), families).filter for _ in range(count)]


def simulated_rows(wanted: Sequence[Filter], strategy: StrategyName, excess: float) -> int:
    """The rows of all tables once everybody knows what everybody wants."""
    network = _network(strategy, excess)
    chance = random.Random(12)
    links: list[Step] = [LinkStep(0, 0.0, number, up=True) for number in range(len(network.lines))]
    network.play(Phase("links", tuple(links)))
    network.play(Phase("begin", tuple([_step(0.0, one, Open()) for one in range(BROKERS)])))
    places = [chance.randrange(BROKERS) for _ in wanted]
    subscribing = [
        _step(_SECONDS * number / len(wanted), place, Subscribe(f"h{number}", filter))
        for number, (place, filter) in enumerate(zip(places, wanted, strict=True))
    ]
    network.play(Phase("subscribe", tuple(subscribing)))
    rows = sum([station.router.statistics().rows_received for station in network.stations])
    publishing = [
        _step(_SECONDS * number / PUBLISHED, number * 3 % BROKERS, Publish((one,), number + 1))
        for number, one in enumerate(_events())
    ]
    network.play(Phase("flow", tuple(publishing)))
    network.finish()
    verdict = judge(network.history, advertisements=False, way=lambda one, other: None)
    assert not verdict.violations, f"{strategy}: {verdict.violations[0]}"
    return rows


def _network(strategy: StrategyName, excess: float) -> SimulatedNetwork:
    chance = random.Random(13)
    layout = lay_out(draw("tree", BROKERS, chance), "acyclic", chance)
    settings = Configuration(broker="-", strategy=Strategy(strategy), merging_excess=excess)
    facts = Facts(matches=False)
    return SimulatedNetwork(
        layout, lambda name: Router(msgspec.structs.replace(settings, broker=name), facts), None
    )


def _step(time: float, broker: int, message: Open | Subscribe | Publish) -> Step:
    return ClientStep(0, time, broker, f"c{broker}", message)


def _events() -> list[Notification]:
    reader = DocumentReader(card_family())
    return [Notification.of_values(reader.read(content).attributes) for content in cards(PUBLISHED, 0.6)]
