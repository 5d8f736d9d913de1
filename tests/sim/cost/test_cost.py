"""Measured runs: what is counted is what was sent, and nothing is missing in the end."""

import msgspec
import pytest

from palio.sim.cost.run import Measured, run
from palio.sim.cost.scenario import CostScenario
from palio.sim.cost.world import MeasuredWorld
from palio.sim.scenario import WrongScenario

SMALL = CostScenario(brokers=4, origins=2, homes=2, subscriptions=6, topics=3, rate=20.0, lead=1.0, tail=2.0)
KINDS = ("forward", "mark", "letter", "question", "link")


def changed(**settings):
    return msgspec.structs.replace(SMALL, **settings)


def without_clock(outcome):
    return msgspec.structs.replace(outcome, wall_seconds=0.0)


def test_without_trouble_both_deliver_the_same_over_the_same_links():
    transient, durable = run(changed(delivery="transient")), run(SMALL)
    assert transient.violations == durable.violations == 0
    assert transient.published == durable.published == 40
    assert transient.deliveries == durable.deliveries > 40
    assert transient.forward_messages == durable.forward_messages == transient.messages > 0
    assert durable.messages == durable.forward_messages + durable.mark_messages
    assert durable.appends == 40
    assert transient.appends == durable.journal_reads == 0
    assert durable.latency_mean > transient.latency_mean > 0
    assert durable.setup_messages > transient.setup_messages > 0


def test_marks_cross_a_link_once_a_second_at_the_most_in_each_direction():
    """However much is published: that is why the share that they add falls with the rate."""
    slow, fast = run(changed(rate=20.0)), run(changed(rate=200.0))
    # What was published in 2 seconds is told in 3 ticks; the last of it takes a tick for each hop, and back.
    most = 2 * (SMALL.brokers - 1) * (3 + 2 * (SMALL.brokers - 1))
    assert 0 < slow.mark_messages <= most
    assert 0 < fast.mark_messages <= most


@pytest.mark.parametrize("outage", ["home", "origin", "link"])
def test_after_an_outage_everything_comes(outage):
    outcome = run(changed(outage=outage, outage_seconds=3.0))
    assert outcome.violations == 0
    assert outcome.published == 20 * 6
    assert outcome.backlog > 0
    assert 0 < outcome.catch_up_seconds < 3
    assert outcome.journal_reads > 0
    assert outcome.entries_read > 0
    assert outcome.messages == sum(getattr(outcome, f"{kind}_messages") for kind in KINDS)
    assert outcome.bytes == sum(getattr(outcome, f"{kind}_bytes") for kind in KINDS)


def test_subscriptions_of_a_home_are_read_for_together():
    """After a link has been away for a moment, with a thousand of them: fifty times fewer reads."""
    outcome = run(
        changed(
            brokers=6, origins=4, homes=1, subscriptions=1_000, topics=20, outage="link", outage_seconds=1.0
        )
    )
    assert outcome.violations == 0
    assert outcome.reads_one_by_one > 1_000
    assert outcome.reads_one_by_one >= 50 * outcome.journal_reads


def test_a_longer_outage_leaves_more_to_catch_up_with():
    short, long = (run(changed(outage="link", outage_seconds=seconds)) for seconds in (1.0, 8.0))
    assert long.backlog > 2 * short.backlog
    assert long.letter_bytes > short.letter_bytes


def test_a_scenario_decides_its_run():
    scenario = changed(outage="home", outage_seconds=1.0)
    assert without_clock(run(scenario)) == without_clock(run(scenario))
    assert CostScenario.from_json(scenario.to_json()) == scenario


def test_what_does_not_come_is_a_violation(monkeypatch):
    """A world that loses a message on a link, without anybody being told, is found out."""
    send = MeasuredWorld._send
    sent = []

    def lossy(world, station, broker, message):
        if type(message).__name__ == "Forward":
            sent.append(message)
            if len(sent) == 5:
                return
        send(world, station, broker, message)

    monkeypatch.setattr(MeasuredWorld, "_send", lossy)
    assert run(changed(delivery="transient")).violations > 0


def test_writes_that_wait_for_the_disk_are_written_together():
    measured = Measured(changed(rate=2_000.0, tail=0.5))
    outcome = measured.outcome()
    assert outcome.violations == 0
    assert outcome.latency_p99 < 0.5, "a thousand writes of 4 ms each, one after the other, take seconds"


@pytest.mark.parametrize(
    ("field", "value"),
    [("brokers", 0), ("origins", 5), ("rate", 0.0), ("outage_seconds", -1.0)],
)
def test_wrong_scenarios_are_refused(field, value):
    with pytest.raises(WrongScenario) as caught:
        changed(**{field: value})
    assert caught.value.field == field


def test_a_transient_subscription_has_nothing_to_catch_up_with():
    with pytest.raises(WrongScenario, match="do not catch up"):
        changed(delivery="transient", outage="home")
