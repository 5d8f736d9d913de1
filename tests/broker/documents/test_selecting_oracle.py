"""Subscriptions by XPath over three brokers, by chance, against lxml on every document."""

from __future__ import annotations

import random
from typing import Any

import pytest

import palio
from tests.broker.test_sharing import line, start, stop
from tests.documents.test_selection_oracle import Asking, drawn_family
from tests.slices import sliced

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")

END = palio.Filter.parse('mark = "end"')
# What is drawn may select nothing by the schema, or be more than a filter or a path may be.
REFUSED = {"UnknownPath", "ImpossibleCondition", "XPathSyntaxError", "XPathTooCostly", "XPathTooLong"}


@pytest.mark.parametrize("seed", sliced(range(30), 2))
async def test_who_subscribes_anywhere_gets_what_lxml_selects(seed):
    chance = random.Random(seed)
    family, documents = drawn_family(chance)
    asking = Asking(chance, documents)
    brokers = line("a", "b", "c")
    await start(brokers)
    clients = [await palio.connect(broker.address) for broker in brokers]
    try:
        files = [(one.name, one.content) for one in family.schemas]
        await chance.choice(clients).families.add("drawn", files, key=family.key, root="root")
        subscriptions = []
        while len(subscriptions) < 8:
            said, meant = asking.joined([asking.condition() for _ in range(chance.randint(1, 2))])
            client = chance.choice(clients)
            try:
                read = await client.subscribe(f"family drawn where {said}", ready="network")
            except palio.RequestRefused as problem:
                if problem.error not in REFUSED:
                    raise
                continue
            except palio.FilterError:  # it contradicts itself
                continue
            ending = await client.subscribe(read.filter.union(END), ready="network")
            subscriptions.append((said, meant, ending))
        for number, document in enumerate(documents):
            await chance.choice(clients).publish_document(etree.tostring(document), {"number": number})
        for client in clients:
            await client.publish({"mark": "end"})
        for said, meant, subscription in subscriptions:
            got, ends = set(), 0
            while ends < len(clients):
                event = await subscription.next(timeout=20)
                ends += "mark" in event
                got |= {event["number"]} if "number" in event else set()
            wanted = {n for n, one in enumerate(documents) if one.xpath(f"boolean({meant})")}
            assert got == wanted, (seed, said)
    finally:
        for client in clients:
            await client.close()
        await stop(brokers)
