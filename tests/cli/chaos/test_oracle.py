"""The oracle finds every promise that is broken, and nothing where none is."""

from __future__ import annotations

import pytest

from palio.cli.chaos.oracle import ChaosOracle, WantedValues

BROKERS = ("a", "b", "c")


class Scene:
    """A network of three brokers, as clients see it. Everything comes unless a test says otherwise."""

    def __init__(self) -> None:
        self.oracle = ChaosOracle()
        for name in BROKERS:
            self.oracle.add_transient(name, WantedValues()).back("new", 0.0)
        self.oracle.add_durable("desk", "c", WantedValues(0, 50))
        self.sequences = dict.fromkeys(BROKERS, 0)

    def publish(self, at, by="a", value=10, *, to=BROKERS, desk=True, confirm=True):
        """Publish an event, which comes a tenth of a second later. Returns (publisher, count, key)."""
        count = self.oracle.published(by, value, at)
        self.sequences[by] += 1
        key = by, self.sequences[by]
        if confirm:
            self.oracle.confirmed(by, count, key, at)
        for name in (*to, *(["desk"] if desk and value < 50 else [])):
            self.come(name, (by, count, key), at + 0.1)
        return by, count, key

    def come(self, taker, event, at, *, again=False):
        self.oracle.came(taker, *event, at, again=again)

    def stream(self, begin, end, **how):
        for tenth in range(round(begin * 10), round(end * 10), 2):
            for name in BROKERS:
                self.publish(tenth / 10, name, **how)

    @property
    def wrong(self):
        return " ".join(self.oracle.violations)


@pytest.fixture
def scene():
    return Scene()


def test_nothing_is_wrong_where_everything_comes(scene):
    scene.stream(0, 5)
    scene.publish(5.0, value=70)  # the desk does not want it
    scene.oracle.judge_calm(0.0, 5.0, "at all")
    scene.oracle.judge_end(10.0)
    assert scene.oracle.is_complete()
    assert scene.oracle.violations == []
    assert scene.oracle.whole_after(0.0, 5.0) == 0.0
    assert scene.oracle.durable["desk"].got == scene.oracle.durable["desk"].owed == 75


def test_an_event_that_never_comes_to_a_durable_subscription_is_found(scene):
    scene.publish(1.0, desk=False)
    assert not scene.oracle.is_complete()
    assert scene.oracle.durable["desk"].lag(4.0) == 3.0
    scene.oracle.judge_end(60.0)
    assert "desk at c misses 1 confirmed events; a#1 was confirmed 59.0 seconds ago" in scene.wrong


def test_what_comes_late_to_a_durable_subscription_is_a_lag_and_no_mistake(scene):
    event = scene.publish(1.0, desk=False)
    scene.come("desk", event, 9.0)
    scene.oracle.judge_end(60.0)
    assert scene.oracle.violations == []
    assert scene.oracle.durable["desk"].longest == 8.0


def test_a_lag_is_excused_while_somebody_is_away_and_a_while_later_it_is_not(scene):
    oracle, desk = scene.oracle, scene.oracle.durable["desk"]
    scene.publish(1.0, desk=False)
    assert oracle.unexcused_lag(desk, 2.0) == 1.0
    oracle.transient["a"].away("fault 1", 2.0)
    assert oracle.unexcused_lag(desk, 5.0) == 0.0
    oracle.transient["a"].back("fault 1", 6.0)
    assert oracle.unexcused_lag(desk, 8.0) == 2.0
    separation = oracle.apart(frozenset("c"), 8.0)
    assert oracle.unexcused_lag(desk, 9.0) == 0.0
    separation.end = 10.0
    assert oracle.unexcused_lag(desk, 13.0) == 3.0
    scene.publish(11.0, "b", desk=False)
    assert desk.lag(13.0) == 12.0


def test_what_comes_before_it_is_confirmed_is_not_waited_for(scene):
    event = scene.publish(1.0, confirm=False)
    scene.oracle.confirmed(*event, 2.0)
    assert scene.oracle.is_complete()


def test_what_was_not_confirmed_is_owed_to_nobody(scene):
    scene.publish(1.0, to=(), desk=False, confirm=False)
    scene.oracle.judge_calm(0.0, 5.0, "at all")
    scene.oracle.judge_end(60.0)
    assert scene.oracle.violations == []


def test_a_foreign_event_is_found(scene):
    scene.come("desk", ("a", 99, ("a", 99)), 1.0)
    assert "desk got a#99, which nobody has published" in scene.wrong


def test_an_event_that_is_not_wanted_is_found(scene):
    event = scene.publish(1.0, value=70)
    scene.come("desk", event, 2.0)
    assert "desk got a#1 of value 70, which it does not want" in scene.wrong


@pytest.mark.parametrize("taker", ["b", "desk"])
def test_an_event_out_of_order_is_found(scene, taker):
    first = scene.publish(1.0, to=(), desk=False)
    second = scene.publish(1.2, to=(), desk=False)
    scene.come(taker, second, 2.0)
    scene.come(taker, first, 2.1)
    assert f"{taker} got a#1 after a#2" in scene.wrong


def test_order_begins_anew_with_a_new_connection_of_a_transient_subscription(scene):
    first = scene.publish(1.0, to=())
    second = scene.publish(1.2, to=())
    scene.come("b", second, 2.0)
    scene.oracle.transient["b"].away("connection", 2.1)
    scene.oracle.transient["b"].back("connection", 2.2)
    scene.come("b", first, 2.3)
    assert scene.oracle.violations == []


def test_what_comes_twice_is_found_unless_it_says_so_to_a_durable_subscription(scene):
    event = scene.publish(1.0)
    scene.come("desk", event, 2.0, again=True)
    assert scene.oracle.violations == []
    assert scene.oracle.counts["again"] == 1
    scene.come("desk", event, 3.0)
    assert "desk got a#1 again, and nothing said so" in scene.wrong
    scene.come("b", event, 3.0)
    assert "b got a#1 twice" in scene.wrong


def test_an_event_under_two_names_is_found_and_so_are_two_under_one(scene):
    event = scene.publish(1.0)
    scene.come("desk", (*event[:2], ("a", 7)), 2.0, again=True)
    assert "a#1 is there twice: as a/1 and a/7" in scene.wrong
    count = scene.oracle.published("b", 1, 3.0)
    scene.oracle.confirmed("b", count, ("a", 1), 3.0)
    assert "b#1 and a#1 are both called a/1" in scene.wrong


def test_what_is_lost_while_all_is_well_is_found(scene):
    scene.stream(0, 2)
    scene.publish(2.0, to=("a", "c"))
    scene.stream(2.2, 5)
    scene.oracle.judge_calm(0.0, 5.0, "before the first fault")
    assert "b misses 1 events before the first fault, when nothing was wrong; a#11 is one" in scene.wrong


def test_nothing_is_owed_to_who_is_away_nor_from_there(scene):
    away = scene.oracle.transient["b"]
    away.away("fault 1", 1.0)
    away.away("connection", 1.1)
    scene.publish(1.5, "a", to=("a", "c"))
    away.back("fault 1", 3.0)
    scene.publish(3.5, "a", to=("a", "c"))  # its client is not back yet
    away.back("connection", 4.0)
    scene.publish(0.5, "b", to=("b",))  # its broker died a moment later
    scene.publish(4.5, "a", to=("a", "c"))
    missed = [seen for seen, taker in scene.oracle.missed(0.0, 10.0)]
    assert missed == [("a", 3)]


def test_nothing_is_owed_across_a_split(scene):
    scene.publish(1.5, "a", to=("a", "b"))
    scene.oracle.apart(frozenset("c"), 2.0).end = 4.0
    assert list(scene.oracle.missed(0.0, 10.0)) == []
    scene.publish(2.5, "a", to=("a",))
    assert [taker.name for _, taker in scene.oracle.missed(0.0, 10.0)] == ["b"]  # on the same side


def test_how_soon_routes_were_whole_is_known_from_events(scene):
    scene.stream(0, 2)
    for at in (2.0, 2.2, 2.4):
        scene.publish(at, "a", to=("a", "c"))
    scene.publish(2.2, "c", to=("a", "c"))
    scene.stream(2.6, 5)
    assert scene.oracle.whole_after(2.0, 5.0) == pytest.approx(0.6)
    assert scene.oracle.whole_after(2.6, 5.0) == 0.0
    assert scene.oracle.whole_after(2.0, 2.5) is None


def test_what_comes_late_is_counted_unless_somebody_was_away(scene):
    late = scene.publish(1.0, to=("a", "c"))
    scene.come("b", late, 3.0)
    assert scene.oracle.counts["late"] == 1
    scene.oracle.transient["b"].away("fault 1", 4.0)
    scene.oracle.transient["b"].back("fault 1", 5.0)
    waited = scene.publish(4.5, to=("a", "c"))
    scene.come("b", waited, 7.0)
    assert scene.oracle.counts["late"] == 1


def test_only_so_many_sentences_are_kept_but_all_are_counted(scene):
    for number in range(500):
        scene.oracle.wrong(f"{number}")
    assert len(scene.oracle.violations) == 100
    assert scene.oracle.counts["violations"] == 500
