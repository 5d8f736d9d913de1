"""What waits for somebody who does not read: how much, in which order, and what is dropped."""

import pytest

from palio.broker.outgoing import ANSWERS_FACTOR, Outgoing
from palio.protocol.deliveries import Lost
from palio.protocol.encoding import decode
from palio.protocol.frames import Frames

LIMIT = 1_000


class Transport:
    """A mock of a transport that takes everything: whether it is full is for the test to say."""

    def __init__(self):
        self.data = b""
        self.unsent = 0

    def write(self, data):
        self.data += data

    def get_write_buffer_size(self):
        return self.unsent

    def set_write_buffer_limits(self, high):
        pass


def outgoing(policy="drop-newest"):
    one, transport = Outgoing(LIMIT, policy), Transport()
    one.connect(transport)
    return one, transport


def sent(transport):
    return Frames().feed(transport.data)


def event(number):
    return f"{number:>46}".encode()  # with its length 50 bytes


def test_what_is_said_in_one_turn_is_written_at_once_and_in_order():
    one, transport = outgoing()
    for number in range(5):
        one.put(event(number), 1)
    assert not transport.data
    one.flush()
    assert sent(transport) == [event(number) for number in range(5)]
    assert one.statistics().events == 5


@pytest.mark.parametrize(("policy", "kept"), [("drop-newest", range(20)), ("drop-oldest", range(80, 100))])
def test_beyond_the_limit_events_are_dropped_counted_and_told(policy, kept):
    one, transport = outgoing(policy)
    one.pause()
    for number in range(100):
        one.put(event(number), 1)
    assert one.statistics().waiting_bytes <= LIMIT
    assert sum(one.statistics().dropped.values()) == 80
    one.resume()
    *events, last = sent(transport)
    assert events == [event(number) for number in kept]
    assert decode(last) == Lost(80, "The client did not read fast enough.")
    assert not one.overflowed
    assert one.statistics().waiting_bytes == one.statistics().waiting_events == 0


@pytest.mark.parametrize("policy", ["drop-newest", "drop-oldest"])
def test_answers_are_never_dropped_and_keep_their_place(policy):
    one, transport = outgoing(policy)
    one.pause()
    for number in range(200):
        one.put(b"answer" if number % 100 == 50 else event(number), number % 100 != 50)
    one.resume()
    assert sent(transport).count(b"answer") == 2
    assert one.statistics().dropped


def test_memory_stays_bounded_while_nobody_reads():
    one, _ = outgoing("drop-oldest")
    one.pause()
    one.put(b"answer")
    for number in range(10_000):
        one.put(event(number), 1)
    assert len(one._waiting) < 100


def test_who_is_to_be_disconnected_overflows():
    one, _ = outgoing("disconnect")
    one.pause()
    for number in range(100):
        one.put(event(number), 1)
    assert one.overflowed


def test_who_never_reads_its_answers_overflows():
    one, _ = outgoing()
    one.pause()
    for _ in range(ANSWERS_FACTOR * LIMIT // 10 + 2):
        one.put(b"answer")
    assert one.overflowed


@pytest.mark.parametrize("policy", ["drop-newest", "drop-oldest"])
def test_while_memory_is_tight_no_event_waits_and_every_answer_does(policy):
    one, transport = outgoing(policy)
    one.pause()
    one.put(event(1), 1)
    one.put(b"answer 1")
    one.tight = True
    one.put(event(2), 1)
    one.put(b"answer 2")
    one.tight = False
    one.put(event(3), 1)
    transport.unsent = 70
    assert one.waiting_answers == 2 * (4 + 8)
    one.resume()
    kept = [3] if policy == "drop-oldest" else [1, 3]
    assert [one for one in sent(transport) if one.strip().isdigit()] == [event(number) for number in kept]
    assert [one for one in sent(transport) if one.startswith(b"answer")] == [b"answer 1", b"answer 2"]
    assert one.waiting_answers == 0
    assert one.held == one.unsent == 70
