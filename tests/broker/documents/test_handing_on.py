"""Stages that nobody waits for: what is confirmed is published or told of, once and in its order."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest

import palio
from palio import testing
from palio.broker.access.rights import Rights, write_rights
from palio.broker.access.tokens import create_token
from palio.broker.documents import handing_on
from palio.broker.documents.handing_on import ATTEMPTS, HANDED_ON, MOST_ATTEMPTS
from palio.broker.documents.settings import DocumentSettings
from palio.broker.gateway.visitor import Visitor
from palio.broker.metrics import Metrics
from palio.broker.settings import Security, Settings, WrongSetting, require_safe
from palio.documents import DocumentRefused
from palio.documents.stages import StageSetting
from palio.model.notification import Notification
from palio.protocol.requests import PublishDocuments
from tests.broker.documents.cards import CARD, PRICE, card

pytest.importorskip("lxml")


class Gate:
    """Holds a stage until the test lets it go on."""

    def __init__(self):
        self.open = threading.Event()
        self.seen = []

    def stage(self, options):
        def run(document):
            self.seen.append(document.content)
            assert self.open.wait(30)
            if b"refused" in document.content:
                raise DocumentRefused("This is not wanted.")
            yield document.content
            if b"twice" in document.content:
                yield document.content.replace(b"<price>", b"<price>1")

        return run


GATE = Gate()


def held(options):
    return GATE.stage(options)


def strict(options):
    def run(document):
        if b"bad" in document.content:
            raise DocumentRefused("This is bad.")
        return [document.content.replace(b"Acme", b"ACME")]

    return run


@pytest.fixture
def gate(tmp_path, monkeypatch):
    info = tmp_path / "palio_heldstages-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: palio-heldstages\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[palio.stages]\nheld = {__name__}:held\nstrict = {__name__}:strict\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(f"{__name__}.GATE", Gate())
    yield GATE
    GATE.open.set()


LATER = StageSetting(name="held", waits=False)


async def begun(*stages, **settings):
    documents = DocumentSettings(stages=stages or (LATER,), **settings)
    broker = testing.broker(journal=True, documents=documents)
    await broker.start()
    broker.running.documents.readers.tell((CARD,))
    return broker


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def records(broker):
    return broker.running.store.records(HANDED_ON)


async def test_who_publishes_does_not_wait(gate):
    broker = await begun(StageSetting(name="strict"), LATER)
    async with palio.connect(broker.address) as client:
        subscription = await client.subscribe("true")
        with pytest.raises(palio.RequestRefused, match="This is bad"):  # that of a stage that waits
            await client.publish_document(card("bad"))
        confirmed = await client.publish_document(card("a"))
        assert confirmed.sequence == 0
        assert len(records(broker)) == 1
        await client.publish_document(card("twice", price=7))
        gate.open.set()
        events = [await subscription.next(timeout=10) for _ in range(3)]
        assert [(one["xml.key"], one[PRICE]) for one in events] == [("a", 10), ("twice", 7), ("twice", 17)]
        assert events[0].payload == card("a", brand="ACME")
        await until(lambda: not records(broker))
    await broker.stop()


async def test_what_is_refused_after_its_confirmation_is_told(gate):
    broker = await begun()
    gate.open.set()
    async with palio.connect(broker.address) as client:
        notices = await client.subscribe('palio.notice = "refused"')
        for content, error, why in (
            (card("refused"), "DocumentRefused", "This document is refused: This is not wanted."),
            (b"<other/>", "NoFamily", "No family has documents with the root other."),
        ):
            await client.publish_document(content)
            told = await notices.next(timeout=10)
            assert told.payload == content
            assert (told["palio.error"], told["palio.broker"]) == (error, broker.name)
            assert told["palio.why"].startswith(why)
        await until(lambda: not records(broker))

        def rows():
            return [row for row in broker.running.store._place.operations if row.binding == "stages"]

        await until(lambda: len(rows()) == 2)
        assert [(row.kind, row.result) for row in rows()] == [("publishdocuments", "refused")] * 2
    await broker.stop()


async def test_who_is_refused_is_who_may_not_publish_when_it_is_published(gate, tmp_path):
    """Rights are those of that moment, also if they were others when it was confirmed."""
    access = tmp_path / "access"
    everything = palio.Filter()
    write_rights(access, "ann", Rights(publish=everything, subscribe=everything))
    _, token = create_token(access, "ann", now=0)
    documents = DocumentSettings(stages=(LATER,))
    broker = testing.broker(
        journal=True, documents=documents, security=Security(authentication=True), data=str(tmp_path)
    )
    await broker.start()
    broker.running.documents.readers.tell((CARD,))
    async with palio.connect(broker.address, token=token) as client:
        notices = await client.subscribe("exists(palio.notice)")
        await client.publish_document(card("a"))
        write_rights(access, "ann", Rights(publish=palio.Filter.parse("other = 1"), subscribe=everything))
        broker.running.refresh_access()
        gate.open.set()
        told = await notices.next(timeout=10)
        assert (told["palio.principal"], told["palio.error"]) == ("ann", "NotAllowed")
    await broker.stop()


async def test_a_withdrawal_does_not_pass_what_waits(gate):
    broker = await begun()
    async with palio.connect(broker.address) as client:
        await client.publish_document(card("a"))
        withdrawing = asyncio.create_task(client.withdraw_document("card", "a"))
        await until(lambda: len(gate.seen) == 1)
        assert not withdrawing.done()
        gate.open.set()
        assert (await withdrawing).sequence == 2
        with pytest.raises(palio.RequestRefused, match="withdrawn"):
            await client.document("card", "a")
    await broker.stop()


async def test_the_queue_has_an_end(gate):
    broker = await begun(queue=2_000)
    async with palio.connect(broker.address) as client:
        publishing = [client.publish_document(card(f"c{number}", "x" * 500)) for number in range(10)]
        with pytest.raises(palio.RequestRefused, match=r"2,000 bytes wait for stages here") as full:
            await asyncio.gather(*publishing)
        assert full.value.error == "StageQueueFull"
        gate.open.set()
        await until(lambda: not records(broker))
        await client.publish_document(card("again"))
    await broker.stop()


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_or_published_twice_when_a_broker_ends_anywhere(gate, seed):
    """Whatever a crash leaves: each confirmed document is published once, in the order of confirmations."""
    draw = random.Random(seed)
    broker = await begun()
    confirmed = []
    for turn in range(6):
        gate.open.set() if draw.random() < 0.6 else gate.open.clear()
        async with palio.connect(broker.address) as client:
            for number in range(draw.randint(1, 6)):
                content = card(f"{turn}-{number}")
                if (await client.publish_document(content)).sequence == 0:
                    confirmed.append(content)
        for _ in range(draw.randint(0, 40)):
            await asyncio.sleep(0)
        gate.open.set()
        await broker.crash()
        await broker.start()
        broker.running.documents.readers.tell((CARD,))
    await until(lambda: not records(broker))
    async with palio.connect(broker.address) as client:
        events = [one async for one in client.replay("exists(xml.family)")]
    assert [one.payload for one in events] == confirmed, f"seed {seed}"
    await broker.stop()


async def test_what_was_published_before_its_record_could_go_is_published_once(gate):
    """As after a crash in between; also of who gives no ids."""
    broker = await begun()
    visitor = await Visitor.enter(broker.running, "somebody")
    await visitor.ask(PublishDocuments((Notification({}, payload=card("twice")),)))
    [left] = records(broker)
    gate.open.set()
    await until(lambda: not records(broker))
    visitor.leave()
    await broker.running.storing.keep(left)
    await broker.stop()
    await broker.start()
    broker.running.documents.readers.tell((CARD,))
    await until(lambda: not records(broker))
    assert len(gate.seen) == 2
    async with palio.connect(broker.address) as client:
        assert len([one async for one in client.replay("true")]) == 2  # what was made of it the first time
    await broker.stop()


async def test_what_is_published_again_under_its_id_is_known(gate):
    gate.open.set()
    broker = await begun()
    async with palio.connect(broker.address, publisher="p") as client:
        for _ in range(2):
            await client.publish_document(card("twice"), id="one")
            await until(lambda: not records(broker))
        await client.publish_document(card("last"), id="two")
        await until(lambda: not records(broker))
        events = [one async for one in client.replay("true")]
        assert [one["xml.key"] for one in events] == ["twice", "twice", "last"]
    await broker.stop()


@pytest.mark.parametrize("given", [{"journal": False}, {"advertisements": True}])
def test_where_such_stages_cannot_be(given):
    documents = DocumentSettings(stages=(StageSetting(name="strict"), LATER))
    with pytest.raises(WrongSetting, match=r"stages\[1\].waits"):
        require_safe(Settings(documents=documents, **given))


def waiting_bytes(broker):
    collected = {family.name: family for family in Metrics(broker.running).collect()}
    return collected["palio_documents_waiting_bytes"].samples[0].value


async def test_what_waits_is_measured(gate):
    broker = await begun()
    async with palio.connect(broker.address) as client:
        assert waiting_bytes(broker) == 0
        await client.publish_document(card("a", "x" * 500))
        assert waiting_bytes(broker) > 500
        gate.open.set()
        await until(lambda: waiting_bytes(broker) == 0)
    await broker.stop()


def left(broker):
    return records(broker) + broker.running.store.records(ATTEMPTS)


async def test_what_ends_its_broker_each_time_is_refused_at_last(gate):
    broker = await begun()
    async with palio.connect(broker.address) as client:
        await client.publish_document(card("before"))
        await client.publish_document(card("after"))
    for attempt in range(1, MOST_ATTEMPTS + 1):
        await until(lambda attempt=attempt: len(gate.seen) == attempt)
        crashing = asyncio.create_task(broker.crash())
        await asyncio.sleep(0)  # from now on nothing is written
        gate.open.set()
        await crashing
        gate.open.clear()
        await broker.start()
        broker.running.documents.readers.tell((CARD,))
    await until(lambda: len(gate.seen) == MOST_ATTEMPTS + 1)
    assert gate.seen == [card("before")] * MOST_ATTEMPTS + [card("after")]
    gate.open.set()
    async with palio.connect(broker.address) as client:
        await until(lambda: not left(broker))
        refused, published = [one async for one in client.replay("true")]
    assert (refused["palio.notice"], refused["palio.error"]) == ("refused", "StagesWithoutEnd")
    assert (refused.payload, published.payload) == (card("before"), card("after"))
    rows = [row for row in broker.running.store._place.operations if row.binding == "stages"]
    (row,) = [row for row in rows if row.result == "refused"]
    assert (row.kind, row.reason) == ("publishdocuments", refused["palio.why"])
    assert row.bytes > len(card("before"))
    await broker.stop()


async def test_stages_that_never_end_keep_a_document_back_for_a_few_attempts(gate, monkeypatch):
    for name in ("_WITHIN", "_SOON", "_LATER"):
        monkeypatch.setattr(handing_on, name, 0.01)
    broker = await begun()
    async with palio.connect(broker.address) as client:
        notices = await client.subscribe('palio.notice = "refused"')
        await client.publish_document(card("a"))
        told = await notices.next(timeout=20)
        assert (told.payload, told["palio.error"]) == (card("a"), "StagesWithoutEnd")
        await until(lambda: not left(broker))
    gate.open.set()
    await broker.stop()
