"""AT-20: what identity- and covering-based brokers pass on, in the examples of the classic strategies."""

import pytest

from palio import Filter
from palio.protocol.requests import Release, Subscribe
from tests.routing.harness import Bench

F, WIDER, G = "x > 5", "x > 1", "x > 7"


def subscribe(text):
    return Subscribe(text, Filter.parse(text))


@pytest.mark.parametrize(("strategy", "row"), [("identity", F), ("covering", F), ("covering", WIDER)])
def test_at_20_a_client_s_filter_goes_only_to_where_an_identical_or_covering_one_came_from(strategy, row):
    bench = Bench("B2", "B3", strategy=strategy)
    bench.hear("B3", add=row)
    assert bench.ask("client", subscribe(F)) == {"B3": {f"+ {F}"}}


@pytest.mark.parametrize("strategy", ["simple", "identity", "covering", "merging"])
def test_at_20_a_first_filter_of_a_neighbour_goes_to_all_others(strategy):
    bench = Bench("B2", "B3", "B4", strategy=strategy)
    assert bench.hear("B2", add=F) == {"B3": {f"+ {F}"}, "B4": {f"+ {F}"}}


def test_at_20_identity_passes_the_second_on_to_the_first_and_holds_cancels_back():
    bench = Bench("B2", "B3", "B4", strategy="identity")
    bench.hear("B2", add=F)
    assert bench.hear("B3", add=F) == {"B2": {f"+ {F}"}}
    assert bench.hear("B4", add=F) == {}
    assert bench.hear("B4", remove=F) == {}
    assert list(bench.hear("B3", remove=F)) == ["B2"]
    assert list(bench.hear("B2", remove=F)) == ["B3", "B4"]


def test_at_20_cancelling_sends_what_it_uncovers_to_all_but_its_only_source():
    bench = Bench("B2", "B3")
    bench.ask("client", subscribe(F))
    assert bench.hear("B2", add=G) == {}
    assert bench.ask("client", Release(F)) == {"B2": {f"- {F}"}, "B3": {f"- {F}", f"+ {G}"}}


def test_at_20_what_several_sources_want_goes_to_all_when_it_is_uncovered():
    bench = Bench("B2", "B3", "B4")
    bench.ask("client", subscribe(F))
    bench.hear("B2", add=G)
    bench.hear("B3", add=G)
    told = bench.ask("client", Release(F))
    assert told == {name: {f"- {F}", f"+ {G}"} for name in ("B2", "B3", "B4")}


def test_at_20_simple_passes_on_each_one():
    bench = Bench("B2", "B3", strategy="simple")
    bench.hear("B2", add=F)
    assert bench.ask("client", subscribe(F)) == {"B2": {f"+ {F}"}, "B3": {f"+ {F}"}}


def test_at_20_flooding_passes_on_none():
    bench = Bench("B2", "B3", strategy="flooding")
    assert bench.ask("client", subscribe(F)) == {}
