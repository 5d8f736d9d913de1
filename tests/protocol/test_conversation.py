"""Two conversations and a link between them. Numbers in names are those of the invariants in `conversation`."""

import random

import msgspec
import pytest

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.deliveries import Events
from palio.protocol.encoding import decode, encode
from palio.protocol.envelope import Envelope
from palio.protocol.frames import Frames, FrameTooLarge, frame
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.heartbeat import SHORTEST, SILENCES, Bye, Heartbeat, Ping, Pong
from palio.protocol.pairing import Pairing
from palio.protocol.peers import Acknowledge
from palio.protocol.requests import Accepted, Publish, Published, Refused, Release, Subscribe
from palio.protocol.strangers import NotPalio
from palio.protocol.violations import ProtocolViolation
from tests.protocol.bed import Bed

FILTER = Filter.parse("x > 3")
EVENTS = Events(("s",), (Envelope("b", 1, 0.0, 0, "b", Notification({"x": 4})),))


class OldRefused(msgspec.Struct, tag="refused", forbid_unknown_fields=False):
    """A refusal as `palio/1` reads it."""

    subject: str
    error: str
    reason: str
    fields: dict = {}


def greeted(**more) -> Bed:
    bed = Bed(**more)
    bed.run(1.0)
    assert bed.near.conversation.is_greeted
    assert bed.far.conversation.is_greeted
    return bed


# The greeting


def test_both_are_welcome():
    bed = greeted()
    assert bed.far.said(Greet)[0].name == "ann"
    assert bed.near.said(Welcome)[0].broker == "siena"


@pytest.mark.parametrize("message", [Subscribe("s", FILTER), Welcome(PROTOCOL, "b"), EVENTS, Acknowledge(1)])
def test_1_who_is_connected_to_hears_nothing_before_the_greeting(message):
    bed = Bed()
    with pytest.raises(ProtocolViolation, match="no place here now"):
        bed.far.conversation.hear(encode(message))


@pytest.mark.parametrize("message", [EVENTS, Accepted("s"), Greet(PROTOCOL, Role.CLIENT, "b"), Acknowledge(1)])
def test_1_who_connects_hears_nothing_before_its_welcome(message):
    bed = Bed()
    with pytest.raises(ProtocolViolation, match="no place here now"):
        bed.near.conversation.hear(encode(message))


@pytest.mark.parametrize("message", [Acknowledge(1), EVENTS, Accepted("s"), Greet(PROTOCOL, Role.PEER, "ann")])
def test_1_a_client_may_not_say_what_brokers_say_nor_greet_twice(message):
    bed = greeted()
    with pytest.raises(ProtocolViolation, match="no place here now"):
        bed.far.conversation.hear(encode(message))


def test_1_nobody_is_welcome_twice():
    bed = greeted()
    with pytest.raises(ProtocolViolation):
        bed.near.conversation.hear(encode(Welcome(PROTOCOL, "siena")))


def test_1_a_refused_connection_is_heard_at_any_time():
    bed = Bed()
    bed.far.conversation.refuse(ProtocolViolation("Not now."))
    bed.run(0.1)
    assert bed.near.said(Refused)[0].reason == "Not now."
    bed = greeted()
    bed.far.conversation.refuse(ProtocolViolation("No more."))
    bed.run(0.1)
    assert bed.near.said(Refused)[0].reason == "No more."


# Versions


@pytest.mark.parametrize("which", ["greets", "welcomes"])
def test_2_an_older_end_is_refused_with_a_sentence_that_it_can_read(which):
    older = Bed(protocol="palio/1") if which == "greets" else Bed(welcomes="palio/1")
    refuses, refused = (older.far, older.near) if which == "greets" else (older.near, older.far)
    with pytest.raises(ProtocolViolation) as caught:
        older.run(1.0)
    refused.link.carried.clear()
    refuses.conversation.refuse(caught.value)
    (payload,) = Frames().feed(bytes(refused.link.carried))
    read = msgspec.msgpack.decode(payload, type=OldRefused)
    assert (read.subject, read.error) == ("connection", "ProtocolViolation")
    assert PROTOCOL in read.reason
    assert "'palio/1'" in read.reason


def test_2_the_refusal_of_an_older_end_is_read():
    bed = Bed()
    told = OldRefused("connection", "ProtocolViolation", "This broker speaks palio/1, not 'palio/2'.")
    heard = bed.near.conversation.hear(msgspec.msgpack.encode(told))
    assert (heard.reason, heard.number) == (told.reason, 0)


def test_2_the_greeting_of_an_older_end_is_read(root):
    """These bytes were written by the version before."""
    payload = (root / "tests/fuzz/corpus/messages/greet").read_bytes()
    assert decode(payload).protocol == "palio/1"
    with pytest.raises(ProtocolViolation, match="'palio/1' at the other"):
        Bed().far.conversation.hear(payload)


def test_2_a_long_version_does_not_make_a_long_sentence():
    with pytest.raises(ProtocolViolation) as caught:
        Bed().far.conversation.hear(encode(Greet("p" * 10_000, Role.CLIENT, "ann")))
    assert len(str(caught.value)) < 200


# Saying and hearing


@pytest.mark.parametrize("piece", [0, 1, 3, 7, 1_000])
def test_3_what_is_said_is_heard_in_its_order_however_it_is_cut(piece):
    bed = greeted(piece=piece)
    said = [Subscribe(f"s{number}", FILTER, number=number) for number in range(1, 40)]
    for message in said:
        bed.near.conversation.say(message)
    bed.run(1.0)
    assert bed.far.said(Subscribe) == said


def test_4_answers_find_their_requests_in_whatever_order_they_come():
    bed = greeted()
    chance = random.Random(7)
    for number in range(20):
        bed.near.conversation.ask(Subscribe("s", FILTER), kept=f"first {number}")
        bed.near.conversation.ask(Release("s"), kept=f"second {number}")
    bed.run(0.1)
    asked = [message for message in bed.far.heard if not isinstance(message, Greet)]
    assert len({message.number for message in asked}) == 40
    chance.shuffle(asked)
    for message in asked:
        if isinstance(message, Subscribe):
            bed.far.conversation.say(Accepted(message.handle, number=message.number))
        else:
            problem = ProtocolViolation("No.")
            bed.far.conversation.say(Refused.of("release s", problem, message.number))
    bed.run(0.1)
    pairing = bed.near.conversation.pairing
    for answer in (*bed.near.said(Accepted), *bed.near.said(Refused)):
        request, subject, kept = pairing.pop(answer.number)
        assert isinstance(request, Subscribe if isinstance(answer, Accepted) else Release)
        assert kept.startswith("first" if isinstance(answer, Accepted) else "second")
        assert subject == ("subscribe s" if isinstance(answer, Accepted) else "release s")
    assert len(pairing) == 0


def test_4_what_was_not_answered_is_asked_again_on_the_next_connection_with_its_number():
    pairing = Pairing()
    bed = greeted(pairing=pairing)
    number = bed.near.conversation.ask(Subscribe("s", FILTER), kept="mine")
    bed.cut()
    bed.run(10.0)
    assert bed.far.said(Subscribe) == []
    assert bed.near.gone
    again = greeted(pairing=pairing)
    for unanswered in pairing.all():
        again.near.conversation.say(unanswered.request)
    again.near.conversation.ask(Release("t"), kept="another")
    again.run(0.1)
    (subscribe,), (release,) = again.far.said(Subscribe), again.far.said(Release)
    assert subscribe.number == number != release.number
    again.far.conversation.say(Accepted("s", number=subscribe.number))
    again.run(0.1)
    assert pairing.pop(again.near.said(Accepted)[0].number).kept == "mine"


def test_4_a_publish_is_a_request_like_any_other():
    bed = greeted()
    number = bed.near.conversation.ask(Publish((Notification({"x": 1}),)), kept=None)
    bed.run(0.1)
    bed.far.conversation.say(Published(bed.far.said(Publish)[0].number, "siena", 1))
    bed.run(0.1)
    assert bed.near.said(Published)[0].number == number


def test_5_a_ping_is_answered_in_its_place():
    bed = greeted(delay=0.2)
    bed.near.conversation.say(Subscribe("s", FILTER, number=90))
    number = bed.near.conversation.ask(Ping(), kept=None)
    bed.near.conversation.say(Subscribe("t", FILTER, number=91))
    bed.run(0.3)
    assert [one.handle for one in bed.far.said(Subscribe)] == ["s", "t"]
    assert bed.near.said(Pong) == []
    bed.run(0.2)
    assert [pong.number for pong in bed.near.said(Pong)] == [number]


def test_5_nobody_is_bothered_with_pongs_that_were_not_asked_for():
    bed = greeted()
    for pong in (Pong(), Pong(number=7)):
        assert bed.far.conversation.hear(encode(pong)) is None


def test_an_end_in_order_is_told():
    bed = greeted()
    bed.near.conversation.say(Bye("It is late."))
    bed.run(0.1)
    assert bed.far.said(Bye) == [Bye("It is late.")]


# Time


def test_6_a_quiet_link_stays():
    bed = greeted(delay=0.3)
    bed.run(60.0)
    assert not bed.near.gone
    assert not bed.far.gone


@pytest.mark.parametrize("delay", [0.0, 0.4])
def test_6_a_lost_connection_is_noticed_by_both_within_three_heartbeats(delay):
    bed = greeted(delay=delay)
    bed.run(5.0)
    bed.cut()
    bed.run(SILENCES - 1.0 - delay)
    assert not bed.near.gone
    assert not bed.far.gone
    bed.run(1.5 + delay)
    assert bed.near.gone
    assert bed.far.gone


def test_6_the_shorter_heartbeat_is_agreed_on_but_none_that_is_too_short():
    assert [side.conversation.heartbeat.every for side in ends(greeted(heartbeats=(5.0, 1.0)))] == [1.0, 1.0]
    assert [side.conversation.heartbeat.every for side in ends(greeted(heartbeats=(0.5, 5.0)))] == [0.5, 0.5]
    far = greeted(heartbeats=(1e-9, 5.0)).far
    assert far.conversation.heartbeat.every == SHORTEST


def ends(bed: Bed):
    return bed.near, bed.far


def test_6_who_does_not_read_takes_nobody_for_gone():
    bed = greeted()
    bed.far.reads = False
    bed.run(20.0)
    assert not bed.far.gone
    bed.far.reads = True
    bed.run(5.0)
    assert not bed.far.gone


def test_6_who_stood_still_takes_nobody_for_gone():
    bed = greeted()
    for side in ends(bed):
        assert not side.conversation.beat(bed.now + 30.0, stood_still=30.0)
        assert side.conversation.beat(bed.now + 60.0)


def test_6_nobody_pings_before_the_greeting_or_while_nothing_goes_out():
    bed = Bed()
    carried = len(bed.far.link.carried)
    bed.near.conversation.beat(100.0, listening=False)
    assert len(bed.far.link.carried) == carried
    bed = greeted()
    carried = len(bed.far.link.carried)
    bed.near.conversation.beat(bed.now + 2.0, speaking=False)
    assert len(bed.far.link.carried) == carried
    bed.near.conversation.beat(bed.now + 2.0)
    assert len(bed.far.link.carried) > carried


def test_an_excuse_is_never_longer_than_the_time_that_has_passed():
    heartbeat = Heartbeat(1.0, 10.0)
    heartbeat.excuse(100.0, 12.0)
    assert heartbeat.heard == 12.0


# Strangers, and the rest


@pytest.mark.parametrize(
    ("data", "spoken"), [(b"GET / HTTP/1.1\r\n\r\n", "HTTP"), (b"\x16\x03\x01\x02\0\x01", "TLS")]
)
def test_strangers_are_told_from_others(data, spoken):
    with pytest.raises(NotPalio) as caught:
        Bed().far.conversation.feed(data, 0.0)
    assert caught.value.spoken == spoken
    with pytest.raises(FrameTooLarge):  # who has greeted is none
        greeted().far.conversation.feed(data, 0.0)


def test_the_same_script_gives_the_same_bytes():
    def script() -> tuple[bytes, bytes]:
        bed = greeted(piece=5, delay=0.123)
        for number in range(10):
            bed.near.conversation.ask(Subscribe(f"s{number}", FILTER), kept=None)
            bed.run(0.7)
        bed.cut()
        bed.run(10.0)
        return bytes(bed.near.link.carried), bytes(bed.far.link.carried)

    assert script() == script()


def test_what_is_put_are_whole_messages():
    bed = greeted()
    bed.near.link.carried.clear()
    bed.far.conversation.say(EVENTS)
    assert bytes(bed.near.link.carried) == frame(encode(EVENTS))
