"""Messages as bytes and back."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio import Advertisement, Filter, Notification
from palio.protocol.durable.control import Pause, Paused, Resume, Seek, Sought
from palio.protocol.durable.journals import (
    GoOn,
    Held,
    Hold,
    JournalRange,
    JournalsListed,
    JournalTrimmed,
    ListJournals,
    Replay,
    Replayed,
    Survey,
    Surveyed,
    TrimJournal,
)
from palio.protocol.durable.letters import Browse, Browsed, Carry, Count, Counted, Differs, MoveIn, MoveOut
from palio.protocol.durable.peers import Ask, Head, Introduction, Told
from palio.protocol.durable.subscriptions import (
    Attach,
    Attached,
    Changed,
    Discard,
    Discarded,
    Requeue,
    Requeued,
)
from palio.protocol.encoding import UnreadableMessage, decode, encode
from palio.protocol.envelope import Envelope
from palio.protocol.inquiries import (
    Answered,
    Enquire,
    Hop,
    Probe,
    Probed,
    Recipient,
    Request,
    Requested,
    Respond,
    Responded,
    Trace,
    Traced,
    Wanted,
    Watch,
)
from palio.protocol.peers import (
    Acknowledge,
    Component,
    Forward,
    Goodbye,
    Hello,
    Interest,
    Joined,
    Known,
    LinkKind,
    LinkState,
    Update,
)
from palio.protocol.requests import (
    Accepted,
    Advertise,
    Ended,
    Publish,
    Published,
    Ready,
    Refused,
    Release,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.occurrences import Close, Failed, LinkDown, LinkUp, Open, Stored
from tests.generators import Maker, random_advertisement
from tests.slices import examples

FILTER = Filter.parse('symbol = "ACME" and price > 100 or tags has "red"')
ADVERTISEMENT = Advertisement.parse('symbol = "ACME", price > 0')
NOTIFICATION = Notification(
    {
        "symbol": "ACME",
        "price": 101.5,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "tags": ["a", "b"],
        "raw": b"\0",
    },
    id="7",
    time=datetime(2026, 1, 2, tzinfo=UTC),
    lifetime=timedelta(seconds=3),
    priority=9,
    payload=b"content",
)
ENVELOPE = Envelope("b", 17, 1.5, 2, "c", NOTIFICATION)
ROUTE = Hop("a", (Recipient("ann", False, ("x > 3",), ("h",), 2),), (Hop("b", problem="Gone."),))
UPDATE = Update(3, ((1, FILTER),), (2,), ((4, ADVERTISEMENT),), (5,), confirm=True)
MESSAGES = [
    Subscribe("h", FILTER, ready=True), Release("h"), Unsubscribe(FILTER),
    Advertise("h", ADVERTISEMENT), Unadvertise(ADVERTISEMENT), Publish((NOTIFICATION, Notification({})), 3),
    Accepted("h"), Ready("h"), Ended(("h", "i")), Published(3, "b", 17),
    Refused("h", "HandleInUse", "No.", {"handle": "h"}),
    Hello(LinkKind.MASTER, 1.5, "terms", Component("a", 3), ("a",)),
    Hello(LinkKind.PEER, 1.0, "terms", Component("a", 3), ("a",), 1), Goodbye("because"),
    Joined(Component("a"), ("a",)), UPDATE, Acknowledge(3),
    Forward((ENVELOPE,)),
    LinkState("b", 4, (("c", 1.0), ("d", 2.0)), Component("b")), Interest("b", UPDATE, whole=True),
    Known("b", 3),
    Request(1, NOTIFICATION, 2.5), Respond("1 b", NOTIFICATION), Respond("1 b"), Trace(2, NOTIFICATION),
    Watch("h", ADVERTISEMENT), Requested("1 b", ("h",), ENVELOPE), Responded(1, NOTIFICATION),
    Responded(1, last=True, missing=2), Traced(2, ROUTE), Wanted("h", True), Probe(ENVELOPE, 1.5),
    Probed("b", 17, ROUTE), Enquire(ENVELOPE, 1.5), Answered("b", 17, NOTIFICATION),
    Answered("b", 17, last=True, missing=2),
    Attach("s", FILTER, 3.5, anew=True, linger=60.0, in_flight=9, after={"b": 3}),
    Attach("s", None), Attach("s", FILTER, as_is=True), Attached("s", "b", True, FILTER), Attached("s", "b"),
    Changed("s", None, None, FILTER), Carry("a", "b", 1, MoveOut("s", FILTER)),
    Carry("a", "b", 1, Differs("s", FILTER)), Pause("s"), Resume("s"), Seek("s", 3.5),
    Seek("s", "all", dry=True),
    Seek("s", after={"b": 3}), Paused("s", True), Sought("s", 3, True), TrimJournal(1, dry=True),
    Requeue("s", (1, 2)), Requeued("s", (1,)), Discard("s", (1, 2)), Discarded("s", ()),
    Survey(1, FILTER, 2.5, 3.5, 7, 2), Surveyed(1, 2, 2.5, 3.0, (1, 1), (2.5, 3.5), (ENVELOPE,), ("c",)),
    Publish((NOTIFICATION,), 3, "sink"), Replay(1, FILTER, ranges=(("b", 3, 9),)), ListJournals(1),
    JournalsListed(1, (JournalRange("b", 3, 9),), ("c",)), Hold(1, "lake", 7), Held(1, JournalRange("b", 3, 9)),
    TrimJournal(1, 7), JournalTrimmed(1, JournalRange("b", 3, 9), (("lake", 7),), ("c",)),
    Replay(1, FILTER), GoOn(1), Replayed(1, "b", (ENVELOPE,)), Replayed(1, last=True, missing=("c",)),
    Ask("a", 3, "s", (("i", "s"),), 2, ("b",), ("j",)),
    Told("a", 3, (7,), (Head("b", 9, 4),), ("b",), (Introduction("b", (("i", "c"),)),), ("j",)),
    Carry("a", "b", 1, Count(1, FILTER, 2.5, 3.5, 7, 2)),
    Carry("a", "b", 1, Counted(1, 0, 2, None, None, (0, 2), (ENVELOPE,), last=True)),
    Carry("a", "b", 1, Browse(1, FILTER, 3, 9, 0.0, 3.5, 100)),
    Carry("a", "b", 1, Browsed(1, 3, 9, (ENVELOPE,))),
    Carry("a", "b", 1, MoveIn("s", "i", 2, FILTER, 0.0, (("b", 3),), (), ((1, 5, ENVELOPE),), 4, True, 60.0)),
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_comes_back_as_it_was(message):
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "message", [Open(), Close(), LinkUp(LinkKind.GRAPH), LinkDown(), Stored(1), Failed(1, "")]
)
def test_what_only_the_shell_of_a_broker_says_is_not_of_the_wire(message):
    with pytest.raises(UnreadableMessage):
        decode(encode(message))


def test_content_that_is_not_indexed_comes_back():
    message = Publish((Notification({"a": 1, "rest": [{"b": 2}]}),))
    assert decode(encode(message)) == message


def read(data: bytes) -> None:
    """Read it, or see it refused with a finished sentence."""
    try:
        decode(data)
    except UnreadableMessage as problem:
        sentence = str(problem)
    else:
        return
    assert sentence.endswith((".", "?"))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data):
    read(data)


@given(st.sampled_from(MESSAGES), st.data())
def test_a_damaged_message_is_a_message_or_refused(message, data):
    damaged = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(damaged))


# Text of clients, forms of brokers

TEXTS = [Subscribe("h", FILTER), Unsubscribe(FILTER), Attach("s", FILTER), Survey(1, FILTER), Replay(1, FILTER)]
ADVERTISED = [Advertise("h", ADVERTISEMENT), Unadvertise(ADVERTISEMENT), Watch("h", ADVERTISEMENT)]


@pytest.mark.parametrize("message", [*TEXTS, *ADVERTISED], ids=lambda message: type(message).__name__)
def test_a_client_writes_text_and_nothing_else(message):
    item = FILTER if hasattr(message, "filter") else ADVERTISEMENT
    plain = msgspec.msgpack.decode(encode(message))
    name = "filter" if hasattr(message, "filter") else "advertisement"
    assert plain[name] == item.source
    with pytest.raises(UnreadableMessage, match="as text"):
        decode(msgspec.msgpack.encode(plain | {name: item.form}))


def test_brokers_write_forms_and_nothing_else():
    carry = Carry("a", "b", 1, Browse(1, FILTER, 3, 9, 0.0, 3.5, 100))
    for message, change in (
        (UPDATE, lambda plain: plain | {"add": [[1, "x = 1"]]}),
        (UPDATE, lambda plain: plain | {"advertise": [[1, "x = 1"]]}),
        (Interest("b", UPDATE), lambda plain: plain | {"update": plain["update"] | {"add": [[1, "x = 1"]]}}),
        (carry, lambda plain: plain | {"content": plain["content"] | {"filter": "x = 1"}}),
    ):
        plain = msgspec.msgpack.decode(encode(message))
        assert decode(msgspec.msgpack.encode(plain)) == message
        with pytest.raises(UnreadableMessage):
            decode(msgspec.msgpack.encode(change(plain)))


def test_a_row_that_cannot_be_read_asks_for_everything_and_costs_no_link():
    plain = msgspec.msgpack.decode(encode(UPDATE))
    damaged = plain | {"add": [[1, b"damaged"], [7, FILTER.form]]}
    read = decode(msgspec.msgpack.encode(damaged))
    assert read.add == ((1, Filter()), (7, FILTER))


@examples(200)
@given(st.randoms(use_true_random=False))
def test_any_filter_and_any_advertisement_travel_between_brokers(random):
    maker = Maker(random)
    f, advertisement = Filter.from_expression(maker.expression(3)), random_advertisement(maker)
    update = Update(1, ((1, f),), (), ((2, advertisement),))
    assert decode(encode(update)) == update
    assert decode(encode(Interest("b", update))) == Interest("b", update)
