"""Relays in a run with faults: put into the network of a scenario, so that all else in it is what it was.

A relay takes the place of a broker at some of its links, or at all of one kind, and is linked with that broker.
So it stands in the middle of a link, or is a hub, or the way to all others; and relays stand behind each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import msgspec

from palio.protocol.peers import LinkKind
from palio.sim.faults import steps
from palio.sim.topologies import Layout, TopologyLink

_LATENCY = (0.005, 0.015)  # seconds


def with_relays(layout: Layout, count: int, seed: int) -> Layout:
    """The network with so many relays, which have the last numbers; its links keep their numbers."""
    chance = Random(f"faults relays {seed}")
    for _ in range(count):
        layout = _with_relay(layout, chance)
    return layout


def _with_relay(layout: Layout, chance: Random) -> Layout:
    relay, broker = layout.size, chance.randrange(layout.size)
    links, kinds = list(layout.links), []
    around = [number for number, link in enumerate(links) if broker in (link.one, link.other)]
    if around:
        kind = _seen_from(links[chance.choice(around)], broker)
        same = [number for number in around if _seen_from(links[number], broker) is kind]
        moved = same if chance.random() < 0.4 else chance.sample(same, chance.randint(1, len(same)))
        for number in moved:
            link = links[number]
            links[number] = msgspec.structs.replace(
                link,
                one=relay if link.one == broker else link.one,
                other=relay if link.other == broker else link.other,
            )
        kinds = [kind]
    # What the broker is to the relay: as it is to those who are linked with the relay now.
    match kinds:
        case [LinkKind.MASTER]:
            kind, other_kind = LinkKind.BELOW, LinkKind.MASTER
        case [LinkKind.BELOW]:
            kind, other_kind = LinkKind.MASTER, LinkKind.BELOW
        case [LinkKind.GRAPH]:
            kind, other_kind = LinkKind.GRAPH, LinkKind.GRAPH
        case _:
            kind, other_kind = LinkKind.PEER, LinkKind.PEER
    links.append(TopologyLink(relay, broker, kind, other_kind, 1.0, chance.uniform(*_LATENCY)))
    return Layout(layout.size + 1, tuple(links))


def _seen_from(link: TopologyLink, broker: int) -> LinkKind:
    """What the other end of a link is to a broker."""
    return link.kind if link.one == broker else link.other_kind


def relays_steps(relays: int, layout: Layout, drawn: Sequence[steps.Step], seed: int) -> Iterator[steps.Step]:
    """What goes wrong with relays: they crash, also several times, and stand still; their links break.

    Often that is just before something is published: what is lost then is lost on its way.
    """
    chance = Random(f"faults at relays {seed}")
    last = max([step.time for step in drawn], default=1.0)
    said = [step.time for step in drawn if isinstance(step, steps.Say)]

    def moment() -> float:
        if said and chance.random() < 0.6:
            return max(0.0, chance.choice(said) - chance.uniform(0.0, 0.3))
        return chance.uniform(0.0, last)

    def span() -> float:
        return chance.choice((chance.uniform(0.0, 0.5), chance.uniform(0.2, 5.0)))

    def cut(link: int) -> steps.Step:
        noticed = chance.choice(((0.0, 0.0), (0.0, chance.uniform(0.0, 2.0)), (chance.uniform(0.0, 2.0), 0.0)))
        return steps.Cut(time=moment(), links=(link,), seconds=span(), noticed=noticed)

    first = layout.size - relays
    for relay in range(first, layout.size):
        name = f"r{relay - first}"
        for _ in range(chance.choice((0, 0, 1, 1, 2))):
            effects = chance.choice((0, chance.randint(0, 10), chance.randint(0, 60)))
            down = chance.choice((0.0, span()))
            yield steps.Crash(time=moment(), broker=name, effects=effects, share=0.0, down=down)
        if chance.random() < 0.3:
            yield steps.PauseBroker(time=moment(), broker=name, seconds=span())
    for number, link in enumerate(layout.links):
        ends = (link.one >= first) + (link.other >= first)
        for _ in range(chance.choice(((0,), (0, 0, 1), (0, 1, 1, 2))[ends])):
            yield cut(number)
