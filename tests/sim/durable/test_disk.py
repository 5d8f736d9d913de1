"""The simulated disk: what is on it, what a crash takes, and what happens when it is full."""

import pytest

from palio import Filter, Notification
from palio.protocol.durable.attempts import Failure
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Append, Read, Recovered, Remove, SaveFact, Spool, Subscribed, Trim
from palio.routing.durable.facts import FactKind
from palio.routing.occurrences import Failed, Found, Stored
from palio.sim.faults.disk import Disk

EVERYTHING = Filter.parse("n > 0")

FAILURE = Failure(1.0, "desk", "rejected", "no")


def envelope(sequence, **properties):
    return Envelope("b0", sequence, float(sequence), 0, "b0", Notification({"n": sequence}, **properties))


def append(token, *sequences):
    return Append(token, tuple(envelope(sequence) for sequence in sequences), "p0")


def disk_with(*effects):
    disk = Disk()
    disk.queue.extend(effects)
    return disk


def test_the_disk_knows_all_that_is_written():
    """A field that the core adds and the simulated disk does not keep would look like a fault of the core."""
    assert set(Spool.__struct_fields__) == {
        "token", "name", "filter", "generation", "since", "identity", "moving_to", "next_delivery", "add",
        "remove", "dead", "position", "linger", "retry", "failures", "lineages", "gaps",
    }  # fmt: skip
    assert set(Subscribed.__struct_fields__) == {
        "name", "generation", "filter", "since", "position", "spool", "dead", "next_delivery", "moving_to",
        "identity", "linger", "retry", "failures", "lineages", "gaps",
    }  # fmt: skip
    assert set(Recovered.__struct_fields__) == {
        "head", "trimmed", "recent", "facts", "subscriptions", "archived", "lineage", "opened_before",
        "shared", "last_time",
    }  # fmt: skip


def test_what_is_written_is_found_again():
    disk = disk_with(
        Append(1, (envelope(1, id="x"),), "p0"),
        append(2, 2, 3),
        SaveFact(3, FactKind.READER.of("s0"), 1),
        Spool(
            4,
            "s0",
            EVERYTHING,
            identity="i",
            generation=2,
            since=0.5,
            moving_to="b1",
            linger=60.0,
            retry=Retry(attempts=2),
            failures=((3, (FAILURE,)), (4, (FAILURE,))),
            next_delivery=7,
            add=((3, 0, envelope(2)),),
            position=(("b0", 2),),
        ),
        Trim(1),
    )
    assert [disk.complete() for _ in range(5)] == [Stored(1), Stored(2), Stored(3), Stored(4), None]
    recovered = disk.recovered()
    assert (recovered.head, recovered.trimmed, recovered.last_time) == (3, 1, 3.0)
    assert recovered.recent == (("p0", "x", 1, 1.0),)
    assert recovered.facts == ((FactKind.READER.of("s0"), 1),)
    assert recovered.subscriptions == (
        Subscribed(
            name="s0",
            identity="i",
            generation=2,
            filter=EVERYTHING,
            since=0.5,
            position={"b0": 2},
            spool=((3, 0, envelope(2)),),
            dead=(),
            next_delivery=7,
            moving_to="b1",
            linger=60.0,
            retry=Retry(attempts=2),
            failures=((3, (FAILURE,)),),
        ),
    )


def test_a_number_is_a_delivery_or_a_dead_letter():
    letter = envelope(1)
    disk = disk_with(
        Spool(1, "s0", EVERYTHING, add=((1, 0, letter), (2, 0, letter))),
        Spool(2, "s0", remove=(1, 2), dead=((1, 5, letter), (2, 5, letter))),
        Spool(3, "s0", add=((1, 0, letter),)),
        Spool(4, "s0", remove=(2,)),
    )
    found = []
    while disk.queue:
        disk.complete()
        (stored,) = disk.recovered().subscriptions
        found.append(([number for number, *_ in stored.spool], [number for number, *_ in stored.dead]))
    assert found == [([1, 2], []), ([], [1, 2]), ([1], [2]), ([1], [])]


@pytest.mark.parametrize(("share", "head"), [(0.0, 0), (0.5, 1), (1.0, 2)])
def test_a_crash_leaves_the_first_part_of_what_was_being_written(share, head):
    disk = disk_with(append(1, 1), append(2, 2))
    lost = disk.crash(share)
    assert disk.head == head
    assert len(lost) == 2 - head
    assert not disk.queue


def test_a_full_disk_refuses_to_append_and_what_follows_it():
    disk = disk_with(append(1, 1), append(2, 2), append(3, 1))
    disk.full = True
    assert isinstance(disk.complete(), Failed)
    disk.full = False
    assert isinstance(disk.complete(), Failed)
    assert disk.complete() == Stored(3)


def test_on_a_full_disk_other_writes_wait_and_all_behind_them():
    disk = disk_with(Spool(1, "s0", EVERYTHING), Remove(2, "s0"))
    disk.full = True
    assert disk.is_blocked
    assert disk.crash(1.0) == [Spool(1, "s0", EVERYTHING), Remove(2, "s0")]
    assert not disk.subscriptions


def test_reading_is_limited_and_says_how_far_it_came():
    disk = disk_with(append(1, 1, 2, 3, 4), Trim(1))
    disk.complete(), disk.complete()
    assert disk.read(Read(2, EVERYTHING, 0, 4, 2)) == Found(2, 3, (envelope(2), envelope(3)))
    assert disk.read(Read(3, Filter.parse("n > 8"), 1, 4, 2)) == Found(3, 4, ())
    assert disk.read(Read(4, EVERYTHING, 1, 4, 9, since=4.0)) == Found(4, 4, (envelope(4),))
