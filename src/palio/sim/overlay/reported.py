"""What users of other systems that organise themselves have reported: one scenario each, by name.

Each plays it, and returns what is wrong. `make_router` is for faults that are planted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from palio.routing.overlay.settings import normal
from palio.routing.router import Router
from palio.sim.overlay.oracle import WITHIN, at_rest, connected
from palio.sim.overlay.script import OverlayScenario
from palio.sim.overlay.world import SILENCE, OverlayBroker, OverlayWorld, RouterMaker

NAME = normal("seed.example:7070")
OTHER_NAME = normal("elsewhere.example:7070")
# Seconds in which brokers that begin come together, and in which everything is calm again.
_TOGETHER, _CALM = 60.0, 240.0


def _begun(
    make_router: RouterMaker,
    brokers: int,
    *,
    degree: int = 8,
    seed: int = 1,
    but: tuple[int, ...] = (),
    keeps: bool = False,
) -> OverlayWorld:
    """A world in which brokers begin one after the other, each within half a second."""
    scenario = OverlayScenario(seed=seed, brokers=brokers, degree=degree, keeps=keeps)
    world = OverlayWorld(scenario, make_router)
    for broker in world.brokers:
        if broker.number not in but:
            world.after(0.5 * broker.number, world.begin, broker)
    return world


def _links_between(world: OverlayWorld, some: set[str]) -> Iterator[str]:
    for one, other in world.links():
        if (one in some) != (other in some):
            yield f"{one} and {other} are of different networks, and linked."


def a_name_that_was_passed_on(make_router: RouterMaker = Router) -> list[str]:
    """The first broker has a name, which is somebody else's for the others: addresses travel, names never."""
    world = _begun(make_router, 6, degree=3, but=(5,))
    first, stranger = world.brokers[0], world.brokers[5]
    world.settings[first.name] = {"join": (), "address": NAME}
    world.settings[stranger.name] = {"join": ()}
    world.names[NAME] = lambda broker: stranger
    world.begin(stranger)
    for number in (1, 0):
        world.run(world.now + _TOGETHER)
        world.crash(world.brokers[number])
    world.run(world.now + _CALM)
    asked = [broker for broker, address in world.dials if address == NAME]
    return [f"{broker} has dialled a name that nobody has given it." for broker in asked] + [
        *_links_between(world, {stranger.name})
    ]


def a_name_that_is_resolved_once(make_router: RouterMaker = Router) -> list[str]:
    """The name to join leads to another broker after a while: the first one is gone for good."""
    world = _begun(make_router, 4, but=(2, 3))
    at = [world.brokers[0]]
    world.names[NAME] = lambda broker: at[0]
    for broker in world.brokers:
        world.settings[broker.name] = {"join": (NAME,) if broker.number else ()}
    world.run(_TOGETHER)
    world.leave(world.brokers[0])
    at[0] = world.brokers[2]
    world.begin(world.brokers[2])  # its own name: it joins nobody
    world.run(_TOGETHER + WITHIN)
    wrong = list(connected(world))
    world.run(_TOGETHER + WITHIN + _CALM)
    return [*wrong, *at_rest(world)]


def a_name_that_leads_into_another_network(make_router: RouterMaker = Router) -> list[str]:
    """For a while, the name to join is that of another network, which has a name of its own."""
    world = _begun(make_router, 6, but=(2,))
    ours, theirs = world.brokers[:3], world.brokers[3:]
    at = [theirs[0]]
    world.names[NAME] = lambda broker: at[0]
    world.names[OTHER_NAME] = lambda broker: theirs[0]
    for broker in ours:
        join = {2: (NAME,), 1: (ours[0].address,)}.get(broker.number, ())
        world.settings[broker.name] = {"join": join, "name": "palio"}
    for broker in theirs:
        world.settings[broker.name] = {"join": (OTHER_NAME,), "name": "derby"}
    world.run(_TOGETHER / 2)
    world.begin(ours[2])
    world.run(_TOGETHER)
    wrong = [*_links_between(world, {broker.name for broker in theirs})]
    at[0] = ours[0]
    world.run(_TOGETHER + WITHIN)
    assert ours[2].router is not None
    if not ours[2].router.neighbours():
        wrong.append("The broker that was misled is still alone.")
    return [*wrong, *_links_between(world, {broker.name for broker in theirs})]


def everybody_joined_through_one_broker(make_router: RouterMaker = Router) -> list[str]:
    """All know the same broker, which dies for good."""
    world = _begun(make_router, 12, degree=3)
    world.run(_TOGETHER)
    world.leave(world.brokers[0])
    world.run(_TOGETHER + WITHIN)
    wrong = list(connected(world))
    world.run(_TOGETHER + WITHIN + _CALM)
    return [*wrong, *at_rest(world)]


def all_begin_anew_without_the_one_to_join(make_router: RouterMaker = Router) -> list[str]:
    """The broker that all have joined is gone for good, and then all others restart at the same moment."""
    world = _begun(make_router, 8, degree=3, keeps=True)
    world.run(_TOGETHER)
    world.leave(world.brokers[0])
    world.run(_TOGETHER + _CALM)
    for broker in world.brokers[1:]:
        world.crash(broker)
        world.after(1.0, world.begin, broker)
    world.run(world.now + WITHIN)
    wrong = list(connected(world))
    world.run(world.now + _CALM)
    return [*wrong, *at_rest(world)]


def a_full_star(make_router: RouterMaker = Router) -> list[str]:
    """All begin at the same moment and know one broker, which is full at once: nobody fights for ever."""
    world = _begun(make_router, 16, degree=2, but=tuple(range(16)))
    for broker in world.brokers:
        world.begin(broker)
    world.run(_TOGETHER)
    wrong = list(connected(world))
    asked = world.dialled
    if asked > 20 * len(world.brokers):
        wrong.append(f"{len(world.brokers)} brokers have dialled {asked} times to come together.")
    world.run(_TOGETHER + _CALM)
    before = world.sent.total(), world.dialled
    world.run(_TOGETHER + 2 * _CALM)
    if (world.sent.total(), world.dialled) != before:
        wrong.append("They still ask each other.")
    return [*wrong, *at_rest(world)]


def a_broker_that_is_back_before_it_was_missed(make_router: RouterMaker = Router) -> list[str]:
    """It begins again at once, under its name; its neighbours take it for connected until their heartbeats."""
    wrong = []
    for number, brokers in ((1, 2), (0, 2), (1, 6), (0, 6)):
        world = _begun(make_router, brokers, degree=3)
        world.run(_TOGETHER)
        broker = world.brokers[number]
        world.crash(broker, silent=True)
        world.begin(broker)
        world.run(_TOGETHER + SILENCE + WITHIN / 2)
        wrong += list(connected(world))
        world.run(_TOGETHER + _CALM)
        wrong += list(at_rest(world))
    return wrong


def events_after_a_join(make_router: RouterMaker = Router) -> list[str]:
    """Somebody subscribes at a broker that has just begun, or has lost its parent: what is confirmed comes."""
    return [
        problem
        for seed in (1, 2)
        for after in (None, 0.0, 0.1, 0.5)
        for problem in _missed_after_a_join(make_router, seed, after)
    ]


def _missed_after_a_join(make_router: RouterMaker, seed: int, after: float | None) -> Iterator[str]:
    """A client subscribes as soon as its broker is there, or so long after the death of its parent."""
    world = _begun(make_router, 9, degree=3, seed=seed, but=(8,))
    world.run(_TOGETHER)
    publisher, where = world.brokers[0], world.brokers[8]
    numbers: dict[int, float] = {}

    def publish() -> None:
        numbers[world.publish(publisher, what="news")] = world.now
        if world.now < _TOGETHER + 15.0:
            world.after(0.05, publish)

    publish()
    if after is not None:
        where = _below(world, publisher)
        assert where.router is not None
        parent = where.router.overlay().parent
        world.crash(next(one for one in world.brokers if one.name == parent))
        world.run(world.now + after)
    else:
        world.begin(where)
    world.subscribe(where, 'what = "news"', "news")
    world.run(_TOGETHER + 60.0)
    since = world.ready.get((where.name, "news"))
    if since is None:
        yield f"{where.name} was never told that its subscription is known."
        return
    missed = [one for one, at in numbers.items() if at > since and not world.delivered[where.name, one]]
    if missed:
        yield f"{where.name} missed {len(missed)} events after its subscription was confirmed, seed {seed}."


def _below(world: OverlayWorld, publisher: OverlayBroker) -> OverlayBroker:
    """A broker whose parent is neither the publisher's nor the publisher."""
    for broker in world.there():
        assert broker.router is not None
        parent = broker.router.overlay().parent
        if parent and parent != publisher.name and broker is not publisher:
            return broker
    raise AssertionError("All are linked with the publisher.")


REPORTED: dict[str, Callable[..., list[str]]] = {
    "a name that was passed on": a_name_that_was_passed_on,
    "a name that is resolved once": a_name_that_is_resolved_once,
    "a name that leads into another network": a_name_that_leads_into_another_network,
    "everybody joined through one broker": everybody_joined_through_one_broker,
    "all begin anew without the one to join": all_begin_anew_without_the_one_to_join,
    "a full star": a_full_star,
    "a broker that is back before it was missed": a_broker_that_is_back_before_it_was_missed,
    "events after a join": events_after_a_join,
}
