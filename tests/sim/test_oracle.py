"""The oracle on histories that are made up: what must be, what may be, what must not."""

import pytest

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
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
    Unsubscribe,
)
from palio.routing.occurrences import Close, Open
from palio.sim.edge_history import BrokerAnswer, ClientRequest, Delivery, Disturbance, History
from palio.sim.oracle import Verdict, judge
from palio.sim.violations import Duplicate, Missing, NotReady, OutOfOrder, Unwanted, WrongAnswer, WrongHandles

NARROW, WIDE, OTHER = (Filter.parse(text) for text in ("x > 10", "x > 0", "y = 1"))
EVENT = Notification({"x": 20})


class Telling:
    """Tells a history, one moment after the other."""

    def __init__(self):
        self.history = History()
        self.moment = 0
        self.published = 0
        for session in ("s", "p"):
            self.request(session, Open())

    def request(self, session, message, *answers):
        self.moment += 1
        self.history.requests.append(ClientRequest(self.moment, 0.0, "b0", session, message))
        for answer in answers:
            self.history.answers.append(BrokerAnswer(self.moment, 0.0, session, answer))
        return self

    def subscribe(self, handle, filter=NARROW, *, asks=True):
        return self.request("s", Subscribe(handle, filter, ready=asks), Accepted(handle))

    def ready(self, handle, session="s"):
        self.moment += 1
        self.history.answers.append(BrokerAnswer(self.moment, 0.0, session, Ready(handle)))
        return self

    def release(self, handle):
        return self.request("s", Release(handle), Ended((handle,)))

    def publish(self, notification=EVENT):
        self.published += 1
        answer = Published(1, "b0", self.published)
        return self.request("p", Publish((notification,), 1), answer)

    def seen(self, sequence=1):
        self.moment += 1
        self.history.last_seen["b0", sequence] = self.moment
        return self

    def deliver(self, *handles, session="s", sequence=1, notification=EVENT):
        self.seen(sequence)
        envelope = Envelope("b0", sequence, 0.0, 0, "b0", notification)
        self.history.deliveries.append(Delivery(self.moment, 0.0, session, envelope, handles))
        return self

    def rest(self):
        self.moment += 1
        self.history.rests.append(self.moment)
        return self

    def disturbed(self, begin, end, link=0):
        self.history.disturbances.append(Disturbance(begin, end, link))
        return self

    def verdict(self, *, advertisements=False, **settings) -> Verdict:
        return judge(self.history, advertisements=advertisements, **settings)

    def kinds(self, **settings) -> list[type]:
        return [type(one) for one in self.verdict(**settings).violations]


@pytest.fixture
def told() -> Telling:
    return Telling()


# Must


def test_what_was_ready_must_be_served(told):
    told.subscribe("h").ready("h").publish().seen()
    verdict = told.verdict()
    assert [str(one) for one in verdict.violations] == [
        "s did not get b0#1, which its subscription `x > 10` selects."
    ]
    assert (verdict.expected, verdict.possible, verdict.checked) == (1, 1, 1)


def test_what_was_served_is_well(told):
    assert told.subscribe("h").ready("h").publish().deliver("h").kinds() == []


def test_a_network_at_rest_knows_without_saying_so(told):
    assert told.subscribe("h", asks=False).rest().publish().seen().kinds() == [Missing]


def test_a_subscription_that_ends_while_the_notification_travels_need_not_be_served(told):
    told.subscribe("h").ready("h").publish().release("h").seen()
    verdict = told.verdict()
    assert verdict.violations == []
    assert (verdict.expected, verdict.possible) == (0, 1)


def test_one_subscription_can_take_over_from_another(told):
    """At every moment some ready subscription selects it, though none does all the time."""
    told.subscribe("narrow").ready("narrow").publish().subscribe("wide", WIDE).ready("wide")
    assert told.release("narrow").seen().kinds() == [Missing]


def test_a_gap_between_two_subscriptions_excuses_the_loss(told):
    told.subscribe("narrow").ready("narrow").publish().subscribe("wide", WIDE)
    assert told.release("narrow").ready("wide").seen().kinds() == []


def test_a_missing_link_on_the_way_is_an_excuse_and_another_one_is_not(told):
    told.subscribe("h").ready("h").publish().seen()
    told.disturbed(told.moment, told.moment + 5, link=3)
    assert told.kinds() == []
    assert told.kinds(way=lambda one, other: frozenset({2, 3})) == []
    assert told.kinds(way=lambda one, other: frozenset({2, 4})) == [Missing]


def test_a_link_that_was_back_before_is_no_excuse(told):
    told.disturbed(1, told.moment)
    assert told.subscribe("h").ready("h").publish().seen().kinds() == [Missing]


# May


def test_what_races_with_a_subscribe_may_come_and_may_not(told):
    told.publish().subscribe("h").seen()
    verdict = told.verdict()
    assert (verdict.violations, verdict.expected, verdict.possible) == ([], 0, 1)
    assert told.deliver("h").kinds() == []


# Must not


def test_what_nobody_wants_must_not_come(told):
    told.subscribe("h", OTHER).ready("h").publish().deliver("h")
    assert [str(one) for one in told.verdict().violations] == [
        "s got b0#1 without a subscription that selects it."
    ]


def test_nothing_comes_after_the_end_was_answered(told):
    told.subscribe("h").ready("h").publish().release("h").deliver("h")
    assert [str(one) for one in told.verdict().violations] == ["s got b0#1 after its subscription had ended."]


def test_nothing_comes_after_the_session_was_closed(told):
    told.subscribe("h").ready("h").publish().request("s", Close()).deliver("h")
    assert told.kinds() == [Unwanted]


# How it comes


def test_one_copy_in_order_with_the_right_handles(told):
    told.subscribe("h").ready("h").subscribe("again").ready("again").subscribe("wide", WIDE).ready("wide")
    told.publish().publish()
    told.deliver("h", "again", "wide", sequence=2).deliver("wide", "again", "h", sequence=1)
    assert told.kinds() == [OutOfOrder]
    told.deliver("h", "again", "wide", sequence=1)
    assert told.kinds() == [OutOfOrder, OutOfOrder, Duplicate]


def test_handles_are_those_of_the_moment(told):
    told.subscribe("h").ready("h").subscribe("again").ready("again").publish().release("again")
    assert told.deliver("h").kinds() == []
    told.publish().deliver("h", "again", sequence=2)
    assert told.kinds() == [WrongHandles]


# Answers


def test_answers_are_checked(told):
    told.request("s", Subscribe("h", NARROW))
    assert told.kinds() == [WrongAnswer]
    told.request("s", Unsubscribe(WIDE), Ended(()))
    assert told.kinds() == [WrongAnswer, WrongAnswer]
    sentence = str(told.verdict().violations[1])
    assert sentence == "s was answered `ended nothing` to `unsubscribe: x > 0`, not `ended h`."


def test_who_asks_is_told_by_the_time_of_rest(told):
    assert told.subscribe("h").rest().kinds() == [NotReady]


# Advertisements

SAYS = Advertisement.parse("x > 0")


def test_what_was_advertised_must_be_served(told):
    told.subscribe("h").ready("h").request("p", Advertise("a", SAYS, ready=True), Accepted("a")).ready("a", "p")
    assert told.publish().seen().kinds(advertisements=True) == [Missing]


def test_what_is_not_advertised_everywhere_yet_may_be_lost(told):
    told.subscribe("h").ready("h").request("p", Advertise("a", SAYS), Accepted("a"))
    assert told.publish().seen().kinds(advertisements=True) == []


def test_what_is_not_advertised_is_to_be_refused(told):
    refusal = Refused("publish 1", "NotAdvertised", "No.")
    assert told.request("p", Publish((EVENT,), 1), refusal).kinds(advertisements=True) == []
    assert told.publish().kinds(advertisements=True) == [WrongAnswer]
    told.request("p", Advertise("a", SAYS), Accepted("a")).request("p", Publish((EVENT,), 1), refusal)
    assert told.kinds(advertisements=True) == [WrongAnswer, WrongAnswer]
