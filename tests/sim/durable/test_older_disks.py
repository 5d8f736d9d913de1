"""Disks that come back older: the oracle finds who takes new events for old, trims them, or says nothing.

`test_seeds` and `palio sim soak --faults --older-disks` have the runs in which nothing is wrong.
"""

import msgspec
import pytest

from palio.protocol.durable.lineage import Incarnation
from palio.protocol.durable.peers import Ask, Marks, Told
from palio.protocol.durable.subscriptions import GapNoticed
from palio.routing.effects import Reply, Send
from palio.routing.router import Router
from palio.sim.faults import violations
from palio.sim.faults.damage import come_back_older
from palio.sim.faults.disk import Disk
from palio.sim.faults.failures import shrink, story
from palio.sim.faults.record import NEVER, OlderDisk
from palio.sim.faults.run import Stage, prepare, simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.soak import drawn, soak_one, with_older_disks
from palio.sim.faults.steps import Older
from tests.sim.durable.planted import Planted, TurnsRound
from tests.sim.durable.test_disk import append, disk_with
from tests.slices import sliced

MOST_RUNS = 60
replace = msgspec.structs.replace


class TakesAnyJournalForTheSame(Planted):
    """The home ignores the lineages of journals."""

    def handle(self, message, source, now):
        if isinstance(message, Told):
            message = replace(message, heads=tuple(replace(head, lineage=()) for head in message.heads))
        return super().handle(message, source, now)

    def spoil_one(self, effect, now):
        return [effect]


class TakesAnyProgress(Planted):
    """The origin believes that whoever has read a journal of its name has read its own."""

    def handle(self, message, source, now):
        if isinstance(message, Marks):
            progress = tuple(replace(one, incarnation="") for one in message.progress)
            message = replace(message, progress=progress)
        elif isinstance(message, Ask):
            message = replace(message, places=())
        return super().handle(message, source, now)

    def spoil_one(self, effect, now):
        return [effect]


class TakesWhatIsNewForADuplicate(Planted):
    """A broker drops what has a sequence that it has seen before."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._core.forwarding._seen.begin_anew = lambda origin: None

    def spoil_one(self, effect, now):
        return [effect]


class NamesNoGap(Planted):
    def spoil_one(self, effect, now):
        return [] if isinstance(effect, Reply) and isinstance(effect.answer, GapNoticed) else [effect]


class SpeaksForWhatADiskBroughtBack(Planted):
    """A broker tells journals how far a subscription is that may have gone on from there."""

    def handle(self, message, source, now):
        self._confirm_all()
        return super().handle(message, source, now)

    def on_timer(self, name, now):
        self._confirm_all()
        return super().on_timer(name, now)

    def _confirm_all(self):
        for durable in self.durable.homes.subscriptions.values():
            durable.unconfirmed = False

    def spoil_one(self, effect, now):
        return [effect]


class NeverGivesWay(SpeaksForWhatADiskBroughtBack):
    """Nor does it say in which generations it has them: what is at two homes stays there."""

    def spoil_one(self, effect, now):
        if isinstance(effect, Send) and isinstance(effect.message, Ask):
            effect = replace(effect, message=replace(effect.message, generations=()))
        return [effect]


# Each with the first seed that is looked at, and what its runs break.
FAULTS = {
    TakesAnyJournalForTheSame: (1, violations.LostNotification),
    TakesAnyProgress: (420, violations.TrimmedTooFar),
    TakesWhatIsNewForADuplicate: (100, violations.LostNotification),
    NamesNoGap: (1, violations.LostNotification),
    SpeaksForWhatADiskBroughtBack: (79_000_190, violations.LostNotification),
    NeverGivesWay: (79_000_500, violations.LostNotification),
    TurnsRound: (1, violations.Disorder),
}


@pytest.mark.parametrize("router", FAULTS, ids=lambda router: router.__name__)
def test_a_planted_fault_is_caught(router):
    first, kind = FAULTS[router]
    for seed in range(first, first + MOST_RUNS):
        run = simulate(with_older_disks(drawn(seed)), make_router=router)
        if any(type(one) is kind for one in run.violations):
            return
    raise AssertionError(f"{router.__name__} was not caught as {kind.__name__} in {MOST_RUNS} runs")


@pytest.mark.parametrize("first", sliced(range(1, 481, 24), 1))
def test_every_promise_is_kept(first):
    told = 0
    for seed in range(first, first + 24):
        run = simulate(with_older_disks(drawn(seed)))
        if run.violations:
            small = shrink(run)
            raise AssertionError("\n".join([small.scenario.to_json(), *story(small, small.violations[0])]))
        told += sum(len(taking.gaps) for taking in run.record.takings.values())
    assert told, "little was asked of the oracle"


def test_what_else_a_seed_draws_stays_what_it_is():
    for seed in range(1, 30):
        plain = FaultScenario(seed=seed, brokers=3, crashes=2, leaves=2)
        (_, without), (_, script) = prepare(plain), prepare(replace(plain, older=2))
        without, script = [str(step) for step in without], [str(step) for step in script]
        assert [step for step in script if step in set(without)] == without
        assert sum("its disk comes back" in step for step in script) == 2


def test_some_seeds_of_a_soak_have_them_and_all_if_that_is_asked_for():
    shares = [drawn(seed).older > 0 for seed in range(400)]
    assert 20 <= sum(shares) <= 60
    assert soak_one(5, kinds=["older-disks"]).scenario.older
    assert not soak_one(5, even=True).scenario.older
    assert any(isinstance(step, Older) and step.back is None for s in range(9) for step in script_of(s))


def test_some_of_them_are_those_of_former_homes():
    scenarios = [with_older_disks(drawn(seed)) for seed in range(400)]
    assert 80 <= sum("homing" in one.mix for one in scenarios) <= 160
    assert not any("homing" in one.mix for one in map(drawn, range(400)) if not one.older)


def script_of(seed):
    return prepare(with_older_disks(drawn(seed)))[1]


def test_a_copied_disk_stays_what_it_is():
    disk = disk_with(append(1, 1, 2))
    disk.open(1, "one")
    disk.complete()
    copy = disk.copied()
    disk.open(2, "two")
    disk.queue.append(append(2, 3))
    disk.complete()
    assert (disk.head, copy.head) == (3, 2)
    assert [one.id for one in disk.lineage] == ["one", "two"]
    assert [one.id for one in copy.lineage] == ["one"]
    assert copy.recovered() != disk.recovered()
    assert Disk().copied().recovered() == Disk().recovered()


def test_whoever_had_gone_on_in_another_lineage_cannot_know_what_was_lost_in_this_one():
    first, second, third = Incarnation(1, "one", 0), Incarnation(2, "two", 18), Incarnation(3, "three", 20)
    lost = OlderDisk(1, "b1", (first, third), {"s0": (first, second), "s1": (first,)}, {})
    assert lost.is_known_at("s0", 18)
    assert not lost.is_known_at("s0", 19)
    assert lost.is_known_at("s1", 19)
    assert not lost.is_known_at("s1", 21)
    assert not lost.is_known_at("s2", 18)


def test_who_had_read_a_journal_on_disk_before_another_took_its_place_loses_nothing_when_it_is_trimmed():
    first, second, third = Incarnation(1, "one", 0), Incarnation(2, "two", 18), Incarnation(3, "three", 20)
    older = OlderDisk(1, "b1", (first,), {}, {"s0 1": (20, (first,)), "s1 1": (20, (first, second))})
    found_again = first, third
    assert older.had_read("s0 1", 20, found_again)
    assert not older.had_read("s0 1", 21, found_again)
    assert not older.had_read("s0 1", 19, (Incarnation(4, "four", 0),))
    assert older.had_read("s1 1", 18, found_again)
    assert not older.had_read("s1 1", 19, found_again)  # it had that of another lineage
    assert not older.had_read("s2 1", 1, found_again)  # whose position is in no lineage


@pytest.mark.parametrize("all_of_them", [False, True])
def test_those_that_have_forgotten_everything_take_no_clients_before_they_meet_who_has_not_or_all(all_of_them):
    world = Stage(FaultScenario(seed=1, shape="line", brokers=3), make_router=Router).world
    wire = world.wires[0]
    emptied = [station for station in world.stations.values() if all_of_them or station is not wire.one]
    assert all(map(world.is_open, world.stations.values()))
    wire.cut_until = NEVER
    world.cut(wire, 0.0)
    for station in emptied:
        come_back_older(world, station, None, 0.0)
    world.run(until=world.now + 20.0)
    assert any(one.up for one in world.wires)  # the others have met
    assert not any(map(world.is_open, emptied))
    wire.cut_until = 0.0
    world.connect(wire)
    world.run(until=world.now + 20.0)
    assert all(map(world.is_open, world.stations.values()))
