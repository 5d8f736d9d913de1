"""Requests and their replies."""

import pytest

from palio import Advertisement, Filter, Notification
from palio.protocol.envelope import Envelope
from palio.protocol.inquiries import Answered, Enquire, Request, Requested, Respond, Responded
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Advertise, Refused, Subscribe
from palio.routing.occurrences import Close, Open
from tests.routing.harness import Bench, Network

LINE = [("1", "2"), ("2", "3"), ("2", "4")]
WHO = Notification({"who": 1})
REPLY = Notification({"me": 2})


def requested(network):
    return [(session, answer) for session, answer in network.answers if isinstance(answer, Requested)]


def responded(network):
    return [answer for _, answer in network.answers if isinstance(answer, Responded)]


@pytest.mark.parametrize("kind", [LinkKind.PEER, LinkKind.MASTER, LinkKind.GRAPH])
def test_every_taker_replies_and_the_last_word_comes_when_all_have(kind):
    network = Network([("1", "2"), ("3", "2"), ("4", "2")], kind=kind)
    network.subscribe("3", "ann", "who = 1")
    network.subscribe("4", "bob", "true", "who > 0")
    network.ask("1", "pat", Open(), Request(7, WHO))
    (ann, to_ann), (bob, to_bob) = sorted(requested(network))
    assert (ann, to_ann.handles, to_ann.envelope.notification) == ("ann", ("who = 1",), WHO)
    assert (bob, to_bob.handles) == ("bob", ("true", "who > 0"))
    network.ask("3", "ann", Respond(to_ann.id, REPLY))
    assert responded(network) == [Responded(7, REPLY)]  # at once
    network.ask("4", "bob", Respond(to_bob.id))
    assert responded(network) == [Responded(7, REPLY), Responded(7, None, last=True)]
    assert all(router.statistics().inquiries.pending == 0 for router in network.routers.values())


def test_a_taker_that_fails_says_so_and_has_answered():
    network = Network(LINE)
    network.subscribe("3", "ann", "who = 1")
    network.ask("1", "pat", Open(), Request(7, WHO))
    ((_, to_ann),) = requested(network)
    network.ask("3", "ann", Respond(to_ann.id, problem="LookupError: nobody"))
    problem = Responded(7, problem="LookupError: nobody")
    assert responded(network) == [problem, Responded(7, None, last=True)]
    assert all(router.statistics().inquiries.pending == 0 for router in network.routers.values())


@pytest.mark.parametrize("strategy", ["flooding", "covering"])
def test_a_request_that_reaches_nobody_is_answered_at_once(strategy):
    network = Network(LINE, strategy=strategy)
    network.ask("1", "pat", Open(), Request(7, WHO))
    assert responded(network) == [Responded(7, None, last=True)]
    assert not network.delivered


def test_a_master_that_knows_of_nobody_is_asked_and_says_so():
    network = Network([("1", "2"), ("2", "3")], kind=LinkKind.MASTER)
    network.ask("1", "pat", Open(), Request(7, WHO))
    assert network.ways(Enquire) == [("1", "2"), ("2", "3")]
    assert responded(network) == [Responded(7, None, last=True)]


def test_who_does_not_answer_in_time_is_missing():
    network = Network(LINE)
    network.subscribe("3", "ann", "true")
    network.subscribe("3", "eve", "true")
    network.subscribe("4", "bob", "true")
    network.ask("1", "pat", Open(), Request(7, WHO, 2.0))
    ids = dict(requested(network))
    network.ask("4", "bob", Respond(ids["bob"].id, REPLY))
    assert responded(network) == [Responded(7, REPLY)]
    while network.timers:
        network.wait()
    assert responded(network) == [Responded(7, REPLY), Responded(7, None, last=True, missing=2)]
    network.ask("3", "ann", Respond(ids["ann"].id, REPLY))  # too late
    assert len(responded(network)) == 2
    assert network.routers["3"].statistics().inquiries.dropped == {"late": 1}


def test_a_taker_whose_session_ends_has_nothing_to_say():
    network = Network(LINE)
    network.subscribe("3", "ann", "true")
    network.ask("1", "pat", Open(), Request(7, WHO))
    network.ask("3", "ann", Close())
    assert responded(network) == [Responded(7, None, last=True)]


def test_a_link_that_goes_down_is_missing():
    network = Network(LINE)
    network.subscribe("3", "ann", "true")
    network.ask("1", "pat", Open(), Request(7, WHO))
    network.disconnect("2", "3")
    network.run()
    assert responded(network) == [Responded(7, None, last=True, missing=1)]
    assert network.routers["3"].statistics().inquiries.pending == 0  # nobody is there to be answered


def test_an_asker_that_goes_is_not_answered():
    network = Network([("1", "2")])
    network.subscribe("2", "ann", "true")
    network.ask("1", "pat", Open(), Request(7, WHO), Close())
    ((_, asked),) = requested(network)
    network.ask("2", "ann", Respond(asked.id, REPLY))
    assert responded(network) == []
    assert network.routers["1"].statistics().inquiries.pending == 0


def test_who_asks_may_be_among_the_takers():
    network = Network()
    network.routers["1"] = Bench().router
    network.ask("1", "pat", Open(), Subscribe("h", Filter.parse("true")), Request(7, WHO))
    ((_, asked),) = requested(network)
    network.ask("1", "pat", Respond(asked.id, REPLY))
    assert responded(network) == [Responded(7, REPLY), Responded(7, None, last=True)]
    network.forget()
    network.ask("1", "pat", Request(8, WHO), Close())
    assert responded(network) == []


def test_only_a_taker_replies_and_only_once():
    network = Network([("1", "2")])
    network.subscribe("2", "ann", "true")
    network.subscribe("2", "bob", "true")
    network.ask("2", "eve", Open())
    network.ask("1", "pat", Open(), Request(7, WHO))
    asked = dict(requested(network))["ann"].id
    network.ask("2", "eve", Respond(asked, REPLY), Respond("nonsense", REPLY), Respond("", REPLY))
    network.ask("2", "ann", Respond(asked, REPLY), Respond(asked, REPLY))
    assert responded(network) == [Responded(7, REPLY)]


def test_a_request_that_comes_by_two_ways_is_asked_once():
    bench = Bench("2", "3")
    bench.ask("ann", Subscribe("h", Filter.parse("true")))
    enquire = Enquire(Envelope("9", 5, 0.0, 1, "9", WHO), 2.0)
    first = bench.router.handle(enquire, "2", 0.0)
    assert any(getattr(effect, "session", None) == "ann" for effect in first)
    (answer,) = bench.router.handle(enquire, "3", 0.0)
    assert (answer.broker, answer.message) == ("3", Answered("9", 5, last=True))


@pytest.mark.parametrize("timeout", [0.0, -1.0, 1e9, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(timeout):
    bench = Bench()
    bench.ask("pat")
    (reply,) = bench.router.handle(Request(7, WHO, timeout), "pat", 0.0)
    assert isinstance(reply.answer, Refused)
    assert (reply.answer.subject, reply.answer.error) == ("request 7", "WrongTimeout")


def test_what_is_not_advertised_is_not_asked():
    network = Network([("1", "2")], advertisements=True)
    network.ask("1", "pat", Open(), Request(7, WHO))
    assert [answer.error for _, answer in network.answers] == ["NotAdvertised"]
    network.forget()
    network.ask("1", "pat", Advertise("a", Advertisement.parse("who > 0")), Request(7, WHO))
    assert responded(network) == [Responded(7, None, last=True)]
