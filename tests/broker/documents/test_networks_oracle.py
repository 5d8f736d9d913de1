"""Families, documents and subscriptions by chance over five brokers that join and crash, against lxml.

Subscriptions are durable, and come at any time: each has to get, of all that is published from then on, what
lxml selects by its XPath, once, and nothing else.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import palio
from palio import testing
from tests.documents.drawn_schemas import path_to
from tests.documents.test_selection_oracle import Asking, drawn_family
from tests.slices import sliced

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")

NAMES = "abcde"
END = palio.Filter.parse('mark = "end"')
# What is drawn may select nothing by the schema, or be more than a filter or a path may be.
REFUSED = {"UnknownPath", "ImpossibleCondition", "XPathSyntaxError", "XPathTooCostly", "XPathTooLong"}
# What happens, and how often beside the others.
HAPPENINGS = {"subscribe": 4, "publish": 8, "change": 2, "crash": 1}


class Business:
    """Five brokers in a tree, of which one joins when the others are busy, and who is on them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.family, self.documents = drawn_family(self.chance)
        self.asking = Asking(self.chance, self.documents)
        self.brokers = [testing.broker(name=name, journal=True) for name in NAMES]
        self.links: list[tuple[testing.Broker, testing.Broker]] = []
        self.clients: dict[str, palio.Client] = {}
        self.subscriptions: list[tuple[str, str, int, Any]] = []  # what, what it means, from when on, itself
        self.published: list[Any] = []
        self.seen: Counter[str] = Counter()

    async def join(self) -> None:
        """The next broker begins, with a link to one that is there; and somebody connects to it."""
        there = len(self.clients)
        broker = self.brokers[there]
        if there:
            other = self.chance.choice(self.brokers[:there])
            broker.link_to(other)
            self.links.append((broker, other))
        await broker.start()
        await self.until_linked()
        self.clients[broker.name] = await palio.connect(broker.address)

    async def until_linked(self) -> None:
        """All links are in use at both ends."""
        for one, other in self.links:
            for here, there in ((one, other), (other, one)):
                await here.until(lambda here=here, there=there: there.name in here.running.router.neighbours())

    def client(self) -> palio.Client:
        return self.clients[self.chance.choice(list(self.clients))]

    async def begin(self) -> None:
        files = [(one.name, one.content) for one in self.family.schemas]
        await self.client().families.add("drawn", files, key=self.family.key, root="root")

    async def subscribe(self) -> None:
        """Somebody subscribes; of what is drawn much is refused, and other conditions are drawn then."""
        client = self.client()
        for _ in range(20):
            said, meant = self.asking.joined(
                [self.asking.condition() for _ in range(self.chance.randint(1, 2))]
            )
            try:
                read = await client.subscribe(f"family drawn where {said}", ready="network", timeout=30)
            except palio.RequestRefused as problem:
                if problem.error not in REFUSED:
                    raise
            except palio.FilterError:  # it contradicts itself
                continue
            else:
                wanted, name = read.filter.union(END), f"s{len(self.subscriptions)}"
                await read.unsubscribe()
                taken = await client.subscribe(wanted, durable=name, ready="network", timeout=30)
                self.subscriptions.append((said, meant, len(self.published), taken))
                return

    async def publish(self) -> None:
        document = self.chance.choice(self.documents)
        number = len(self.published)
        self.published.append(document)
        more = {"number": number}
        await self.client().publish_document(etree.tostring(document), more, id=f"d{number}", timeout=30)

    async def change(self) -> None:
        """The family is changed: a path more, which has a short name at times."""
        node = self.chance.choice(list(self.chance.choice(self.documents).iter()))
        path, name = path_to(node, self.chance), f"n{self.seen['change']}="
        try:
            await self.client().families.change("drawn", paths=[f"{self.chance.choice(['', name])}{path}"])
        except palio.RequestRefused as problem:
            if problem.error not in {*REFUSED, "FamilyIncompatible", "WrongFamily"}:
                raise
        else:
            self.seen["changed"] += 1

    async def crash(self) -> None:
        broker = self.brokers[self.chance.randrange(len(self.clients))]
        await broker.crash()
        await broker.start()
        await self.until_linked()

    async def go_through(self, steps: int) -> None:
        await self.begin()
        for number in range(steps):
            if number == steps // 2:
                await self.join()
            [what] = self.chance.choices(list(HAPPENINGS), list(HAPPENINGS.values()))
            await getattr(self, what)()
            self.seen[what] += 1

    async def judge(self, seed: int) -> None:
        for client in self.clients.values():
            await client.publish({"mark": "end"}, timeout=30)
        for said, meant, start, subscription in self.subscriptions:
            got: Counter[int] = Counter()
            ends: set[str] = set()
            while len(ends) < len(self.clients):
                event = await subscription.next(timeout=30)
                if "mark" in event:
                    ends.add(event.origin)
                elif not event.redelivered or event["number"] not in got:
                    got[event["number"]] += 1
                await event.ack()
            selected = [one.xpath(f"boolean({meant})") for one in self.published]
            wanted = {number: 1 for number, yes in enumerate(selected) if yes and number >= start}
            assert got == wanted, (seed, said)
            self.seen["yes"] += len(wanted)
            self.seen["no"] += len(selected) - len(wanted)

    async def stop(self) -> None:
        for client in self.clients.values():
            await client.close()
        for broker in reversed(self.brokers[: len(self.clients)]):
            await broker.stop()


@pytest.mark.parametrize("seed", sliced(range(30), 1))
async def test_subscriptions_get_what_lxml_selects_whatever_happens_to_brokers_and_families(seed):
    business = Business(seed)
    try:
        for _ in range(len(NAMES) - 1):
            await business.join()
        await business.go_through(40)
        await business.judge(seed)
    finally:
        await business.stop()
    assert business.seen["crash"] + business.seen["change"] > 1
    assert len(business.clients) == len(NAMES)
