"""Documents over sockets: read by their broker in the order of their session, within rights and bounds."""

import asyncio
import threading

import pytest

import palio
from palio import testing
from palio.broker.documents.readers import FamilyReaders
from palio.broker.documents.settings import DocumentSettings
from palio.client.errors import BrokerTooOld
from palio.protocol.encoding import encode
from palio.protocol.greeting import PROTOCOL, Welcome
from palio.protocol.requests import PublishDocuments
from tests.broker.documents.cards import PRICE, card, know_cards
from tests.client.test_versions import OlderBroker
from tests.security.world import World


async def started(broker):
    await broker.start()
    await know_cards(broker.running)
    return broker


class Gate:
    """Readers that wait in their threads until they may go on; what waits is counted."""

    def __init__(self, monkeypatch):
        self.open = threading.Event()
        self.reading = self.most = 0
        self.read = []
        self._lock = threading.Lock()
        real = FamilyReaders.read

        def read(readers, notification):
            with self._lock:
                self.reading += 1
                self.most = max(self.most, self.reading)
                self.read.append(notification.id)
            self.open.wait(20)
            with self._lock:
                self.reading -= 1
            return real(readers, notification)

        monkeypatch.setattr(FamilyReaders, "read", read)

    async def until(self, condition):
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture
def gate(monkeypatch):
    found = Gate(monkeypatch)
    yield found
    found.open.set()


@pytest.mark.parametrize("journal", [False, True])
async def test_a_document_is_read_and_arrives_byte_for_byte(journal):
    broker = await started(testing.broker(journal=journal))
    async with palio.connect(broker.address) as client:
        subscription = await client.subscribe(f'xml.family = "card" and `{PRICE}` < 11')
        content = b"\n".join([b'<?xml version="1.0"?>', b"<!-- a card -->", card()])
        confirmed = await client.publish_document(content, {"region": "north"}, priority=9)
        event = await subscription.next(timeout=10)
        assert (event.origin, event.sequence) == (confirmed.origin, confirmed.sequence)
        assert event.payload == content
        assert dict(event) == {
            "xml.family": "card",
            "xml.key": "c1",
            "xml.revision": 1,
            "/c:card/c:code": "c1",
            "/c:card/c:brand": ("Acme",),
            PRICE: 10.0,
            "region": "north",
        }
        await client.publish_document(card(price=11).decode())
        await client.publish_document(card("c3", price=2).decode())
        assert (await subscription.next(timeout=10))["xml.key"] == "c3"
    await broker.stop()


@pytest.mark.parametrize(
    ("document", "error", "said"),
    [
        (b"<card", "DocumentRefused", "line 1"),
        (b"<!DOCTYPE card><card/>", "DocumentRefused", "A DOCTYPE is not allowed"),
        (b"<other/>", "NoFamily", "root other. There are card"),
        (card(code="x" * 2_000), "DocumentTooLarge", "size"),
    ],
)
async def test_what_cannot_be_read_is_refused_and_the_rest_goes_on(document, error, said):
    broker = await started(testing.broker(documents=DocumentSettings(size=2_000)))
    async with palio.connect(broker.address) as client:
        subscription = await client.subscribe("true")
        several = [client.publish_document(one) for one in (card("a"), document, card("b"))]
        first, refused, last = await asyncio.gather(*several, return_exceptions=True)
        assert refused.error == error
        assert said in str(refused)
        assert (first.sequence, last.sequence) == (1, 2)
        assert [(await subscription.next(timeout=10))["xml.key"] for _ in range(2)] == ["a", "b"]
        assert set(broker.statistics().refused_requests) == {error}
    await broker.stop()


async def test_texts_in_an_encoding_of_their_own_are_refused_where_they_are_published():
    broker = await started(testing.broker())
    async with palio.connect(broker.address) as client:
        with pytest.raises(palio.InvalidNotification, match="hand over its bytes"):
            await client.publish_document('<?xml version="1.0" encoding="ISO-8859-1"?><card/>')
        with pytest.raises(palio.InvalidNotification, match="bytes, or a text"):
            await client.publish_document(5)
        with pytest.raises(palio.InvalidNotification, match="comes from the document"):
            await client.publish_document(card(), {PRICE: 5})
        await client.publish_document('<?xml version="1.0" encoding="utf-8"?>' + card().decode())
    await broker.stop()


async def test_events_of_a_session_keep_their_order_whatever_they_are(gate):
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as client:
        subscription = await client.subscribe("true")
        under_way = [
            asyncio.create_task(client.publish_document(card("a"))),
            asyncio.create_task(client.publish({"n": 1})),
            asyncio.create_task(client.publish_document(card("b"))),
            asyncio.create_task(client.publish({"n": 2})),
        ]
        await gate.until(lambda: gate.reading)
        assert not any(one.done() for one in under_way)
        gate.open.set()
        assert [(await one).sequence for one in under_way] == [1, 2, 3, 4]
        found = [await subscription.next(timeout=10) for _ in range(4)]
        assert [one.get("xml.key") or one.get("n") for one in found] == ["a", 1, "b", 2]
    await broker.stop()


async def test_what_was_said_before_a_connection_was_lost_is_published(gate):
    broker = await started(testing.broker(journal=True))
    async with palio.connect(broker.address) as other, palio.connect(broker.address, name="lost") as client:
        subscription = await other.subscribe("true")
        task = asyncio.create_task(client.publish_document(card("a"), id="one"))
        await gate.until(lambda: gate.reading)
        broker.cut_off("lost")
        gate.open.set()
        assert (await task).sequence == 1  # it was published again on the next connection, and recognised
        assert (await subscription.next(timeout=10))["xml.key"] == "a"
        with pytest.raises(palio.NoEvent):
            await subscription.next(timeout=0.1)
    await broker.stop()


@pytest.mark.parametrize("workers", [1, 3])
async def test_no_more_are_read_at_a_time_than_there_are_workers_and_all_have_turns(workers, gate, tmp_path):
    world = World(tmp_path)
    for name in ("greedy", "modest"):
        world.add(name, "true", "true")
    broker = await started(world.broker(documents=DocumentSettings(workers=workers)))
    greedy = [await palio.connect(broker.address, token=world.tokens["greedy"]) for _ in range(8)]
    modest = await palio.connect(broker.address, token=world.tokens["modest"])
    tasks = [
        asyncio.create_task(client.publish_document(card(), id=f"greedy {round} {number}"))
        for round in range(3)
        for number, client in enumerate(greedy)
    ]
    await gate.until(lambda: gate.reading == workers)
    tasks.append(asyncio.create_task(modest.publish_document(card(), id="modest")))
    await gate.until(
        lambda: any(one.principal.name == "modest" and one._inbox.held for one in broker.running.connections)
    )
    gate.open.set()
    await asyncio.gather(*tasks)
    assert gate.most == workers
    if workers == 1:  # several threads begin in any order
        assert gate.read.index("modest") == 1
    for client in (*greedy, modest):
        await client.close()
    await broker.stop()


async def test_a_batch_of_documents_that_nobody_advertised_is_refused():
    broker = await started(testing.broker(advertisements=True))
    async with palio.connect(broker.address) as client:
        several = [client.publish_document(card(f"c{number}")) for number in range(300)]
        found = await asyncio.gather(*several, return_exceptions=True)
        assert {one.error for one in found} == {"NotAdvertised"}
    await broker.stop()


async def test_rights_are_about_what_was_read(tmp_path):
    world = World(tmp_path)
    world.add("cheap", f'xml.family = "card" and `{PRICE}` < 5', None)
    world.add("reader", None, "true")
    broker = await started(world.broker())
    async with (
        palio.connect(broker.address, token=world.tokens["cheap"]) as cheap,
        palio.connect(broker.address, token=world.tokens["reader"]) as reader,
    ):
        subscription = await reader.subscribe("true")
        await cheap.publish_document(card("a", price=4))
        with pytest.raises(palio.NotAllowed, match=PRICE):
            await cheap.publish_document(card("b", price=5))
        with pytest.raises(palio.NotAllowed, match="no right to publish"):
            await reader.publish_document(card("c"))
        assert (await subscription.next(timeout=10))["xml.key"] == "a"
    await broker.stop()


@pytest.mark.parametrize("name", ["xml.family", "xml.key", "xml.revision", "xml.withdrawn"])
async def test_no_client_says_itself_what_only_reading_says(name):
    broker = await started(testing.broker())
    async with palio.connect(broker.address) as client:
        content = {name: "card", "n": 1}
        with pytest.raises(palio.RequestRefused, match="Publish the document itself") as refused:
            await client.publish(content)
        assert refused.value.error == "ReservedAttribute"
        with pytest.raises(palio.RequestRefused, match="comes from reading"):
            await client.publish_document(card(), content)
        with pytest.raises(palio.RequestRefused, match="comes from reading"):
            await client.request(content, timeout=5)
        await client.publish({"xml.other": "xml.family"})
    await broker.stop()


async def test_a_broker_from_before_is_not_given_documents():
    older = Welcome(PROTOCOL, "lucca", knows=("invoke",))
    async with OlderBroker(encode(older)) as broker, palio.connect(broker.address) as client:
        with pytest.raises(BrokerTooOld, match="'lucca' does not know 'publishdocuments'"):
            await client.publish_document(card())
        assert not any(isinstance(one, PublishDocuments) for one in broker.heard)
