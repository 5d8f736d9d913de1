"""Bits that flip on disks: the oracle finds who delivers what is damaged, stops at it, or does not name it.

`test_seeds` and `palio sim soak --faults --flipped-bits` have the runs in which nothing is wrong.
"""

import msgspec
import pytest

from palio.protocol.durable.letters import Carry, Page
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.durable.subscriptions import GapNoticed
from palio.routing.durable.effects import Read, Spool
from palio.routing.effects import Reply, Send
from palio.routing.occurrences import Found
from palio.sim.faults import violations
from palio.sim.faults.disk import Disk
from palio.sim.faults.failures import shrink, story
from palio.sim.faults.run import prepare, simulate
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.soak import drawn, soak_one, with_flipped_bits
from palio.sim.faults.steps import Flip
from tests.sim.durable.planted import Planted
from tests.sim.durable.test_disk import EVERYTHING, append, disk_with
from tests.slices import sliced

MOST_RUNS = 60
replace = msgspec.structs.replace


def believes_its_disk(monkeypatch):
    """The store does not look at checksums: what is damaged is delivered as it is."""
    monkeypatch.setattr(Disk, "is_intact", lambda disk, flipped: True)


def stops_where_it_is_damaged(monkeypatch):
    """A damaged event ends each read: nothing comes of what is behind it."""
    read = Disk.read

    def read_up_to(disk, effect):
        found = read(disk, effect)
        if isinstance(found, Found) and found.damaged:
            first = found.damaged[0] - 1
            return Found(effect.token, first, tuple([one for one in found.envelopes if one.sequence <= first]))
        return found

    monkeypatch.setattr(Disk, "read", read_up_to)


def drops_what_is_read_with_it(monkeypatch):
    """What is damaged takes the rest of its page with it."""
    read = Disk.read

    def read_nothing(disk, effect):
        found = read(disk, effect)
        return replace(found, envelopes=()) if isinstance(found, Found) and found.damaged else found

    monkeypatch.setattr(Disk, "read", read_nothing)


def names_no_event(monkeypatch):
    """A damaged event is left out without a word."""
    read = Disk.read

    def read_silently(disk, effect):
        found = read(disk, effect)
        return replace(found, damaged=()) if isinstance(found, Found) else found

    monkeypatch.setattr(Disk, "read", read_silently)


def names_no_delivery(monkeypatch):
    """A damaged delivery goes aside without a word."""
    put_aside = Disk.put_aside

    def put_aside_silently(disk, broker, now):
        gaps = {name: kept.gaps for name, kept in disk.subscriptions.items()}
        put_aside(disk, broker, now)
        for name, kept in disk.subscriptions.items():
            kept.gaps = gaps[name]

    monkeypatch.setattr(Disk, "put_aside", put_aside_silently)


class LosesWhatIsDamagedOnItsWay(Planted):
    """An origin knows what is damaged, and tells no home."""

    def spoil_one(self, effect, now):
        match effect:
            case Send(broker, Carry(content=Page()) as carry):
                return [Send(broker, replace(carry, content=replace(carry.content, damaged=())))]
        return [effect]


class TellsNoTaker(Planted):
    def spoil_one(self, effect, now):
        return [] if isinstance(effect, Reply) and isinstance(effect.answer, GapNoticed) else [effect]


class NamesAnotherOne(Planted):
    """What is named is not what is missing."""

    def spoil_one(self, effect, now):
        if isinstance(effect, Reply) and isinstance(effect.answer, GapNoticed):
            gap = effect.answer
            return [Reply(effect.session, replace(gap, after=gap.after + 1, upto=(gap.upto or 0) + 1))]
        return [effect]


DISKS = {
    believes_its_disk: violations.NeverSaid,
    stops_where_it_is_damaged: violations.LostNotification,
    drops_what_is_read_with_it: violations.LostNotification,
    names_no_event: violations.LostNotification,
    names_no_delivery: violations.LostNotification,
}
ROUTERS = {
    LosesWhatIsDamagedOnItsWay: violations.LostNotification,
    TellsNoTaker: violations.LostNotification,
    NamesAnotherOne: violations.LostNotification,
}


def caught(kind, first=1, **more):
    for seed in range(first, first + MOST_RUNS):
        run = simulate(with_flipped_bits(drawn(seed)), **more)
        if any(type(one) is kind for one in run.violations):
            return True
    return False


@pytest.mark.parametrize("fault", DISKS, ids=lambda fault: fault.__name__)
def test_a_fault_of_a_disk_is_caught(fault, monkeypatch):
    fault(monkeypatch)
    assert caught(DISKS[fault]), f"{fault.__name__} was not caught in {MOST_RUNS} runs"


@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.__name__)
def test_a_planted_fault_is_caught(router):
    assert caught(ROUTERS[router], make_router=router), f"{router.__name__} was not caught in {MOST_RUNS} runs"


@pytest.mark.parametrize("first", sliced(range(1, 481, 24), 1))
def test_every_promise_is_kept(first):
    told = []
    for seed in range(first, first + 24):
        run = simulate(with_flipped_bits(drawn(seed)))
        if run.violations:
            small = shrink(run)
            raise AssertionError("\n".join([small.scenario.to_json(), *story(small, small.violations[0])]))
        told += [gap.what for taking in run.record.takings.values() for gap in taking.gaps]
    assert {"damaged", "deliveries"} & set(told), "little was asked of the oracle"


def test_what_else_a_seed_draws_stays_what_it_is():
    for seed in range(1, 30):
        plain = FaultScenario(seed=seed, brokers=3, crashes=2, leaves=2)
        (_, without), (_, script) = prepare(plain), prepare(replace(plain, flips=2))
        flips = sum(isinstance(step, Flip) for step in script)
        without, script = [[replace(step, number=0) for step in steps] for steps in (without, script)]
        assert ([step for step in script if step in set(without)], flips) == (without, 2)


def test_some_seeds_of_a_soak_have_them_and_all_if_that_is_asked_for():
    shares = [drawn(seed).flips > 0 for seed in range(400)]
    assert 20 <= sum(shares) <= 60
    assert soak_one(5, kinds=["flipped-bits"]).scenario.flips
    assert not soak_one(5, even=True).scenario.flips
    assert any(isinstance(step, Flip) for step in prepare(with_flipped_bits(drawn(3)))[1])


def test_a_damaged_event_is_left_out_and_told_until_it_is_trimmed():
    disk = disk_with(append(1, 1, 2, 3))
    disk.complete()
    disk.flip(2)
    found = disk.read(Read(2, EVERYTHING, 0, 3, 10))
    assert ([one.sequence for one in found.envelopes], found.damaged, found.upto) == ([1, 3], (2,), 3)
    assert disk.read(Read(2, EVERYTHING, 0, 3, 1)).damaged == ()  # it does not come so far
    copy = disk.copied()
    assert copy.read(Read(2, EVERYTHING, 0, 3, 10)).damaged == (2,)
    assert disk.read(Read(2, EVERYTHING, 2, 3, 10)).damaged == ()


def test_a_damaged_delivery_goes_aside_when_its_disk_is_opened_and_is_named():
    disk = disk_with(append(1, 1, 2, 3))
    disk.complete()
    letters = tuple((number, 0, disk.journal[number]) for number in (1, 2, 3))
    disk.queue.append(Spool(2, "s0", EVERYTHING, add=letters))
    disk.complete()
    disk.flip_delivery("s0", 1)
    disk.flip_delivery("s0", 2)
    disk.flip_delivery("s0", 3)
    disk.queue.append(Spool(3, "s0", add=((3, 1, disk.journal[3]),)))  # what is written again is what it is
    disk.complete()
    disk.put_aside("b0", 7.0)
    (subscribed,) = disk.recovered().subscriptions
    assert [number for number, *_ in subscribed.spool] == [3]
    assert subscribed.gaps == (JournalGap("b0", 0, 2, 7.0, "deliveries"),)
    disk.put_aside("b0", 8.0)
    assert disk.recovered().subscriptions == (subscribed,)
