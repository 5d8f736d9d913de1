"""What has to be so of a mesh at rest, judged by who reaches whom, and nothing of routing.

1. Both ends of a link agree that it is one.
2. Everybody has as many neighbours as it should, or all that there are; and no more than it may, unless it was
   asked by who had found nobody else.
3. Everybody knows what everybody else wants.
4. An event comes to whom it is for, once, and to no broker twice, whatever links there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from palio.model.notification import Notification
from palio.routing.overlay.settings import SPARE
from palio.sim.overlay.world import OverlayWorld

# Seconds in which an event comes.
_COMES_WITHIN = 10.0


def mesh_at_rest(world: OverlayWorld) -> Iterator[str]:
    """Whether everything is as it should be when nothing happens; publishes events."""
    there, links = world.there(), world.links()
    least = min(world.scenario.links, len(there) - 1)
    for broker in there:
        assert broker.router is not None
        neighbours = broker.router.neighbours()
        if len(neighbours) < least:
            yield f"{broker.name} has {len(neighbours)} neighbours, and should have {least}."
        most = SPARE * world.scenario.links + world.insisted[broker.name]
        if len(neighbours) > most:
            yield f"{broker.name} has {len(neighbours)} neighbours, and should have {most} at the most."
        for name in neighbours:
            if tuple(sorted((name, broker.name))) not in links:
                yield f"{broker.name} takes {name} for its neighbour, which does not."
        interest = broker.router.interest()
        for other in there:
            wanted = interest.get(other.name, [])
            if not any(one.matches(Notification({"at": other.name})) for one in wanted):
                yield f"{broker.name} does not know what {other.name} wants."
    yield from _wrong_deliveries(world)


def _wrong_deliveries(world: OverlayWorld) -> Iterator[str]:
    """Events for each broker, from two others, that do not come, or more than once."""
    there = world.there()
    numbers: dict[int, tuple[str, str]] = {}
    world.copies.clear()
    for place, broker in enumerate(there):
        for away in (1, len(there) // 2):
            publisher = there[(place + away) % len(there)]
            numbers[world.publish(publisher, at=broker.name)] = publisher.name, broker.name
    world.run(world.now + _COMES_WITHIN)
    for number, (origin, name) in numbers.items():
        if (count := world.delivered[name, number]) != 1:
            yield f"An event of {origin} for {name} has come {count} times."
    for (taker, (entry, sequence)), count in world.copies.items():
        if count > 1:
            yield f"{taker} got {entry}/{sequence} {count} times from its neighbours."
