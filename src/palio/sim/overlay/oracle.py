"""What has to be so of a network that repairs itself: judged by who reaches whom, and nothing of routing.

1. Whoever can reach each other is connected again within `WITHIN` seconds after the last fault.
2. There is no loop at rest, and both ends of a link agree that it is one.
3. Nobody has more neighbours than its degree, unless it was asked by who had found nobody else, or had to find
   a parent itself.
4. A link tells of exactly those who are behind it: an event for a broker finds a row on each link that leads to
   it, and on no other.
5. All know the name of the one part, and in the end nobody says anything any more; who is missing is looked
   for, now and then.
6. What brokers tell of their links is what has happened to them: each link is made, ends once, and those that
   have not ended are there; a repair is done after it has begun, and by a parent that is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from palio.model.notification import Notification
from palio.routing.overlay import effects
from palio.routing.overlay.effects import OverlayEvent
from palio.routing.router import Router
from palio.sim.overlay.mesh_oracle import mesh_at_rest
from palio.sim.overlay.script import OverlayScenario
from palio.sim.overlay.world import MOST_SAID, OverlayBroker, OverlayWorld

# Seconds after the last fault: two looks at the longest pause, and those who do not answer in between.
WITHIN = 90.0
# In which nobody may say anything afterwards, once it was quiet for the first time.
SETTLES_WITHIN = 120.0
SILENT_FOR = 120.0
# How often each who is missing may be looked for in this time: about twice a minute, by the one root.
MOST_DIALLED = 6


def judge(scenario: OverlayScenario, make_router: Callable[..., Router] = Router) -> list[str]:
    """Plays a scenario. Returns what was wrong."""
    return judged(OverlayWorld(scenario, make_router))


def judged(world: OverlayWorld) -> list[str]:
    """Lets the script of a world happen. Returns what was wrong."""
    end = world.play()
    world.run(end + WITHIN)
    if world.restless:
        return [f"After {MOST_SAID[world.scenario.kind]} messages for each broker the network is not at rest."]
    wrong = list(connected(world))
    world.run(world.now + SETTLES_WITHIN)
    settled, dialled = world.now, world.dialled
    world.run(world.now + SILENT_FOR)
    if world.last_message > settled:
        wrong.append(f"Somebody still speaks at {world.last_message:.1f}, after {settled:.1f}.")
    dialled = world.dialled - dialled
    if dialled > MOST_DIALLED * sum([broker.gone for broker in world.brokers]):
        wrong.append(f"Those who are missing were dialled {dialled} times.")
    return [*wrong, *at_rest(world)]


def connected(world: OverlayWorld) -> Iterator[str]:
    """Whether all brokers that run are one network."""
    there = [broker.name for broker in world.there()]
    for part in parts(world)[1:]:
        yield f"{', '.join(sorted(part))} are not connected with the other {len(there) - len(part)} brokers."


def parts(world: OverlayWorld) -> list[set[str]]:
    """The connected parts, the largest first."""
    beside = links_beside(world)
    left, found = {broker.name for broker in world.there()}, []
    while left:
        part = reached(beside, {min(left)}, "")
        left -= part
        found.append(part)
    return sorted(found, key=len, reverse=True)


def at_rest(world: OverlayWorld) -> Iterator[str]:
    """Whether everything is as it should be when nothing happens."""
    yield from (mesh_at_rest if world.scenario.kind == "mesh" else tree_at_rest)(world)


def tree_at_rest(world: OverlayWorld) -> Iterator[str]:
    """Whether a tree is as it should be."""
    there, links = world.there(), world.links()
    if len(links) > len(there) - len(parts(world)):
        yield f"There is a loop: {len(links)} links of {len(there)} brokers in {len(parts(world))} parts."
        return
    names = set()
    for broker in there:
        assert broker.router is not None
        overlay = broker.router.overlay()
        names.add(overlay.component)
        degree = len(broker.router.neighbours())
        excused = world.insisted[broker.name] + (broker.name in world.asked)
        if degree > world.scenario.degree + excused:
            yield f"{broker.name} has {degree} neighbours, and {excused} are excused."
        for name in broker.router.neighbours():
            if tuple(sorted((name, broker.name))) not in links:
                yield f"{broker.name} takes {name} for its neighbour, which does not."
    if len(names) > 1:
        yield f"The one part has {len(names)} names: {', '.join(sorted(names))}."
    yield from wrong_rows(world)
    for broker in there:
        yield from wrongly_told(broker, world.told[broker.name])


def wrongly_told(broker: OverlayBroker, events: Iterable[OverlayEvent]) -> Iterator[str]:
    """What a broker has told of its links that was not so."""
    links: set[str] = set()
    repairing = ""
    for event in events:
        other = event.broker
        match event.what:
            case effects.MADE:
                if other in links:
                    yield f"{broker.name} tells of a link to {other} twice."
                links.add(other)
            case effects.REMOVED_IN_ORDER | effects.FOUND_DEAD:
                if other not in links:
                    yield f"{broker.name} tells of the end of a link to {other}, of which it has not told."
                links.discard(other)
            case effects.REPAIR_BEGUN:
                repairing = other
            case effects.REPLACED | effects.REPAIR_DONE if event.former != repairing:
                yield f"{broker.name} tells of a repair that has not begun: {event}."
            case effects.REPAIR_DONE:
                if other and other not in links:
                    yield f"{broker.name} has repaired nothing by {other}."
                repairing = ""
    assert broker.router is not None
    if links != set(broker.router.neighbours()):
        yield f"{broker.name} has told of links to {', '.join(sorted(links))}."


def wrong_rows(world: OverlayWorld) -> Iterator[str]:
    """Rows that are missing, or should not be there."""
    beside, routers = links_beside(world), {broker.name: broker.router for broker in world.there()}
    for one, other in [*world.links(), *[(other, one) for one, other in world.links()]]:
        router = routers[one]
        assert router is not None
        rows = list(router.sent(other).values())
        behind = reached(beside, {one}, other)
        for broker in world.brokers:
            event = Notification({"at": broker.name})
            told = any(row.matches(event) for row in rows)
            if told != (broker.name in behind):
                yield f"{one} {'tells' if told else 'does not tell'} {other} of {broker.name}."


def links_beside(world: OverlayWorld) -> dict[str, set[str]]:
    """The neighbours of each broker that has any."""
    beside: dict[str, set[str]] = defaultdict(set)
    for one, other in world.links():
        beside[one].add(other)
        beside[other].add(one)
    return beside


def reached(beside: dict[str, set[str]], found: set[str], but: str) -> set[str]:
    """Whom one reaches from some brokers, without going through one."""
    new = list(found)
    while new:
        for name in beside[new.pop()]:
            if name != but and name not in found:
                found.add(name)
                new.append(name)
    return found
