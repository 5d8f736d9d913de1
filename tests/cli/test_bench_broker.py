"""`palio bench broker`: what it counts by must be right, or its figures mean nothing."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from benchmarks.live.content import EVENT_BYTES, Background, StockBackground, events, fixed, rotated, total
from benchmarks.live.report import ratio_to_nats
from benchmarks.live.run import Run

from palio.model.notification import Notification
from tests.cli.test_program import ROOT


def test_events_have_two_hundred_bytes_everywhere():
    for content in events()[:100]:
        assert len(msgspec.msgpack.encode(content)) == EVENT_BYTES
        assert len(Notification(content).body.attributes) == EVENT_BYTES
        assert len(fixed(content)) == EVENT_BYTES


@pytest.mark.parametrize("background", [Background(50, share=0.6), Background(100_000), StockBackground(60)])
def test_what_background_filters_select_is_what_the_filters_say(background):
    drawn = background.events()[:200]
    if background.count < 100_000:
        filters = list(background.filters())
        for content in drawn:
            content["key"] -= content["key"] % 2_000 if background.name == "keys" else 0  # so that some match
        notifications = [Notification(content) for content in drawn]
        expected = [sum(one.matches(notification) for one in filters) for notification in notifications]
        assert background.matches(drawn) == expected
        assert sum(expected) > 0
    else:
        assert max(background.matches(drawn)) == 1


def test_matches_are_summed_over_what_a_publisher_goes_through_again():
    pool = rotated([1, 0, 5, 0], 1)
    assert sorted(pool) == [0, 0, 1, 5]
    for published in range(10):
        assert total(pool, published) == sum((pool * 3)[:published])


def test_the_ratio_to_nats_is_that_of_the_medians_and_that_of_the_best():
    def runs(*rates: float) -> list[Run]:
        return [Run(1, 1 / rate, 1.0, 1, 0, 0.0, 0.0, 0.0, 0.0, 0) for rate in rates]

    found = ratio_to_nats({"Palio": runs(10, 20, 60), "NATS": runs(30, 10, 5)}, "Palio")
    assert found == pytest.approx((2.0, 2.0))
    assert ratio_to_nats({"Palio": runs(10)}, "Palio") is None


def test_every_event_is_counted_at_every_subscriber(environment):
    words = "broker --quick --events 1000 --stock 0 --no-postgresql --scenario one-to-one --scenario latency"
    done = subprocess.run(
        [sys.executable, "-m", "palio.cli.main", "bench", *words.split(), "--scenario", "durable"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Every event arrived at every subscriber, once.") == 3
    assert "Palio, 200 filters" in done.stdout
    assert "met" not in done.stdout.replace("metrics", ""), "figures of a quick run are not judged"
