"""What is considered beforehand, and tidied up later, leaves a router as it would be without either.

A router that is considerate and patient gets the same requests as a plain one: what each asks is considered, in
pieces between which requests of others are handled, and what has no hurry is done now and then. In the end both
tell their neighbour the same, and deliver the same.
"""

from __future__ import annotations

from itertools import count
from random import Random

import pytest

from palio import Advertisement, Filter, Notification
from palio.broker.thinking import Stacks, Thought
from palio.matching.order import Order
from palio.matching.poset import Poset
from palio.model.effort import Meter, metered
from palio.model.errors import TooHard
from palio.protocol.envelope import Envelope
from palio.protocol.inquiries import Wanted, Watch
from palio.protocol.peers import Forward, Hello, LinkKind, Update
from palio.protocol.requests import Advertise, Ended, Refused, Release, Subscribe, Unsubscribe
from palio.routing import Configuration, Router, Strategy
from palio.routing.effects import Deliver, Reply, Send
from palio.routing.links import Component
from palio.routing.occurrences import Close, LinkDown, LinkUp, Open

CONDITIONS = (
    *[f"x > {n}" for n in range(6)],
    *[f"x = {n} and y < {n}" for n in range(4)],
    *[f't contains "{text}"' for text in ("a", "ab", "abc", "b")],
    *[f't ends with "{text}"' for text in ("b", "ab", "bc")],
    'not t contains "ab"',
    "x > 1 or y > 1",
    "true",
)
SESSIONS = ("s", "t", "u")
EVENTS = [
    Notification({"x": x, "y": y, "t": t}) for x in range(6) for y in (0, 3) for t in ("", "ab", "abc", "xb")
]


class Requests:
    """Random requests: for each session in its order, and of links."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(f"considering {seed}")
        numbers = count(1)
        self.by_source: dict[str, list[object]] = {}
        for session in SESSIONS:
            handles: list[str] = []
            asked: list[object] = [Open()]
            for _ in range(chance.randint(5, 40)):
                filter = Filter.parse(chance.choice(CONDITIONS))
                match chance.choice(["subscribe"] * 5 + ["release", "cancel", "watch", "advertise", "leave"]):
                    case "subscribe":
                        handles.append(f"h{next(numbers)}")
                        asked.append(Subscribe(handles[-1], filter, number=next(numbers)))
                    case "release" if handles:
                        asked.append(Release(handles.pop(), number=next(numbers)))
                    case "cancel":
                        asked.append(Unsubscribe(filter, number=next(numbers)))
                    case "watch":
                        advertisement = Advertisement.parse(f"x = {chance.randint(0, 5)}; exists(string t)")
                        asked.append(Watch(f"w{next(numbers)}", advertisement, number=next(numbers)))
                    case "advertise":
                        advertisement = Advertisement.parse("int x > 0; int y > 0; exists(string t)")
                        asked.append(Advertise(f"a{next(numbers)}", advertisement, number=next(numbers)))
                    case "leave":
                        handles.clear()
                        asked += [Close(), Open()]
            self.by_source[session] = asked
        rows = [(n, Filter.parse(chance.choice(CONDITIONS))) for n in range(1, 12)]
        update = Update(1, tuple(rows))
        self.by_source["far"] = [update, LinkDown(), LinkUp(LinkKind.PEER), hello("far"), update, LinkDown()]


def hello(name: str) -> Hello:
    return Hello(LinkKind.PEER, 1.0, "routing, subscription-based, transient", Component(name, 1), (name,), 1)


def linked(router: Router) -> Router:
    for name in ("near", "far"):
        router.handle(LinkUp(LinkKind.PEER), name, 0.0)
        router.handle(hello(name), name, 0.0)
    return router


class Known:
    """What a neighbour knows, and what clients were told, of the effects of a router."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.told: list[object] = []
        self.rows: dict[int, Filter] = {}
        self.wanted: dict[tuple[str, str], bool] = {}

    def carry_out(self, effects: list[object]) -> None:
        for effect in effects:
            match effect:
                case Send("near", Update(_, add, remove)):
                    self.rows |= dict(add)
                    for number in remove:
                        del self.rows[number]
                case Reply(session, Wanted(handle, wanted)):
                    self.wanted[session, handle] = wanted
                case Reply(session, Ended() | Refused() as answer):
                    self.told.append((session, answer))

    def handle(self, message: object, source: str) -> None:
        self.carry_out(self.router.handle(message, source, 1.0))

    def delivered(self) -> list[list[tuple[str, tuple[str, ...]]]]:
        found = []
        for number, event in enumerate(EVENTS, 1):
            envelope = Envelope("elsewhere", number, 1.0, 1, "elsewhere", event)
            effects = self.router.handle(Forward((envelope,)), "near", 2.0)
            found.append(sorted((one.session, one.handles) for one in effects if isinstance(one, Deliver)))
        return found


def with_consideration(requests: Requests, limit: int) -> Known:
    """Each source has at most one thought at a time; which goes on, and when it is tidied up, is luck."""
    known = Known(linked(Router(Configuration(broker="b", patient=True))))
    router, chance = known.router, requests.chance
    left = {source: list(messages) for source, messages in requests.by_source.items()}
    thoughts: dict[str, tuple[Thought, object]] = {}

    def considering(message: object, source: str) -> Thought:
        def think(meter: Meter) -> None:
            with metered(meter):
                router.consider(message, source)

        return Thought(think, limit, Stacks())

    while left or thoughts or router.owners_of_work:
        ways = [*left, *router.owners_of_work]
        way = chance.choice(ways)
        if way not in left:
            effects, _ = router.work(way, chance.randint(1, 3), 1.0)
            known.carry_out(effects)
            continue
        if way not in thoughts:
            message = left[way].pop(0)
            thoughts[way] = considering(message, way), message
        thought, message = thoughts[way]
        if thought.go_on(0.0):
            del thoughts[way]
            known.handle(message, way)
            if not left[way]:
                del left[way]
    return known


def of_its_own(told: list[object]) -> dict[str, list[object]]:
    by_session: dict[str, list[object]] = {}
    for session, answer in told:
        by_session.setdefault(session, []).append(answer)
    return by_session


@pytest.mark.parametrize("seed", range(40))
def test_in_the_end_both_know_tell_and_deliver_the_same(seed):
    requests = Requests(seed)
    plain = Known(linked(Router(Configuration(broker="b"))))
    for source, messages in requests.by_source.items():
        for message in messages:
            plain.handle(message, source)
    considerate = with_consideration(requests, 10**9)
    assert set(considerate.rows.values()) == set(plain.rows.values())
    assert considerate.delivered() == plain.delivered()
    assert of_its_own(considerate.told) == of_its_own(plain.told)
    assert considerate.wanted.keys() == plain.wanted.keys()
    live = {key for key in plain.wanted if considerate.router._asking.watching.has(*key)}
    for key in live:
        assert considerate.wanted[key] == plain.wanted[key]


@pytest.mark.parametrize("seed", range(20))
def test_what_cannot_be_compared_in_time_is_told_and_delivered_all_the_same(seed):
    requests = Requests(seed)
    requests.by_source = {
        source: [one for one in messages if type(one) in (Open, Close, Subscribe, Release, Update, LinkDown)]
        for source, messages in requests.by_source.items()
    }
    plain = Known(linked(Router(Configuration(broker="b"))))
    for source, messages in requests.by_source.items():
        for message in messages:
            plain.handle(message, source)
    considerate = with_consideration(requests, 60)
    assert set(considerate.rows.values()) >= set(plain.rows.values())
    assert considerate.delivered() == plain.delivered()


def test_a_request_that_is_too_hard_changes_nothing():
    router = Router(Configuration(broker="b"))
    router.handle(Open(), "s", 0.0)
    for n in range(50):
        router.handle(Subscribe(f"h{n}", Filter.parse(f't ends with "{n}"')), "s", 0.0)
    for message in (
        Unsubscribe(Filter.parse('not t contains "a" and not t contains "bc"'), number=7),
        Watch("w", Advertisement.parse("exists(string t)"), number=8),
    ):
        with pytest.raises(TooHard), metered(Meter(500)):
            router.consider(message, "s")
    assert router.holds("s") == 50
    router.consider(message, "s")
    assert Reply("s", Wanted("w", True, number=8)) in router.handle(message, "s", 0.0)


@pytest.mark.parametrize("strategy", [Strategy.COVERING, Strategy.MERGING])
def test_what_was_considered_is_not_asked_again(strategy):
    router = Router(Configuration(broker="b", strategy=strategy))
    router.handle(Open(), "s", 0.0)
    for n in range(50):
        filter = Filter.parse(f't contains "a{n}" and t contains "b{n}" and t ends with "c{n}" and x > 0')
        router.handle(Subscribe(f"h{n}", filter), "s", 0.0)
    message = Subscribe("wide", Filter.parse('t contains "a" and t contains "b" and x > 0'))
    considering, handling = Meter(10**9), Meter(10**9)
    with metered(considering):
        router.consider(message, "s")
    with metered(handling):
        router.handle(message, "s", 0.0)
    assert considering.spent > 100_000
    assert handling.spent < considering.spent / 100


@pytest.mark.parametrize("order", [Order, Poset])
def test_what_is_considered_and_never_inserted_does_not_pile_up(order, monkeypatch):
    monkeypatch.setattr("palio.matching.order.MAX_CONSIDERED", 10)
    ordered = order()
    for n in range(100):
        ordered.consider(Filter.parse(f"x > {n}"))
    assert len(ordered._considered) == 10
    assert len(ordered) == 0
