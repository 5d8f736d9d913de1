"""Tracing a notification, without delivering it."""

import pytest

from palio import Filter, Notification
from palio.protocol.envelope import Envelope
from palio.protocol.inquiries import Hop, Probe, Probed, Recipient, Trace, Traced
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Refused, Subscribe
from palio.routing import tracing
from palio.routing.echoes import MAX_DEPTH, MAX_PER_SESSION
from palio.routing.occurrences import Close, Open
from tests.routing.harness import Bench, Network, brokers_of

LINE = [("1", "2"), ("2", "3"), ("2", "4")]
TEN = Notification({"x": 10})


def test_the_way_is_a_tree_of_brokers_and_their_recipients():
    network = Network(LINE)
    network.subscribe("3", "ann", "x > 5", "x > 7")
    network.subscribe("4", "bob", "x < 5")
    network.subscribe("1", "pat", "x = 10")
    ann = Recipient("ann", False, ("x > 5", "x > 7"), ("x > 5", "x > 7"))
    pat = Recipient("pat", False, ("x = 10",), ("x = 10",))
    assert network.trace("1", "pat", TEN) == Hop("1", (pat,), (Hop("2", (), (Hop("3", (ann,)),)),))
    assert not network.delivered


def test_one_without_recipients_ends_where_it_begins():
    assert Network(LINE).trace("1", "pat", TEN) == Hop("1")


def test_in_a_graph_every_broker_is_met_once():
    network = Network([("1", "2"), ("2", "3"), ("1", "3")], kind=LinkKind.GRAPH)
    for name in "23":
        network.subscribe(name, f"s{name}", "true")
    assert sorted(brokers_of(network.trace("1", "pat", TEN))) == ["1", "2", "3"]


def test_a_neighbour_that_does_not_answer_is_a_problem_of_the_route():
    network = Network(LINE)
    network.subscribe("3", "ann", "true")
    network.subscribe("4", "bob", "true")
    network.under_way.append(("1", Open(), "pat"))
    network.under_way.append(("1", Trace(7, TEN), "pat"))
    while not any(receiver == "3" for receiver, _, _ in network.under_way):
        network.step()
    network.under_way = type(network.under_way)([one for one in network.under_way if one[0] != "3"])
    network.run()
    assert network.timers["1", "echoes"] > network.timers["2", "echoes"]  # the nearest one finds out
    network.wait()
    ((_, traced),) = [answer for answer in network.answers if isinstance(answer[1], Traced)]
    three, four = traced.route.onward[0].onward
    assert (three.broker, three.problem) == ("3", "This broker did not answer in time.")
    assert [one.name for one in four.recipients] == ["bob"]
    while network.timers:  # those that came too late find nothing
        network.wait()


def test_a_link_that_goes_down_is_a_problem_of_the_route():
    network = Network(LINE)
    network.subscribe("3", "ann", "true")
    network.under_way.append(("2", Open(), "pat"))
    network.under_way.append(("2", Trace(7, TEN), "pat"))
    network.step()
    network.step()
    network.disconnect("2", "3")
    network.run()
    ((_, traced),) = [answer for answer in network.answers if isinstance(answer[1], Traced)]
    assert traced.route.onward == (Hop("3", problem="The link to this broker went down."),)


def test_who_is_too_many_is_counted(monkeypatch):
    monkeypatch.setattr(tracing, "MAX_RECIPIENTS", 3)
    monkeypatch.setattr(tracing, "MAX_RECIPIENTS_IN_ALL", 4)
    monkeypatch.setattr(tracing, "MAX_FILTERS", 2)
    network = Network([("1", "2")])
    for n in range(5):
        network.subscribe("1", f"s{n}", "true", "x > 1", "x > 2")
        network.subscribe("2", f"t{n}", "true")
    route = network.trace("1", "pat", TEN)
    assert [one.name for one in route.recipients] == ["s0", "s1", "s2"]
    assert [one.more for one in route.recipients] == [1, 1, 1]
    assert route.problem == "2 more recipients are not listed."
    (two,) = route.onward
    assert [one.name for one in two.recipients] == ["t0"]
    assert two.problem == "2 more recipients are not listed. 2 more recipients are not listed."


def probe(bench, envelope, source="2"):
    return [effect.message for effect in bench.router.handle(Probe(envelope, 1.0), source, 0.0)]


def test_what_was_here_before_is_not_gone_on_with():
    bench = Bench("2", "3")
    bench.hear("3", add="true")
    envelope = Envelope("9", 1, 0.0, 1, "9", TEN)
    sent, _ = bench.router.handle(Probe(envelope, 1.0), "2", 0.0)
    assert (sent.broker, sent.message.envelope.hops) == ("3", 2)
    (again,) = probe(bench, envelope, "3")
    assert again.route.problem is not None
    assert not again.route.onward


def test_a_way_without_end_has_one():
    bench = Bench("2", "3")
    bench.hear("3", add="true")
    (answer,) = probe(bench, Envelope("9", 1, 0.0, MAX_DEPTH + 1, "9", TEN))
    assert answer.route == Hop("1", problem=f"Inquiries end after {MAX_DEPTH} hops.")


def test_traces_are_bounded_and_forgotten_with_their_session():
    bench = Bench("2")
    bench.hear("2", add="true")
    for message in (Open(), *[Trace(n, TEN) for n in range(MAX_PER_SESSION)]):
        bench.router.handle(message, "pat", 0.0)
    (refused,) = bench.router.handle(Trace(0, TEN), "pat", 0.0)
    assert isinstance(refused.answer, Refused)
    assert (refused.answer.subject, refused.answer.error) == ("trace 0", "TooManyInquiries")
    assert bench.router.statistics().inquiries.pending == MAX_PER_SESSION
    bench.router.handle(Close(), "pat", 0.0)
    assert bench.router.statistics().inquiries.pending == 0
    assert bench.router.handle(Probed("1", 1, Hop("2")), "2", 0.0) == []
    assert bench.router.statistics().inquiries.dropped == {"late": 1}


def test_who_has_no_session_may_not_ask():
    (refused,) = Bench().router.handle(Trace(1, TEN), "pat", 0.0)
    assert refused.answer.error == "NoSession"


@pytest.mark.parametrize("strategy", ["flooding", "simple", "identity", "covering", "merging"])
def test_all_strategies_trace(strategy):
    network = Network([("1", "2"), ("2", "3")], strategy=strategy)
    network.ask("3", "ann", Open(), Subscribe("h", Filter.parse("x > 5")))
    assert brokers_of(network.trace("1", "pat", TEN)) == ["1", "2", "3"]
