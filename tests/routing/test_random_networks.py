"""Random networks whose messages overtake each other wherever they can: everyone gets what the filters say.

While subscriptions come and go, messages of different links and sessions interleave at random; then everything
comes to rest, and what is published is compared with `Filter.matches`. The simulator does the like at length;
here it is done without it.
"""

import random

import pytest

from palio import Advertisement, Filter, Notification
from palio.protocol.inquiries import Request, Requested, Respond, Responded
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Advertise, Publish, Ready, Release, Subscribe, Unsubscribe
from palio.protocol.vocabulary import ClientMessage, InquiryMessage
from palio.routing.occurrences import Close, Open
from tests.routing.harness import Network, brokers_of, recipients_of
from tests.slices import sliced

TEXTS = [
    *[f"x > {n}" for n in range(0, 10, 2)],
    *[f"x between {n} and {n + 3}" for n in range(6)],
    *[f'kind = "{kind}"' for kind in "abc"],
    *[f'kind = "{kind}" and x < {n}' for kind in "ab" for n in (3, 6, 9)],
    'kind = "a" or x = 4',
    'kind != "b"',
    "true",
]
ADVERTISEMENTS = [
    "x between 0 and 9",
    'kind = "a", kind = "b", x between 0 and 9',
    'kind = "a", kind = "b", kind = "c"',
]


def tree(choose: random.Random, names: list[str]) -> list[tuple[str, str]]:
    return [(name, choose.choice(names[:index])) for index, name in enumerate(names) if index]


def connect(network: Network, topology: str, names: list[str], choose: random.Random) -> None:
    if topology == "acyclic":
        for one, other in tree(choose, names):
            network.connect(one, other)
    elif topology == "hierarchical":
        for low, high in tree(choose, names):
            network.connect(low, high, LinkKind.MASTER)
    elif topology == "graph":
        links = {tuple(sorted(link)) for link in tree(choose, names)}
        if len(names) > 1:
            links |= {tuple(sorted(choose.sample(names, 2))) for _ in names}
        for one, other in sorted(links):
            network.connect(one, other, LinkKind.GRAPH, choose.choice([1.0, 2.0, 3.0]))
    else:  # clusters of three, whose first brokers form a graph
        clusters = [names[start : start + 3] for start in range(0, len(names), 3)]
        connect(network, "graph", [cluster[0] for cluster in clusters], choose)
        for cluster in clusters:
            kind = choose.choice([LinkKind.PEER, LinkKind.MASTER])
            for low, high in tree(choose, cluster):
                network.connect(low, high, kind)


class Story:
    """What the sessions of a network hold, and requests that change it."""

    def __init__(self, network: Network, choose: random.Random, *, advertisements: bool) -> None:
        self.network = network
        self.choose = choose
        self.advertisements = advertisements
        self.brokers = {f"s{n}": choose.choice(list(network.routers)) for n in range(6)}
        self.held: dict[str, dict[str, str]] = {session: {} for session in self.brokers}
        self.advertised: dict[str, Advertisement] = {}
        self.asked_ready: set[tuple[str, str]] = set()
        self.handles = 0
        for session in self.brokers:
            self.request(session, Open())

    def request(self, session: str, message: ClientMessage | InquiryMessage) -> None:
        self.network.under_way.append((self.brokers[session], message, session))

    def go_on(self) -> None:
        """One session does something."""
        choose = self.choose
        session = choose.choice(list(self.brokers))
        mine = self.held[session]
        what = choose.random()
        if what < 0.6 or not mine:
            self.subscribe(session, choose.choice(TEXTS))
        elif what < 0.8:
            handle = choose.choice(list(mine))
            del mine[handle]
            self.request(session, Release(handle))
        elif what < 0.95:
            wide = Filter.parse(choose.choice(TEXTS))
            for handle in [handle for handle, text in mine.items() if wide.covers(Filter.parse(text))]:
                del mine[handle]
            self.request(session, Unsubscribe(wide))
        else:
            mine.clear()
            self.advertised.pop(session, None)
            self.request(session, Close())
            self.request(session, Open())
        if self.advertisements and session not in self.advertised and choose.random() < 0.5:
            self.advertised[session] = Advertisement.parse(choose.choice(ADVERTISEMENTS))
            self.request(session, Advertise(self.handle(), self.advertised[session], choose.random() < 0.5))

    def subscribe(self, session: str, text: str) -> None:
        handle = self.handle()
        self.held[session][handle] = text
        ready = self.choose.random() < 0.5
        if ready:
            self.asked_ready.add((session, handle))
        self.request(session, Subscribe(handle, Filter.parse(text), ready))

    def handle(self) -> str:
        self.handles += 1
        return str(self.handles)

    def check_ready(self) -> None:
        """Whoever asked for it and still holds the subscription was told that the network knows it."""
        told = {
            (session, answer.handle) for session, answer in self.network.answers if isinstance(answer, Ready)
        }
        assert {
            (session, handle) for session, handle in self.asked_ready if handle in self.held[session]
        } <= told
        assert all(handle.isdigit() for _, handle in told)

    def check_publishing(self) -> None:
        """Publish something; everyone gets what the filters say, once, with the right handles."""
        choose, network = self.choose, self.network
        session = choose.choice(list(self.advertised or self.brokers))
        attributes: dict[str, object] = {"x": choose.randint(0, 9)} if choose.random() < 0.8 else {}
        if choose.random() < 0.8:
            attributes["kind"] = choose.choice("abc")
        notification = Notification(attributes)
        if self.advertisements:
            advertised = self.advertised.get(session)
            if advertised is None or not advertised.covers(notification):
                return
        network.delivered.clear()
        route = network.trace(self.brokers[session], session, notification)
        traced = brokers_of(route)
        assert len(traced) == len(set(traced))
        assert not network.delivered
        network.sent.clear()
        network.ask(self.brokers[session], session, Publish((notification,)))
        got = {taker: sorted(handles) for taker, _, handles in network.delivered}
        assert len(got) == len(network.delivered)
        assert got == recipients_of(route), (attributes, route)
        assert sorted(traced[1:]) == sorted([receiver for _, receiver in network.ways()])
        self.check_request(session, notification, got)
        wanted = {
            taker: sorted([handle for handle, text in mine.items() if Filter.parse(text).matches(notification)])
            for taker, mine in self.held.items()
        }
        assert got == {taker: handles for taker, handles in wanted.items() if handles}, attributes

    def check_request(self, session: str, notification: Notification, takers: dict[str, list[str]]) -> None:
        """Ask those that get a notification: each of them replies once, and then comes the last word."""
        network, choose = self.network, self.choose
        network.answers = [one for one in network.answers if not isinstance(one[1], Requested | Responded)]
        network.ask(self.brokers[session], session, Request(9, notification))
        asked = [(taker, answer) for taker, answer in network.answers if isinstance(answer, Requested)]
        assert {taker: sorted(answer.handles) for taker, answer in asked} == takers
        assert len(asked) == len(takers)
        for taker, answer in choose.sample(asked, len(asked)):
            self.request(taker, Respond(answer.id, Notification({"taker": taker})))
        while network.under_way:
            network.step(choose)
        *replies, last = [(one, answer) for one, answer in network.answers if isinstance(answer, Responded)]
        assert last == (session, Responded(9, None, last=True, missing=0))
        assert {one for one, _ in replies} <= {session}
        assert sorted([answer.notification["taker"] for _, answer in replies]) == sorted(takers)


@pytest.mark.parametrize("seed", sliced(range(8), 2))
@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("topology", ["acyclic", "hierarchical", "graph", "hybrid"])
@pytest.mark.parametrize("strategy", ["flooding", "simple", "identity", "covering", "merging"])
def test_everyone_gets_what_the_filters_say(strategy, topology, advertisements, seed):
    choose = random.Random(f"{strategy} {topology} {advertisements} {seed}")
    names = [f"b{n}" for n in range(choose.randint(2, 9))]
    excess = choose.choice([0.0, 0.3])
    network = Network(brokers=names, strategy=strategy, advertisements=advertisements, excess=excess)
    connect(network, topology, names, choose)
    while network.under_way:
        network.step(choose)
    assert not network.closed
    story = Story(network, choose, advertisements=advertisements)
    for _ in range(3):
        for _ in range(choose.randint(5, 25)):
            story.go_on()
            for _ in range(choose.randint(0, 12)):
                if network.under_way:
                    network.step(choose)
        while network.under_way:
            network.step(choose)
        story.check_ready()
        check_tables(network)
        for _ in range(6):
            story.check_publishing()


def check_tables(network: Network) -> None:
    """What each broker recorded as sent on a link is what the neighbour has from it."""
    for name, router in network.routers.items():
        for neighbour, kind in router.neighbours().items():
            other = network.routers[neighbour]
            if kind is LinkKind.GRAPH:
                assert {frozenset(map(str, router.interest()[name]))} == {
                    frozenset(map(str, other.interest().get(name, [])))
                }
            else:
                assert router.sent(neighbour) == other.received(name)
                assert router.sent_advertisements(neighbour) == other.received_advertisements(name)
