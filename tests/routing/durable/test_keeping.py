"""What a journal keeps for those who look back, when all readers are done with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palio import Notification
from palio.routing.durable.desk import Desk, DurableSettings
from palio.routing.durable.effects import Recovered
from palio.routing.durable.facts import FactKind
from palio.routing.durable.origin.journal import MARKS, OriginJournal
from palio.routing.durable.origin.retention import Retention
from palio.routing.occurrences import PublishPart


def publish(journal: OriginJournal, now: float, token: int) -> None:
    assert journal.publish(
        "pat", PublishPart((Notification({"n": token}),), token, "", True), now, token, "pat"
    )
    journal.appended(token)


def test_without_a_time_nothing_is_kept_that_no_reader_needs():
    journal = OriginJournal("a", Recovered(), DurableSettings(retention=10.0, remembered=1_000))
    publish(journal, 100.0, 1)
    assert journal.trimmable(100.0) == 1
    journal.register("r", "a")
    assert journal.trimmable(100.0) == 0


def test_what_others_hold_is_kept_whoever_has_read_it():
    held = Recovered(facts=((FactKind.HELD.of("lake"), 1), (FactKind.HELD.of("report"), 2)))
    journal = OriginJournal("a", held, DurableSettings(retention=10.0, remembered=1_000))
    for token in range(1, 5):
        publish(journal, 100.0, token)
    assert journal.trimmable(100.0) == 1
    del journal.held["lake"]
    assert journal.trimmable(100.0) == 2


def test_everything_is_kept_for_its_time_and_not_much_longer():
    keep, step = 1_000.0, 1.0
    journal = OriginJournal("a", Recovered(), DurableSettings(retention=10.0, remembered=1_000, keep=keep))
    for token in range(1, 3_000):
        now = token * step
        publish(journal, now, token)
        upto = journal.trimmable(now)
        assert upto <= max(0.0, now - keep)
        assert upto >= now - keep * (1 + 1 / MARKS) - 2 * step
        journal.trimmed = upto
    assert len(journal._marks) <= MARKS + 2


def test_a_reader_that_is_slow_keeps_more():
    journal = OriginJournal("a", Recovered(), DurableSettings(retention=10.0, remembered=1_000, keep=5.0))
    journal.register("r", "a")
    for token in range(1, 100):
        publish(journal, float(token), token)
        assert journal.trimmable(float(token)) == 0
    journal.progress("r", 50)
    assert journal.trimmable(200.0) == 50


@given(st.lists(st.sampled_from(["a", "b", "c", None])))
def test_a_reader_that_goes_from_home_to_home_is_on_disk_all_the_time(homes):
    """None stands for the completion of a write; after any of them the broker may crash."""
    settings = DurableSettings()
    desk, journal = Desk("o", settings, 1), OriginJournal("o", Recovered(), settings)
    retention = Retention(desk, journal, introduced=None, forks=None)
    disk: dict[object, int] = {}
    retention.register("r", "a")
    for home in (None, *homes, *[None] * 3 * len(homes)):
        if home is not None:
            retention.register("r", home)
        elif desk.effects:
            write = desk.effects.pop(0)
            if write.value is None:
                disk.pop(write.fact, None)
            else:
                disk[write.fact] = write.value
            desk.completed(write.token)
            assert disk
    assert not desk.effects
    assert disk == {journal.fact("r"): 0}
