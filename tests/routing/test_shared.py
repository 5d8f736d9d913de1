"""Shared records by themselves: any order gives the same, bounds hold, digests tell what differs."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.broker.border import border
from palio.model.filter import Filter
from palio.protocol import peers
from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.sharing import MAX_VALUE, Share, SharedRecord, Verified, Verify
from palio.routing import shared, sharing
from palio.routing.durable.effects import KeyedRecord
from palio.routing.effects import CloseLink, Send, SharedChanged, SharedReady
from palio.routing.occurrences import LinkUp
from palio.routing.shared import LAST_COUNTER, SharedRecords, TooMuchShared
from tests.routing.harness import Bench, router
from tests.slices import examples

VERSIONS = st.builds(
    SharedRecord,
    st.sampled_from(["family", "path"]),
    st.sampled_from(["a", "b"]),
    st.integers(1, 3),
    st.sampled_from(["lucca", "pisa"]),
    st.none() | st.sampled_from([b"", b"one", b"two"]),
)


def contents(records):
    return {(one.kind, one.key): one for one in records}


def hello(name, digests, kind=peers.LinkKind.PEER):
    terms = router("1").configuration.terms
    return peers.Hello(kind, 1.0, terms, peers.Component(name), (name,), 1, digests)


@examples(200)
@given(st.lists(VERSIONS, max_size=12), st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_in_which_versions_are_heard_is_of_no_importance(versions, random, pieces):
    one, other = SharedRecords("one"), SharedRecords("other")
    one.take(versions)
    shuffled = versions * 2
    random.shuffle(shuffled)
    for start in range(pieces):
        other.take(shuffled[start::pieces])
    assert contents(one) == contents(other)
    assert one.digests() == other.digests()
    assert one.bytes == other.bytes == SharedRecords("x", one).bytes
    for (kind, key), latest in contents(one).items():
        assert (latest.counter, latest.broker) == max(
            (each.counter, each.broker) for each in versions if (each.kind, each.key) == (kind, key)
        )


@examples(200)
@given(st.lists(VERSIONS, max_size=8), st.lists(VERSIONS, max_size=8), st.lists(VERSIONS, max_size=20))
def test_neighbours_that_meet_again_tell_each_other_what_differs(ours, theirs, both):
    """Also over thousands of records, of which one is another, it is a small part."""
    one, other = SharedRecords("one", ()), SharedRecords("other", ())
    one.take(both + ours)
    other.take(both + theirs)
    from_one, from_other = one.unlike(other.digests()), other.unlike(one.digests())
    one.take(from_other)
    other.take(from_one)
    assert contents(one) == contents(other)
    assert one.unlike(other.digests()) == []


def test_of_many_records_few_are_told():
    many = [("many", f"k{number}", b"v") for number in range(3_200)]
    one, other = SharedRecords("one"), SharedRecords("other")
    other.take(one.take(one.changed(many)))
    one.take(one.changed([("many", "k7", b"w")]))
    assert 1 <= len(one.unlike(other.digests())) < 250


def test_who_has_seen_a_record_and_changes_it_is_never_overruled():
    one, other = SharedRecords("a"), SharedRecords("b")
    for number in range(5):
        other.take(one.take(one.changed([("kind", "key", f"one {number}".encode())])))
        one.take(other.take(other.changed([("kind", "key", f"other {number}".encode())])))
    assert one.get("kind", "key") == other.get("kind", "key") == b"other 4"
    assert one.of("kind") == {"key": b"other 4"}
    one.take(one.changed([("kind", "key", None)]))
    assert one.get("kind", "key") is None
    assert one.of("kind") == {}
    assert len(one) == 1
    assert one.statistics().removed == 1


def test_what_changes_nothing_is_no_new_version():
    one = SharedRecords("a")
    assert one.changed([("kind", "key", None)]) == ()
    one.take(one.changed([("kind", "key", b"v")]))
    assert one.changed([("kind", "key", b"v")]) == ()


def test_bounds_are_told_in_a_sentence_and_removing_is_always_allowed(monkeypatch):
    one = SharedRecords("a")
    with pytest.raises(TooMuchShared, match=r"its value may have 4,194,304 bytes") as caught:
        one.changed([("kind", "key", b"x" * (MAX_VALUE + 1))])
    assert caught.value.limit == MAX_VALUE
    monkeypatch.setattr(shared, "MOST_BYTES", 10_000)
    one.take(one.changed([("kind", str(number), b"x" * 1_000) for number in range(8)]))
    with pytest.raises(TooMuchShared, match="together with the others it has more than 10,000 bytes"):
        one.changed([("kind", "more", b"x" * 1_000)])
    one.take(one.changed([("kind", str(number), None) for number in range(8)]))
    assert one.changed([("kind", "more", b"x" * 1_000)])


def test_a_counter_that_nobody_can_have_counted_is_not_taken():
    one = SharedRecords("a")
    assert one.take([SharedRecord("kind", "key", LAST_COUNTER + 1, "liar", b"v")]) == ()
    assert one.changed([("kind", "key", b"v")])[0].counter == 1


# At a router


def test_an_older_neighbour_is_told_nothing_and_asked_nothing():
    one = router("1")
    one.share(one.shared.changed([("kind", "key", b"v")]), 1, 0.0, everywhere=False)
    for name, digests in (("old", None), ("new", b"")):
        one.handle(LinkUp(), name, 0.0)
        effects = one.handle(hello(name, digests), name, 0.0)
        shares = [one.broker for one in effects if isinstance(one, Send) and isinstance(one.message, Share)]
        assert shares == ([] if digests is None else ["new"])
        assert not [one for one in effects if isinstance(one, CloseLink)]
    effects = one.share(one.shared.changed([("kind", "key", b"w")]), 2, 0.0, everywhere=True)
    told = {(one.broker, type(one.message)) for one in effects if isinstance(one, Send)}
    assert told == {("new", Share), ("new", Verify)}
    assert one.handle(Share(()), "old", 0.0) == []  # and what it says all the same is ignored
    [ready] = one.handle(Verified("1", 1, whole=True), "new", 0.0)
    assert ready == SharedReady((2,))


def test_networks_that_have_too_much_between_them_are_not_linked(monkeypatch):
    monkeypatch.setattr(shared, "MOST_HEARD", 10_000)
    bench = Bench()
    one = bench.router
    one.handle(LinkUp(), "2", 0.0)
    one.handle(hello("2", b""), "2", 0.0)
    records = tuple(SharedRecord("kind", str(number), 1, "2", b"x" * 1_000) for number in range(9))
    effects = one.handle(Share(records), "2", 0.0)
    [closed] = [each for each in effects if isinstance(each, CloseLink)]
    assert "remove some of it at one of them before they are linked" in closed.reason
    assert len(one.shared) == 0


def test_what_was_kept_is_there_again_and_what_cannot_be_read_is_left_out():
    record = SharedRecord("kind", "key", 3, "2", b"v")
    kept = (
        KeyedRecord(sharing.KIND, "kind key", msgspec.msgpack.encode(record)),
        KeyedRecord(sharing.KIND, "kind other", b"\xc1"),
    )
    found = SharedRecords("1", sharing._readable(kept))
    assert list(found) == [record]


def test_changes_are_told_once():
    one = router("1")
    records = one.shared.changed([("kind", "key", b"v")])
    assert one.share(records, 1, 0.0, everywhere=True) == [SharedChanged(records), SharedReady((1,))]
    assert one.share(one.shared.changed([("kind", "key", b"v")]), 2, 0.0, everywhere=False) == [
        SharedReady((2,))
    ]


# On the wire

MESSAGES = [
    Share((SharedRecord("family", "card", 7, "lucca", b"v"), SharedRecord("family", "é", 7, "lucca", None))),
    Verify("lucca", 9),
    Verified("lucca", 9, whole=False),
    hello("lucca", b"12345678"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_comes_back_as_it_was(message):
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "record",
    [
        SharedRecord("", "key", 1, "b", b"v"),
        SharedRecord("Kind with blanks", "key", 1, "b", b"v"),
        SharedRecord("kind", "k" * 201, 1, "b", b"v"),
        SharedRecord("kind", "key", -1, "b", b"v"),
        SharedRecord("kind", "key", 1, "b", b"x" * (MAX_VALUE + 1)),
    ],
)
def test_what_is_beyond_its_bounds_is_no_message(record):
    with pytest.raises(UnreadableMessage):
        decode(encode(Share((record,))))


def test_an_older_hello_is_read_and_says_nothing_of_shared_records():
    plain = msgspec.msgpack.decode(encode(hello("lucca", b"")))
    del plain["shared"]
    assert decode(msgspec.msgpack.encode(plain)).shared is None


def test_shared_records_stay_in_their_domain():
    from collections import Counter

    at_border = border(Filter.parse("public"), Filter(), Counter())
    for way in (at_border.leaving, at_border.coming):
        assert [way(message) for message in MESSAGES[:3]] == [None, None, None]
        assert way(MESSAGES[3]).shared is None
