"""One reconfiguration, played twice: by routers, and by the pseudocode."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from palio import Filter
from palio.protocol.requests import Subscribe
from palio.routing import Configuration, Router, Strategy
from palio.routing.reconfiguration.settings import ReconfigurationSettings
from palio.sim.reconfiguration.world import TreeWorld
from tests.routing.reconfiguration.pseudocode import HOP, Net

# The tree of figure 6, and the same with brokers beside it.
TREE = (("A", "B"), ("A", "E"), ("E", "F"), ("F", "C"), ("B", "G"), ("G", "D"))
EXTENDED = (
    *TREE,
    *[tuple(pair.split()) for pair in ("E h1", "F h2", "G h3", "h1 h4", "h3 h5", "D h6", "C h7")],
)
# In which the name of a part has reached everyone in it, and in which nothing is under way any more.
SOON, LATER = 0.15, 1.0


def names_of(links):
    return sorted({name for link in links for name in link})


def settings(protocol, **more):
    return ReconfigurationSettings(protocol=protocol, **more)


def tree_world(
    links, protocol="strawman", strategy="identity", *, make_router=Router, advertisements=False, **more
):
    """Routers that are linked so, at rest."""
    configuration = Configuration(
        broker="-",
        strategy=Strategy(strategy),
        advertisements=advertisements,
        reconfiguration=settings(protocol, **more),
    )
    world = TreeWorld(names_of(links), configuration, make_router=make_router)
    for link in links:
        world.link(*link)
        world.run()
    return world


def subscribed(world, *wanted):
    """Clients at brokers have subscribed to patterns, and nothing has been counted yet."""
    for broker, pattern in wanted:
        world.ask(broker, f"client {broker}", Subscribe(pattern, Filter.parse(f"{pattern} = 1")))
    world.run()
    world.said.clear()


def rows(world):
    """Who has which patterns from whom."""
    return {
        name: frozenset(
            (other, str(row).split()[0])
            for other in router.neighbours()
            for row in router.received(other).values()
        )
        for name, router in world.routers.items()
    }


def rows_of(net):
    return {
        name: frozenset(row for row in table if row[0] in net.brokers) for name, table in net.tables().items()
    }


def imagined(links, protocol, wanted):
    net = Net(names_of(links), protocol)
    for link in links:
        net.link(*link)
    for broker, pattern in wanted:
        net.brokers[broker].sub(f"client {broker}", pattern)
    net.run()
    net.said.clear()
    return net


class Scene(NamedTuple):
    """A tree, who wants what in it, and the link that goes: or the broker, whose children find new links."""

    links: Any
    wanted: Any
    old: Any
    new: Any


def replaced(scene, protocol, wait, **more):
    """A link is replaced. Returns what was said, and the tables: by routers, and by the pseudocode."""
    links, wanted, old, new = scene
    world = tree_world(links, protocol, **more)
    subscribed(world, *wanted)
    world.cut(*old)
    world.after(wait, world.link, *new)
    world.run()
    assert world.closed == []
    net = imagined(links, protocol, wanted)
    net.replace(old, new, wait + HOP)  # hellos take a moment
    net.run()
    return (counted(world), rows(world)), (counted(net), rows_of(net))


def died(scene, protocol, wait, **more):
    """A broker dies, and its children find other links."""
    links, wanted, dead, new = scene
    world = tree_world(links, protocol, **more)
    subscribed(world, *wanted)
    world.crash(dead)
    for parent, child in new:
        world.after(wait, world.link, child, parent)
    world.run()
    assert world.closed == []
    net = imagined(links, protocol, wanted)
    net.die(dead, new, wait + HOP)
    net.run()
    return (counted(world), rows(world)), (counted(net), rows_of(net))


def counted(either):
    return either.said["added"], either.said["removed"]


def drawn(seed):
    """A tree, what is wanted where, a link of it, and one that can take its place."""
    chance = Random(f"reconfiguration {seed}")
    brokers = [f"b{number}" for number in range(chance.randint(3, 12))]
    links = [(brokers[chance.randrange(place)], one) for place, one in enumerate(brokers) if place]
    chance.shuffle(links)
    old = chance.choice(links)
    side = side_of(links, old)
    new = chance.choice(sorted(side)), chance.choice(sorted(set(brokers) - side))
    wanted = [(chance.choice(brokers), chance.choice("pqrs")) for _ in range(chance.randint(1, 10))]
    return Scene(links, wanted, old, new), chance.choice((SOON, LATER))


def drawn_death(seed):
    """A tree, what is wanted where, a broker of it that dies, and links of its children to the largest part."""
    chance = Random(f"death {seed}")
    scene, wait = drawn(seed)
    names = names_of(scene.links)
    inner = [name for name in names if name != "b0" and sum(name in link for link in scene.links) > 1]
    if not inner:
        return drawn_death(seed + 1_000_000)
    dead = chance.choice(inner)
    left = [link for link in scene.links if dead not in link]
    home = side_of(left, ("b0", ""))
    links = []
    for child in [name for link in scene.links if dead in link for name in link if name != dead]:
        if child not in home:
            links.append((chance.choice(sorted(home)), child))
    return scene._replace(old=dead, new=tuple(links)), wait


def side_of(links, old):
    """Who is with the first end of a link when that is gone."""
    side, new = set(), {old[0]}
    while new:
        side |= new
        new = {two for link in links if link != old for one, two in (link, link[::-1]) if one in side} - side
    return side
