"""Journals that come back older: nothing new is taken for old, what is missing is named, nobody is forgotten.

Disks are copied at some moment and put back later; what happens in between and afterwards happens in any order.
"""

from copy import deepcopy

import pytest

from palio.protocol.durable.control import Seek
from palio.protocol.durable.letters import Fetch
from palio.protocol.durable.lineage import MOST_GAPS
from palio.protocol.durable.subscriptions import Detach
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Forward, LinkKind
from palio.routing.durable.effects import Trim
from palio.routing.durable.home.subscription import GENERATIONS
from palio.routing.forwarding import SEEN_WINDOW, Seen
from palio.sim.faults.disk import Disk
from tests.routing.durable.test_rare import got, homes, publish
from tests.routing.durable.world import World, number

LINE = ["a", "m", "b"], [("a", "m"), ("m", "b")]
RING = ["a", "m", "b", "n"], [("a", "m"), ("m", "b"), ("b", "n"), ("n", "a")]
seeds = pytest.mark.parametrize("seed", range(8))


def network(seed, *, kind=LinkKind.PEER) -> World:
    """A durable subscription at b, which has got 1 to 5 from a."""
    world = World(f"forks {seed}", *(RING if kind is LinkKind.GRAPH else LINE), kind=kind)
    world.run()
    world.attach("one", "b", "s0", "n > 0")
    world.run()
    publish(world, "a", *range(1, 6))
    world.run()
    assert got(world, "s0") == set(range(1, 6))
    return world


def come_back(world, broker, disk) -> None:
    """A broker crashes, and begins anew with another disk."""
    world.crash(broker)
    world.disks[broker] = deepcopy(disk)
    world.begin(broker)


def gaps(world, what="GapNoticed", name="s0") -> list:
    return [entry[4:] for entry in world.history if entry[1] == what and entry[3] == name]


def publish_around(world, numbers) -> None:
    """Publish at `a` while links are made, before and after."""
    for n in numbers:
        publish(world, "a", n)
        for _ in range(world.choose.randint(0, 20)):
            world.step()
        if world.choose.random() < 0.3:
            world.heal()
    world.heal()
    world.run()


@seeds
@pytest.mark.parametrize("kind", [LinkKind.PEER, LinkKind.GRAPH])
@pytest.mark.parametrize("gone", [False, True], ids=["older", "gone"])
def test_what_is_published_then_comes_and_the_gap_is_named_once(seed, kind, gone):
    world = network(seed, kind=kind)
    copy = Disk() if gone else deepcopy(world.disks["a"])
    publish(world, "a", *range(6, 16))
    world.run()
    come_back(world, "a", copy)
    publish_around(world, range(16, 40))
    assert got(world, "s0") == set(range(1, 40))
    assert gaps(world) == [("a", 15, None)]
    assert gaps(world, "gap") == [("a", 15, None)]
    (subscription,) = world.routers["b"].durable.statistics().subscriptions
    assert [(gap.origin, gap.after) for gap in subscription.gaps] == [("a", 15)]


@seeds
def test_it_is_named_to_who_attaches_later_and_after_a_crash(seed):
    world = network(seed)
    copy = deepcopy(world.disks["a"])
    publish(world, "a", *range(6, 9))
    world.run()
    come_back(world, "a", copy)
    world.heal()
    world.run()
    world.crash("b")
    world.heal()
    world.attach("two", "b", "s0", "n > 0")
    world.run()
    assert [entry[4:] for entry in world.history if entry[1:4] == ("GapNoticed", "two", "s0")] == [
        ("a", 8, None)
    ]


@seeds
def test_it_goes_with_the_subscription_to_another_home(seed):
    """So do the lineages: what a home knew is known at the next."""
    world = network(seed)
    copy = deepcopy(world.disks["a"])
    publish(world, "a", *range(6, 9))
    world.run()
    world.attach("two", "m", "s0", "n > 0")
    world.run()
    assert "s0" in world.disks["m"].subscriptions
    come_back(world, "a", copy)
    publish_around(world, range(9, 30))
    assert got(world, "s0") == set(range(1, 30))
    world.attach("three", "b", "s0", "n > 0")
    world.run()
    assert [entry[4:] for entry in world.history if entry[1:4] == ("GapNoticed", "three", "s0")] == [
        ("a", 8, None)
    ]


@seeds
def test_what_waits_is_of_the_journal_as_it_was_and_stays(seed):
    """Invariant 9: the new events have the sequences of what is in the spool, and are none of it."""
    world = network(seed)
    copy = deepcopy(world.disks["a"])
    world.post("b", Detach("s0"), "one")
    publish(world, "a", *range(6, 16))
    world.run()
    waiting = [one for _, one in world.disks["b"].subscriptions["s0"].spool.values() if one.origin == "a"]
    assert [one.sequence for one in waiting][-3:] == [13, 14, 15]
    come_back(world, "a", copy)
    world.heal()
    world.run()
    world.crash("b")  # it will find what waits beyond its position, and fetch what is published now
    publish(world, "a", *range(16, 30))
    world.run()
    world.heal()
    world.run()
    world.attach("two", "b", "s0", "n > 0")
    world.run()
    assert got(world, "s0") == set(range(1, 30))


@seeds
def test_a_journal_that_came_back_older_trims_nothing_for_who_has_read_the_other(seed):
    world = network(seed)
    copy = deepcopy(world.disks["a"])
    publish(world, "a", *range(6, 16))
    world.run()
    come_back(world, "a", copy)
    publish(world, "a", *range(16, 20))  # before b is heard of again
    for _ in range(30):
        world.step()
    # What b had on disk when it was last asked is told once more.
    (identity,) = [one.identity for one in world.disks["b"].subscriptions.values()]
    router = world.routers["a"]
    service = router.durable
    before = service.journal.readers[identity]
    service.begin([], world.now)
    service.parts.retention.progress([(identity, 15)], "a 1" if len(copy.lineage) > 1 else "none")
    assert service.journal.readers[identity] == before
    assert service.journal.trimmed == copy.trimmed
    assert [(gap.origin, gap.upto) for gap in service.statistics().gaps] == [("a", 15)]
    world.heal()
    world.run()
    assert got(world, "s0") == set(range(1, 20))


@seeds
@pytest.mark.parametrize("begun_since", [False, True])
def test_readers_that_an_older_disk_does_not_know_are_heard_of_before_anything_is_trimmed(seed, begun_since):
    """The subscription at c became a reader after the disk was copied. It is cut off while b reads all."""
    world = World(f"forks {seed}", ["a", "b", "c"], [("a", "b"), ("a", "c")])
    world.run()
    world.attach("one", "b", "s0", "n > 0")
    world.run()
    publish(world, "a", *range(1, 6))
    world.run()
    if begun_since:
        world.crash("a")
        world.heal()
        world.run()
    copy = deepcopy(world.disks["a"])
    if begun_since:  # there is another life then, of which the disk does not know
        world.crash("a")
        world.heal()
        world.run()
    world.attach("two", "c", "s1", "n > 0")
    world.run()
    if not begun_since:  # there are events then that it does not have
        publish(world, "a", *range(6, 9))
        world.run()
    come_back(world, "a", copy)
    world.connect(frozenset("ab"))
    for n in range(9, 30):
        publish(world, "a", n)
        world.run()
    assert got(world, "s0") >= set(range(9, 30))
    world.heal()
    world.run()
    assert got(world, "s1") >= set(range(9, 30))
    assert [gap for gap in gaps(world, name="s1") if gap[2] is not None] == []
    assert world.disks["a"].trimmed == world.disks["a"].head


@seeds
def test_a_home_that_came_back_older_is_told_what_is_trimmed(seed):
    world = network(seed)
    copy = deepcopy(world.disks["b"])
    publish(world, "a", *range(6, 16))
    world.run()
    assert world.disks["a"].trimmed == 15
    come_back(world, "b", copy)
    world.heal()
    world.attach("two", "b", "s0", "n > 0")
    publish(world, "a", *range(16, 20))
    world.run()
    assert gaps(world) == [("a", 5, 15)]
    assert got(world, "s0") == set(range(1, 20))


@seeds
def test_what_a_disk_brought_back_gives_way_to_what_had_gone_on(seed):
    """The subscription went from b to m, and is on its way back, when b's disk comes back as it was before."""
    world = network(seed)
    copy = deepcopy(world.disks["b"])
    world.attach("two", "m", "s0", "n > 0")
    world.run()
    world.attach("three", "b", "s0", "n > 0")
    while world.disks["m"].subscriptions["s0"].moving_to is None:
        assert world.step() or world.wait()
    come_back(world, "b", copy)
    world.heal()
    world.attach("four", "b", "s0", "n > 0")
    world.run()
    assert homes(world, "s0") == ["b"]
    assert world.disks["b"].subscriptions["s0"].generation == 2 * GENERATIONS + 1
    world.attach("five", "b", "s0", "n > 0")  # who took what was there was told that it is taken
    publish(world, "a", *range(6, 9))
    world.run()
    assert got(world, "s0") == set(range(1, 9))


def test_what_was_created_in_a_life_that_the_disk_does_not_know_has_not_ended():
    """Somebody else may have it: only a disk that knows all that there was knows what never came to be."""
    world = network(0)
    world.crash("b")
    world.begin("b")
    endings = world.routers["b"].durable.parts.endings
    assert endings.has_ended("1 b 1 77")
    come_back(world, "b", Disk())
    assert not world.routers["b"].durable.parts.endings.has_ended("1 b 2 77")


def test_an_ordinary_restart_is_no_fork():
    world = network(0)
    for _ in range(3):
        world.crash("a")
        world.begin("a")
        publish_around(world, range(100, 103))
    assert gaps(world) == gaps(world, "gap") == []
    lineage = world.disks["b"].subscriptions["s0"].lineages["a"]
    assert lineage[0].id == "a 1"


def test_a_broker_of_an_earlier_version_is_believed():
    """It says no lineage; nor does anybody who has an old position."""
    world = network(0)
    disk = world.disks["b"].subscriptions["s0"]
    disk.lineages.clear()
    disk.position["a"] = 3
    world.crash("b")
    world.heal()
    world.run()
    assert gaps(world) == []
    assert disk.lineages["a"][0].id == "a 1"


def test_who_is_moved_back_misses_nothing():
    """What was trimmed before the place that somebody asked for is no gap: it was read once."""
    world = network(1)
    assert world.disks["a"].trimmed == 5
    world.attach("one", "b", "s0", "n > 0")
    world.post("b", Seek("s0", since="all"), "one")
    world.run()
    assert gaps(world) == []


def test_what_is_seen_in_a_later_life_is_not_taken_for_what_was_before():
    seen = Seen()
    assert [seen.add("a", n) for n in (1, 2, 5, 5)] == [True, True, True, False]
    seen.begin_anew("a")
    assert [seen.add("a", n) for n in (1, 2, 2)] == [True, True, False]
    assert [seen.was_before("a", n) for n in (1, 3, 3, 5, 6)] == [True, False, True, True, False]
    seen.begin_anew("a")
    assert [seen.was_before("a", n) for n in (1, 2, 4, 6)] == [True, True, False, False]
    assert not seen.was_before("b", 1)
    seen.begin_anew("b")
    seen.add("a", 10 * SEEN_WINDOW)
    seen.begin_anew("a")
    assert seen.was_before("a", 7)


def test_an_old_copy_that_comes_late_is_dropped_all_the_same():
    """Only what has met the present epoch alone is surely of the present life of its origin."""
    world = network(2)
    come_back(world, "a", deepcopy(world.disks["a"]))
    world.heal()
    world.run()
    late = Forward((Envelope("a", 5, 0.0, 1, "a", number(5)),))
    effects = world.routers["b"].handle(late, "m", world.now)
    assert effects == []
    assert world.routers["b"].statistics().forwarding.dropped == {"duplicate": 1}


STAR = ["a", "b", "c"], [("a", "b"), ("a", "c")]


def gone_on(seed) -> tuple[World, Disk]:
    """A subscription that was at a and is at b, and has got 1 to 5 from c; and a's disk as it was before."""
    world = World(f"gone on {seed}", *STAR)
    world.run()
    world.attach("one", "a", "s0", "n > 0")
    world.run()
    publish(world, "c", *range(1, 4))
    world.run()
    copy = deepcopy(world.disks["a"])
    world.attach("two", "b", "s0", "n > 0")
    publish(world, "c", 4, 5)
    world.run()
    assert (homes(world, "s0"), got(world, "s0")) == (["b"], set(range(1, 6)))
    return world, copy


@seeds
@pytest.mark.parametrize("origin", ["a", "c"])
def test_what_a_disk_brought_back_speaks_for_nobody_and_gives_way(seed, origin):
    """While the home is cut off, its former home reads what is published, and journals keep it."""
    world, copy = gone_on(seed)
    come_back(world, "a", copy)
    world.connect(frozenset("ac"))
    publish(world, origin, *range(6, 20))
    assert {one.origin for _, one in world.disks["a"].subscriptions["s0"].spool.values()} >= {origin}
    world.heal()
    world.run()
    assert homes(world, "s0") == ["b"]
    assert got(world, "s0") == set(range(1, 20))
    assert world.disks["b"].subscriptions["s0"].gaps == ()  # the copy misses what b had read: 4 and 5
    assert all(disk.trimmed == disk.head for disk in world.disks.values())


@seeds
def test_nor_does_it_at_a_third_home_and_the_subscription_stays_where_it_has_gone_on(seed):
    """Its client is at c while b is cut off: what a's disk has brought back goes there, and gives way there."""
    world, copy = gone_on(seed)
    come_back(world, "a", copy)
    world.connect(frozenset("ac"))
    world.run()
    world.attach("three", "c", "s0", "n > 0")
    world.run()
    assert "s0" in world.disks["c"].subscriptions
    publish(world, "c", *range(6, 20))
    world.heal()
    world.run()
    assert homes(world, "s0") == ["b"]
    assert world.disks["b"].subscriptions["s0"].gaps == ()
    world.attach("four", "c", "s0", "n > 0")
    world.run()
    assert got(world, "s0") == set(range(1, 20))


@seeds
def test_what_is_on_disk_as_it_was_speaks_when_everyone_was_asked(seed):
    """An ordinary restart: journals are trimmed as soon as all have said that they do not have it."""
    world, _ = gone_on(seed)
    world.crash("b")
    world.begin("b")
    world.connect(frozenset("ab"))
    world.crash("c")
    publish(world, "a", 6)
    assert world.disks["a"].trimmed < world.disks["a"].head
    world.heal()
    world.run()
    assert world.disks["a"].trimmed == world.disks["a"].head


@seeds
def test_what_is_trimmed_between_a_question_and_its_page_is_named(seed):
    """The journal forgets its reader, as one that came back older has, while that asks for a page."""
    world = network(seed)
    world.crash("b")
    publish(world, "a", *range(6, 16))
    service = world.routers["a"].durable
    serve = service.parts.serving.fetch

    def trimmed_first(sender, letter) -> None:
        service.journal.trimmed = 8
        service.begin(effects := [Trim(8)], world.now)
        serve(sender, letter)
        world.carry_out("a", effects)

    service.parts.handlers[Fetch] = trimmed_first
    world.heal()
    while not world.disks["b"].subscriptions["s0"].gaps:
        assert world.step() or world.wait()
    assert world.disks["b"].subscriptions["s0"].position["a"] == 5, "it is named before it is passed"
    world.attach("two", "b", "s0", "n > 0")
    world.run()
    handed = {entry[7] for entry in world.history if entry[1] == "handed"}  # by their sequences
    assert handed == {*range(1, 6), *range(9, 16)}
    assert gaps(world, "gap") == [("a", 5, 8)]
    assert set(gaps(world)) == {("a", 5, 8)}


@seeds
def test_what_is_confirmed_goes_on_from_where_it_is(seed):
    """It was at a, b and a again when a's disk comes back as it was first; then it goes to b once more."""
    world, copy = gone_on(seed)
    world.attach("three", "a", "s0", "n > 0")
    world.run()
    come_back(world, "a", copy)
    world.heal()
    world.run()
    world.attach("four", "b", "s0", "n > 0")
    world.run()
    assert homes(world, "s0") == ["b"]
    assert world.disks["b"].subscriptions["s0"].identity == copy.subscriptions["s0"].identity
    publish(world, "c", *range(6, 20))
    assert got(world, "s0") == set(range(1, 20))


@seeds
def test_what_is_damaged_is_passed_over_and_named(seed):
    """Also where it lies at the end of a page, or all of a page is damaged."""
    world = network(seed)
    world.crash("b")
    publish(world, "a", *range(6, 20))
    damaged = sorted(world.choose.sample(range(6, 20), world.choose.choice((1, 3, 10, 14))))
    for sequence in damaged:
        world.disks["a"].flip(sequence)
    world.heal()
    world.run()
    world.attach("two", "b", "s0", "n > 0")
    world.run()
    handed = {entry[7] for entry in world.history if entry[1] == "handed"}  # by their sequences
    assert handed == set(range(1, 20)).difference(damaged)
    assert {origin for origin, *_ in gaps(world)} == {"a"}
    named = {sequence for _, after, upto in gaps(world) for sequence in range(after + 1, upto + 1)}
    assert named >= set(damaged)
    if len(gaps(world)) < MOST_GAPS:
        assert named == set(damaged)
    assert world.disks["a"].trimmed == 19


@seeds
def test_where_a_new_one_begins_is_a_place_in_this_journal_and_no_other_of_that_name(seed):
    """It moves before it has met any journal; the one in which it began is gone, and has as many new events."""
    world = World(f"begins {seed}", *LINE)
    world.run()
    publish(world, "a", 1, 2, 3)
    world.attach("one", "a", "s0", "n > 0")
    while not homes(world, "s0"):
        world.step()
    world.attach("two", "b", "s0", "n > 0")
    while "b" not in homes(world, "s0"):
        assert world.step() or world.wait()
    come_back(world, "a", Disk())
    publish(world, "a", *range(4, 9))
    world.heal()
    world.run()
    assert got(world, "s0") == set(range(4, 9))
    assert gaps(world) == [("a", 3, None)]
