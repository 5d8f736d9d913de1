"""Nothing confirmed is lost: random worlds in which brokers crash and links break."""

import random

import pytest

from palio import Filter
from palio.protocol.peers import LinkKind
from tests.routing.durable.world import World, number
from tests.slices import sliced

SHAPES = {
    "single": (["a"], [], LinkKind.PEER),
    "line": (["a", "b", "c"], [("a", "b"), ("b", "c")], LinkKind.PEER),
    "star": (["a", "b", "c", "d"], [("a", "b"), ("a", "c"), ("a", "d")], LinkKind.PEER),
    "hierarchy": (["a", "b", "c", "d"], [("b", "a"), ("c", "a"), ("d", "b")], LinkKind.MASTER),
    "ring": (["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], LinkKind.GRAPH),
}
STRATEGIES = ["covering", "simple", "identity", "merging", "flooding"]
SUBSCRIPTIONS = {"s0": "n > 0", "s1": "kind = 1", "s2": "kind = 2 and n > 3"}


def check(world: World, sent: dict) -> None:
    history = world.history
    for line in history:
        assert line[1] != "closed", line
    confirmed = {line[3] for line in history if line[1] == "confirmed"}
    for name, text in SUBSCRIPTIONS.items():
        filter = Filter.parse(text)
        ready = next(
            (index for index, line in enumerate(history) if line[1] == "DurableReady" and line[3] == name), None
        )
        if ready is None:
            continue
        handed = [line for line in history if line[1] == "handed" and line[3] == name]
        got = {line[8] for line in handed}
        for n, (notification, index) in sent.items():
            matches = filter.matches(notification)
            if matches and index > ready and n in confirmed:
                assert n in got, f"{name} did not get {n}"
            assert matches or n not in got, f"{name} got {n}, which it does not want"
        # Nothing comes again that was done with.
        done = set()
        for line in history:
            if line[1] == "done" and line[3] == name:
                done.update(line[4])
            if line[1] == "handed" and line[3] == name:
                assert line[4] not in done, f"{name} got delivery {line[4]} again"
        # Each event has one delivery number, so nothing is there twice; first deliveries keep the order.
        numbers = {}
        latest = {}
        for line in handed:
            origin, sequence = line[6], line[7]
            if (origin, sequence) in numbers:
                assert numbers[origin, sequence] == line[4], f"{name} has {line[8]} twice"
                assert line[5] > 1, f"{name} got {line[8]} again without a mark"
                continue
            numbers[origin, sequence] = line[4]
            assert latest.get(origin, 0) < sequence, f"{name} got {origin} {sequence} out of order"
            latest[origin] = sequence


def misfortune(world: World, brokers, links) -> None:
    """Something goes wrong, or is repaired."""
    choose = world.choose
    what = choose.random()
    if what < 0.10 and world.routers:
        world.crash(choose.choice(list(world.routers)))
    elif what < 0.25:
        dead = [name for name in brokers if name not in world.routers]
        if dead:
            world.begin(choose.choice(dead))
    elif what < 0.33 and world.up:
        world.cut(choose.choice(sorted(world.up, key=sorted)))
    elif what < 0.55 and links:
        world.connect(frozenset(choose.choice(links)))


def play(world: World, brokers, links, *, move: bool, since: str = "now") -> dict:
    """Clients come and go and publish, things go wrong; in the end all is repaired and comes to rest."""
    choose = world.choose
    sent = {}
    world.run()
    places = {f"c {name}": (choose.choice(brokers), name) for name in SUBSCRIPTIONS}

    def attach(session, broker):
        name = places[session][1]
        world.attach(session, broker, name, SUBSCRIPTIONS[name], since=since)

    for session, (broker, _) in places.items():
        attach(session, broker)
    for n in range(1, 40):
        for _ in range(choose.randint(0, 25)):
            if not world.step() and choose.random() < 0.7:
                world.wait()
        misfortune(world, brokers, links)
        if choose.random() < 0.12:
            for session, (broker, _) in places.items():
                target = choose.choice(brokers) if move else broker
                if (move or session not in world.takers) and target in world.routers:
                    attach(session, target)
        if world.routers:
            notification = number(n, kind=choose.randint(1, 2))
            sent[n] = notification, len(world.history)
            world.publish(f"p{n}", choose.choice(list(world.routers)), n, notification)
    world.heal()
    for _ in range(3):
        for session, (broker, _) in places.items():
            if session not in world.takers or move:
                attach(session, world.takers.get(session, broker))
        world.run(60_000)
    return sent


@pytest.mark.parametrize("seed", sliced(range(40), 3))
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_confirmed_is_lost(shape, seed):
    brokers, links, kind = SHAPES[shape]
    strategy = random.Random(f"{shape} {seed}").choice(STRATEGIES)
    world = World(f"{shape} {seed}", brokers, links, kind=kind, strategy=strategy)
    check(world, play(world, brokers, links, move=False))


@pytest.mark.parametrize("seed", sliced(range(40), 3))
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "single"])
def test_nothing_confirmed_is_lost_when_clients_move(shape, seed):
    brokers, links, kind = SHAPES[shape]
    world = World(f"moving {shape} {seed}", brokers, links, kind=kind)
    sent = play(world, brokers, links, move=True)
    check(world, sent)
    for name in SUBSCRIPTIONS:
        homes = [broker for broker, disk in world.disks.items() if name in disk.subscriptions]
        assert len(homes) <= 1, f"{name} is at home at {homes}"


@pytest.mark.parametrize("seed", sliced(range(10), 2))
@pytest.mark.parametrize("shape", SHAPES)
def test_who_reaches_back_gets_everything_that_was_confirmed(shape, seed):
    brokers, links, kind = SHAPES[shape]
    world = World(f"history {shape} {seed}", brokers, links, kind=kind)
    world.run()
    for n in range(1, 12):
        world.publish(f"p{n}", world.choose.choice(brokers), n, number(n, kind=1))
        world.step()
    world.attach("c", world.choose.choice(brokers), "s0", "n > 0", since="all")
    for n in range(12, 20):
        world.publish(f"p{n}", world.choose.choice(brokers), n, number(n, kind=1))
        world.step()
    world.run()
    got = {line[8] for line in world.history if line[1] == "handed"}
    confirmed = {line[3] for line in world.history if line[1] == "confirmed"}
    assert got == confirmed == set(range(1, 20))
