"""Siena: how subscriptions spread over a peer-to-peer network without cycles, and in a hierarchy."""

from palio import Filter
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Release, Subscribe, Unsubscribe
from tests.routing.harness import Bench, Network

ANY = "exists(airline)"
DENVER = 'airline = "UA" and dest = "DEN"'
BELOW_500 = 'airline = "UA" and price < 500'
BELOW_800 = 'airline = "UA" and price < 800'


def subscribe(text: str) -> Subscribe:
    return Subscribe(text, Filter.parse(text))


def text(filter: str) -> str:
    return str(Filter.parse(filter))


def test_5_3_example_of_broker_1_with_neighbours_2_3_and_4():
    bench = Bench("2", "3", "4")
    # 1. The widest filter comes from 3, and goes everywhere else.
    assert bench.hear("3", add=ANY) == {"2": {f"+ {text(ANY)}"}, "4": {f"+ {text(ANY)}"}}
    # 2. What it covers goes only to where it came from.
    assert bench.hear("2", add=DENVER) == {"3": {f"+ {text(DENVER)}"}}
    assert bench.hear("4", add=BELOW_800) == {"3": {f"+ {text(BELOW_800)}"}}
    assert (
        bench.ask("a", subscribe(BELOW_500)) == {}
    )  # covered by the one below 800 at 3, by the widest elsewhere
    # 3. A client wants the widest, too: it goes to 3 as well, and 3 needs nothing else.
    told = bench.ask("a", subscribe(ANY))
    assert told == {"3": {f"+ {text(ANY)}", f"- {text(DENVER)}", f"- {text(BELOW_800)}"}}
    # 4. It unsubscribes the widest, and with it all that this covers: 3 gets the others back, in one update.
    told = bench.ask("a", Unsubscribe(Filter.parse(ANY)))
    assert told == {"3": {f"- {text(ANY)}", f"+ {text(DENVER)}", f"+ {text(BELOW_800)}"}}
    # The row from 3 goes: what was below it becomes a root and goes to all but its source.
    assert {
        name: {line for line in lines if line[0] == "+"} for name, lines in bench.hear("3", remove=ANY).items()
    } == {
        "2": {f"+ {text(BELOW_800)}"},
        "4": {f"+ {text(DENVER)}"},
    }


def test_5_3_cancelling_the_wider_of_two_subscriptions_of_a_client_brings_the_narrower_back():
    bench = Bench("2")
    assert bench.ask("a", subscribe(BELOW_800)) == {"2": {f"+ {text(BELOW_800)}"}}
    assert bench.ask("a", subscribe(BELOW_500)) == {}
    assert bench.ask("a", Release(BELOW_800)) == {"2": {f"- {text(BELOW_800)}", f"+ {text(BELOW_500)}"}}


def test_3_unsubscribe_cancels_what_its_filter_covers_and_nothing_else():
    bench = Bench("2")
    bench.ask("x", subscribe("change > 10"))
    assert bench.ask("x", Unsubscribe(Filter.parse("change > 20"))) == {}
    assert bench.ask("x", Unsubscribe(Filter.parse("change > 0"))) == {"2": {"- change > 10"}}


def test_5_3_new_neighbours_exchange_their_roots():
    network = Network([("1", "2")], brokers=["3"])
    network.subscribe("1", "a", "x > 1", "x > 5", 'y = "b"')
    network.subscribe("2", "b", "x > 3", "z = 1")
    network.connect("2", "3")
    network.run()
    assert {str(filter) for filter in network.routers["3"].received("2").values()} == {
        "x > 1",
        'y = "b"',
        "z = 1",
    }
    network.disconnect("1", "2")
    network.run()
    network.wait()  # for as long as the rows of a lost link stand
    assert {str(filter) for filter in network.routers["3"].received("2").values()} == {"x > 3", "z = 1"}


def test_5_2_in_a_hierarchy_only_roots_go_up_and_every_notification_does():
    network = Network([("low", "top"), ("other", "top")], kind=LinkKind.MASTER)
    network.subscribe("low", "a", "x > 1", "x > 5")
    assert [str(filter) for filter in network.routers["top"].received("low").values()] == ["x > 1"]
    assert network.routers["low"].received("top") == {}
    network.forget()
    network.publish("low", "p", x=0)
    assert network.ways() == [("low", "top")]
    network.forget()
    network.publish("other", "p", x=6)
    assert network.ways() == [("other", "top"), ("top", "low")]
    assert [(session, handles) for session, _, handles in network.delivered] == [("a", ("x > 1", "x > 5"))]
