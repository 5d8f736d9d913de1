"""Whether anybody wants what an advertisement describes."""

import random

import pytest

from palio import Advertisement, Filter
from palio.protocol.inquiries import Wanted, Watch
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Advertise, Ended, Release, Subscribe
from palio.routing.occurrences import Close, Open
from palio.routing.watching import MAX_WATCHES_PER_SESSION
from tests.routing.harness import Network

PRICES = Advertisement.parse("price > 0")


def wanted(network, session="pat"):
    """What the session was told since this was asked last."""
    told = [answer.wanted for one, answer in network.answers if isinstance(answer, Wanted) and one == session]
    network.forget()
    return told


def test_who_watches_is_told_at_once_and_whenever_it_changes():
    network = Network([("1", "2"), ("2", "3")])
    network.ask("1", "pat", Open(), Watch("w", PRICES))
    assert wanted(network) == [False]
    network.subscribe("3", "ann", "symbol = 1")
    assert wanted(network) == []  # what has a symbol is not described by the advertisement
    network.subscribe("3", "ann", "price > 5")
    assert wanted(network) == [True]
    network.subscribe("2", "bob", "price > 7")
    network.ask("3", "ann", Close())
    assert wanted(network) == []  # Bob takes Ann's place
    network.ask("2", "bob", Release("price > 7"))
    assert wanted(network) == [False]
    network.ask("1", "pat", Subscribe("own", Filter.parse("price > 9")))
    assert wanted(network) == [True]


def test_a_link_that_goes_takes_its_interest_along():
    network = Network([("1", "2")])
    network.subscribe("2", "ann", "true")
    network.ask("1", "pat", Open(), Watch("w", PRICES))
    assert wanted(network) == [True]
    network.disconnect("1", "2")
    network.run()
    assert wanted(network) == [False]


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [(LinkKind.MASTER, "covering"), (LinkKind.PEER, "flooding"), (LinkKind.GRAPH, "flooding")],
)
def test_where_nobody_can_know_somebody_may_want_it(kind, strategy):
    network = Network(brokers=["1", "2"], strategy=strategy)
    network.ask("1", "pat", Open(), Watch("w", PRICES))
    assert wanted(network) == [False]
    network.connect("1", "2", kind)
    network.run()
    assert wanted(network) == [True]
    network.disconnect("1", "2")
    network.run()
    assert wanted(network) == [False]


def test_with_advertisements_interest_comes_to_who_advertises():
    network = Network([("1", "2")], advertisements=True)
    network.subscribe("2", "ann", "price > 5")
    network.ask("1", "pat", Open(), Watch("w", PRICES))
    assert wanted(network) == [False]
    network.ask("1", "pat", Advertise("a", PRICES))
    assert wanted(network) == [True]


def test_a_watch_ends_by_release_or_with_its_session():
    network = Network([("1", "2")])
    for session in ("pat", "eve"):
        network.ask("1", session, Open(), Watch("w", PRICES))
    network.ask("1", "pat", Release("w"))
    assert network.answers[-1] == ("pat", Ended(("w",)))
    network.ask("1", "eve", Close())
    network.forget()
    network.subscribe("2", "ann", "true")
    assert wanted(network) == wanted(network, "eve") == []
    network.ask("1", "pat", Release("w"))
    assert [answer.error for _, answer in network.answers] == ["UnknownHandle"]


def test_a_handle_names_one_thing():
    network = Network(brokers=["1"])
    network.ask("1", "pat", Open(), Subscribe("s", Filter.parse("true")), Watch("w", PRICES))
    network.forget()
    other = Advertisement.parse("price > 9")
    network.ask("1", "pat", Watch("s", PRICES), Watch("w", other), Subscribe("w", Filter.parse("x = 1")))
    assert [answer.error for _, answer in network.answers] == ["HandleInUse"] * 3
    network.forget()
    network.ask("1", "pat", Watch("w", PRICES))  # once more is no harm
    assert wanted(network) == [True]


def test_watches_of_a_session_are_bounded():
    network = Network(brokers=["1"])
    watches = [Watch(f"w{n}", PRICES) for n in range(MAX_WATCHES_PER_SESSION + 1)]
    network.ask("1", "pat", Open(), *watches)
    assert [answer.error for _, answer in network.answers[-1:]] == ["TooManyWatches"]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_told_is_what_a_look_at_all_filters_says(seed):
    choose = random.Random(seed)
    network = Network([("1", "2"), ("2", "3")])
    advertisements = [Advertisement.parse(f"x between {n} and {n + 2}") for n in range(0, 20, 2)]
    network.ask("2", "pat", Open(), *[Watch(f"w{n}", one) for n, one in enumerate(advertisements)])
    told = {answer.handle: answer.wanted for _, answer in network.answers}
    held = {}
    for step in range(60):
        network.forget()
        broker = choose.choice("123")
        if held and choose.random() < 0.5:
            handle = choose.choice(list(held))
            where, _ = held.pop(handle)
            network.ask(where, f"s{where}", Release(handle))
        else:
            low = choose.randint(0, 20)
            filter = Filter.parse(f"x between {low} and {low + choose.randint(0, 6)}")
            held[str(step)] = broker, filter
            network.ask(broker, f"s{broker}", Open(), Subscribe(str(step), filter))
        for _, answer in network.answers:
            if isinstance(answer, Wanted):
                assert told[answer.handle] is not answer.wanted  # only changes are told
                told[answer.handle] = answer.wanted
        for n, one in enumerate(advertisements):
            assert told[f"w{n}"] is any(one.overlaps(filter) for _, filter in held.values())
