"""What workloads promise: covering as asked for, Zipf's law, locality, and publishers that keep their word."""

from collections import Counter
from random import Random

import msgspec
import pytest

from palio.matching.poset import Poset
from palio.protocol.requests import Advertise, Publish, Release, Subscribe, Unadvertise, Unsubscribe
from palio.routing.occurrences import Close, Open
from palio.sim.clients import ClientStep, LinkStep, Script
from palio.sim.scenario import Scenario
from palio.sim.shapes import draw
from palio.sim.workloads import Workload, topic

replace = msgspec.structs.replace


def workload(scenario: Scenario) -> Workload:
    return Workload(scenario, draw(scenario.shape, scenario.brokers, Random(scenario.seed)))


def script(scenario: Scenario, links: int = 9) -> Script:
    return Script(scenario, workload(scenario), links)


def messages(scenario: Scenario) -> list:
    return [
        step.message
        for phase in script(scenario).phases
        for step in phase.steps
        if isinstance(step, ClientStep)
    ]


@pytest.mark.parametrize("covered", [0.0, 0.3, 0.5, 0.9])
def test_as_many_subscriptions_are_covered_as_asked_for(covered):
    drawn = workload(Scenario(covered=covered, interests=10))
    filters = [drawn.subscription(0) for _ in range(400)]
    roots = len(Poset(filters).roots())
    assert 1 - roots / len(filters) == pytest.approx(covered, abs=0.07)


def test_where_everything_is_covered_each_topic_has_one_root():
    drawn = workload(Scenario(covered=1.0, interests=7))
    filters = [drawn.subscription(0) for _ in range(200)]
    assert {str(node.item) for node in Poset(filters).roots()} == {f'topic = "{topic(n)}"' for n in range(7)}


def test_filters_are_of_all_kinds():
    drawn = workload(Scenario(interests=5))
    texts = [drawn.subscription(0).source for _ in range(300)]
    for part in (" or ", "between", "starts with", "!=", " in (", "not ", "exists("):
        assert any(part in text for text in texts), part


def test_interest_follows_zipf():
    drawn = workload(Scenario(skew=1.0, interests=50, covered=0.0))
    counts = Counter(drawn._interest() for _ in range(20_000))
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.4)
    assert counts[0] > counts[1] > counts[4] > counts[20]
    even = workload(Scenario(skew=0.0, interests=10))
    counts = Counter(even._interest() for _ in range(10_000))
    assert min(counts.values()) > 800


def test_with_locality_clients_want_what_is_said_nearby():
    scenario = Scenario(shape="line", brokers=50, publishers=50, interests=50, covered=0.0)

    def nearby(locality: float) -> float:
        drawn = workload(replace(scenario, locality=locality))
        near = drawn._interests_near(0)
        said = [f'"{topic(interest)}"' for interest in near]
        texts = [drawn.subscription(0).source for _ in range(300)]
        return sum(any(name in text for name in said) for text in texts) / len(texts)

    assert nearby(1.0) > nearby(0.5) > nearby(0.0)


def test_publishers_advertise_all_that_they_publish():
    for seed in range(10):
        drawn = workload(Scenario(seed=seed, interests=7, publishers=6))
        for publisher in drawn.publishers:
            made = [drawn.advertisement(publisher, one) for one in drawn.advertised(publisher)]
            for _ in range(50):
                notification = drawn.notification(publisher)
                assert any(one.covers(notification) for one in made)


def test_wider_filters_cover():
    drawn = workload(Scenario(interests=6))
    for _ in range(200):
        filter = drawn.subscription(0)
        wider = drawn.wider(filter)
        assert wider.covers(filter)
        assert not filter.covers(wider)


def test_a_script_has_as_much_of_everything_as_the_scenario_says():
    plain = Counter(type(message) for message in messages(Scenario(subscriptions=30, notifications=70)))
    assert plain == {Open: 15, Subscribe: 30, Publish: 70}
    full = [
        message
        for seed in range(5)
        for message in messages(
            Scenario(
                seed=seed, advertisements=True, churn=0.8, repeats=0.5, both=0.5, batch=4, subscriptions=40
            )
        )
    ]
    kinds = {type(message) for message in full}
    assert kinds == {Open, Close, Subscribe, Release, Unsubscribe, Advertise, Unadvertise, Publish}
    sizes = {len(message.notifications) for message in full if isinstance(message, Publish)}
    assert sizes == {1, 2, 3, 4}


def test_links_that_go_come_back():
    phases = script(Scenario(link_churn=0.5), links=40).phases
    flow = next(phase for phase in phases if phase.name == "flow")
    changes = [step for step in flow.steps if isinstance(step, LinkStep)]
    assert 30 < len(changes) < 90
    state: dict[int, list[bool]] = {}
    for step in changes:
        state.setdefault(step.link, []).append(step.up)
    assert set(map(tuple, state.values())) == {(False, True), (False, True, False, True)}


@pytest.mark.parametrize("change", [{"strategy": "simple"}, {"topology": "graph"}, {"advertisements": True}])
def test_clients_do_the_same_whatever_the_network_does(change):
    def done(scenario: Scenario) -> list:
        left_out = (Advertise, Unadvertise)
        return [str(one) for one in messages(scenario) if not isinstance(one, left_out)]

    scenario = Scenario(seed=3, churn=0.5, repeats=0.3)
    assert done(scenario) == done(replace(scenario, **change))


def test_of_a_script_chosen_steps_can_be_kept():
    scenario = Scenario(subscriptions=5, notifications=5)
    steps = [step for phase in script(scenario).phases for step in phase.steps]
    chosen = tuple(step.number for step in steps if isinstance(getattr(step, "message", None), Publish))[:2]
    kept = [step for phase in script(replace(scenario, keep=chosen)).phases for step in phase.steps]
    assert Counter(type(step.message) for step in kept if isinstance(step, ClientStep)) == {
        Open: 15,
        Publish: 2,
    }
    assert [step for step in steps if step.number in chosen] == [step for step in kept if step.number in chosen]
