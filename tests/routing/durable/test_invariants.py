"""The invariants of durable delivery, by the numbers that `home.subscription` gives them.

A world full of crashes and cuts is looked at after everything that happens in it.
"""

import re
from pathlib import Path

import pytest

from palio.protocol.durable.lineage import fork_point
from palio.protocol.durable.subscriptions import Done
from palio.routing.durable.effects import Spool
from palio.routing.durable.home import subscription
from palio.routing.durable.home.subscription import HomeState
from tests.routing.durable.world import SETTINGS, World, number

SOURCE = Path(subscription.__file__).parents[1]
BROKERS = ["a", "b", "c"]
LINKS = [("a", "b"), ("b", "c")]


class Watched(World):
    """Says what does not hold, whenever anything has happened."""

    def __init__(self, *arguments, **more) -> None:
        self.numbers = {}  # by identity and number: the delivery
        self.moving = {}  # by identity: the positions before
        super().__init__(*arguments, **more)

    def carry_out(self, name, effects) -> None:
        super().carry_out(name, effects)
        for effect in effects:
            if isinstance(effect, Spool) and effect.add:
                self.written_as_one(effect)
        if name in self.routers:
            self.look_at(name)

    def written_as_one(self, effect) -> None:
        """Invariant 2: what comes to the spool is there with the position of its origin."""
        if effect.filter is None and all(attempts == 0 for _, attempts, _ in effect.add):
            position = dict(effect.position)
            assert all(one.sequence <= position.get(one.origin, -1) for *_, one in effect.add), effect

    def handed(self, broker, hand) -> None:
        """Invariants 3 and 8: it is on disk, under one number, and the next number is there, too."""
        stored = self.disks[broker].subscriptions[hand.name]
        identity = stored.identity
        for delivery, _, envelope in hand.deliveries:
            assert delivery in stored.spool, "it is handed out and not on disk"
            assert stored.next_delivery > delivery
            name = envelope.origin, envelope.sequence
            assert self.numbers.setdefault((identity, delivery), name) == name
        super().handed(broker, hand)

    def answered(self, session, answer) -> None:
        if isinstance(answer, Done):
            stored = self.disks[self.takers[session]].subscriptions.get(answer.name)
            assert stored is None or not set(answer.deliveries) & set(stored.spool), "invariant 3"
        super().answered(session, answer)

    def look_at(self, broker) -> None:
        service = self.routers[broker].durable
        for reader, at in service.journal.readers.items():
            kept = [one for disk in self.disks.values() for one in disk.subscriptions.values()]
            known = [one.position.get(broker) for one in kept if one.identity == reader]
            known = [position for position in known if position is not None]
            assert not known or at <= max(known), "invariant 4"
        for one in service.homes.subscriptions.values():
            life = one.identity, one.generation, self.incarnations[broker]
            before = self.moving.get(life, {})
            assert all(one.position[o] >= at for o, at in before.items()), "invariant 1"
            self.moving[life] = dict(one.position)
            if one.state is HomeState.LIVE:
                assert one.epoch == service.epoch, "invariant 5"
                for origin, at in one.position.items():
                    lineages = one.lineages.get(origin, ()), self.disks[origin].lineage
                    assert fork_point(at, *lineages) == at, "invariant 9"
            for origin, waiting in one.catching_up.items():
                sequences = [envelope.sequence for envelope in waiting.buffer]
                assert sequences == sorted(sequences), "invariant 6"
                assert not sequences or sequences[0] > max(one.position[origin], waiting.target), "invariant 6"
                if one.state is HomeState.BEHIND:
                    assert not sequences, "invariant 5"
                    assert waiting.target <= self.disks[origin].head, "invariant 10"
            assert len(one.outbox) + one.spooling <= SETTINGS.outbox + SETTINGS.page, "invariant 7"


@pytest.mark.parametrize("seed", range(24))
def test_they_hold_whatever_happens(seed):
    world = Watched(f"invariants {seed}", BROKERS, LINKS)
    world.run()
    world.attach("one", "a", "s0", "n > 0", since="all")
    world.attach("two", "c", "s1", "n > 3")
    for n in range(1, 40):
        broker = world.choose.choice(BROKERS)
        if broker in world.routers:
            world.publish(f"p {broker}", broker, n, number(n))
        for _ in range(world.choose.randint(0, 30)):
            world.step()
        match world.choose.randint(0, 12):
            case 0 if len(world.routers) > 1:
                world.crash(world.choose.choice(sorted(world.routers)))
            case 1 if world.up:
                world.cut(world.choose.choice(sorted(world.up, key=sorted)))
            case 2 | 3:
                world.heal()
                world.wait()
    world.heal()
    world.run()
    for session, broker in (("three", "b"), ("four", "b")):
        world.attach(session, broker, "s0" if session == "three" else "s1", "n > 0")
    world.run()
    for n in range(100, 104):
        world.publish("p c", "c", n, number(n))
    world.run()
    assert [entry for entry in world.history if entry[1] == "handed"], "little was looked at"


def test_code_and_tests_refer_to_each_of_them():
    text = subscription.__doc__
    numbers = {int(found) for found in re.findall(r"^(\d+)\. \*", text, re.MULTILINE)}
    assert numbers == set(range(1, 11))
    elsewhere = [path for path in SOURCE.rglob("*.py") if path.name != "subscription.py"]
    for place in (elsewhere, [Path(__file__)]):
        said = " ".join([path.read_text() for path in place])
        groups = re.findall(r"[Ii]nvariants? ((?:\d+(?:, | and )?)+)", said)
        assert {int(one) for group in groups for one in re.findall(r"\d+", group)} == numbers
