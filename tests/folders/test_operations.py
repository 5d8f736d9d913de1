"""Operations as files: carried out once, answered beside, and what they subscribe to is written."""

import asyncio
import json
import os

import pytest
from lxml import etree

import palio
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.soap.settings import SoapSettings
from palio.folders import (
    FolderWatch,
    InFolder,
    OperationResult,
    PeerAway,
    SimplePeer,
    UnusableFile,
    WrongPeer,
    operation_of,
)
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA
from tests.broker.gateway.calling import calling

B = 'xmlns="http://docs.oasis-open.org/wsn/b-2"'
BR = 'xmlns="http://docs.oasis-open.org/wsn/br-2"'
REGISTER = (
    f"<RegisterPublisher {BR}><Topic><schemalocation>card.xsd</schemalocation></Topic></RegisterPublisher>"
)
CONDITION = '<subscription xmlns=""><xpath expression="/card/brand"/><value>Acme</value></subscription>'


def filter_of(conditions=CONDITION):
    return f'<Filter><TopicExpression Dialect="urn:test:card">{conditions}</TopicExpression></Filter>'


def subscribe(consumer="file:acme", conditions=CONDITION, name="Subscribe"):
    reference = (
        f'<ConsumerReference><Address xmlns="http://www.w3.org/2005/08/addressing">{consumer}</Address>'
        "</ConsumerReference>"
    )
    return f"<{name} {B}>{reference}{filter_of(conditions)}</{name}>"


def notify(*documents):
    messages = "".join(
        f"<NotificationMessage><Message>{one.decode()}</Message></NotificationMessage>" for one in documents
    )
    return f"<Notify {B}>{messages}</Notify>"


class Desk:
    """Somebody who has nothing but two folders."""

    def __init__(self, folder, broker, command, monkeypatch):
        self.inside, self.outside = folder / "in", folder / "out"
        self.inside.mkdir()
        self.outside.mkdir()
        self._broker, self._command = broker, command
        self.address = broker.address
        monkeypatch.setenv("PALIO_SERVER", broker.address)

    async def put(self, *files, soap=True):
        """What became of files, put there one after the other."""
        for number, content in enumerate(files):
            (self.inside / f"{number}.xml").write_text(content)
        arguments = ["--in", str(self.inside), "--out", str(self.outside), "--delete", "--json", "-q"]
        arguments += ["--soap", self._broker.url] if soap else []
        result = await asyncio.to_thread(self._command, "files", "--once", "--interval", "0.05s", *arguments)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def answer(self, number):
        return etree.parse(self.inside / "done" / f"{number}.xml.result.xml").getroot()

    def reason(self, number):
        return (self.inside / "rejected" / f"{number}.xml.reason.txt").read_text()

    def written(self, place="."):
        """The codes of the cards that were written."""
        found = sorted((self.outside / place).glob("*.xml"))
        return [etree.parse(one).findtext("{urn:test:card}code") for one in found]


@pytest.fixture
def desk(tmp_path, command, monkeypatch):
    """A broker that speaks SOAP and knows cards, and somebody who has folders."""

    class Opened:
        async def __aenter__(self):
            self._calling = calling(gateway=GatewaySettings(), soap=SoapSettings(enabled=True))
            broker, _ = await self._calling.__aenter__()
            async with palio.connect(broker.address) as client:
                paths = ["brand=/card/brand"]
                await client.families.add(
                    "card", [("card.xsd", CARD_SCHEMA)], paths, key=["/card/code"], registered=True
                )
            return Desk(tmp_path, broker, command, monkeypatch)

        async def __aexit__(self, *problem):
            await self._calling.__aexit__(*problem)

    return Opened()


async def test_all_six_operations_by_files_alone(desk):
    async with desk as one:
        told = await one.put(card("c0").decode(), REGISTER, subscribe(), notify(card("c1"), card("c2", "Apex")))
        assert [(row.get("operation"), "rejected" in row) for row in told[:4]] == [
            (None, True),
            ("RegisterPublisher", False),
            ("Subscribe", False),
            ("Notify", False),
        ]
        assert "register first" in one.reason(0)
        assert [one.answer(number).get("valueACK") for number in (1, 2, 3)] == ["true"] * 3
        assert one.written("acme") == ["c1"]
        assert one.written() == []
        current = f"<GetCurrentMessage {B}>{filter_of()}</GetCurrentMessage>"
        handle = one.answer(2).get("handle")
        await one.put(current, f'<Unsubscribe {B} handle="{handle}"/>', card("c3").decode())
        assert [found.findtext("{urn:test:card}code") for found in one.answer(0)] == ["c1"]
        assert one.written("acme") == ["c1"]
        assert list((one.outside / ".palio" / "subscriptions").iterdir()) == []
        withdrawn = REGISTER.replace("RegisterPublisher", "DestroyRegistration")
        await one.put(withdrawn, card("c4").decode())
        assert "register first" in one.reason(1)


async def test_a_subscription_goes_on_when_the_watcher_comes_again(desk):
    async with desk as one:
        await one.put(REGISTER, subscribe("file:"), subscribe("file:all", ""))
        await one.put(card("c1").decode(), card("c2", "Apex").decode())
        assert one.written() == ["c1"]
        assert one.written("all") == ["c1", "c2"]


async def test_a_retroactive_subscription_begins_with_what_is_current(desk):
    """Each current document once, never an older version, then what is published; also after a restart."""
    async with desk as one:
        wanted = subscribe().replace("<Subscribe ", '<Subscribe retroactive="true" ')
        published = [
            card(code, brand).decode() for code, brand in (("c1", "Acme"), ("c2", "Apex"), ("c1", "Acme"))
        ]
        await one.put(REGISTER, *published, wanted)
        assert one.written("acme") == ["c1"]
        for written in (one.outside / "acme").glob("*.xml"):
            written.unlink()
        await one.put(wanted, card("c3").decode())
        assert one.written("acme") == ["c3"]


async def test_what_cannot_be_carried_out_goes_aside_with_the_reason(desk):
    async with desk as one:
        wrong = subscribe(conditions=CONDITION.replace("/card/brand", "/card/brant"))
        await one.put(wrong, subscribe("file:../x"), notify(b"<card/>"), f"<Subscribe {B}/>")
        assert "Did you mean /card/brand?" in one.reason(0)
        assert "no name of a folder" in one.reason(1)
        assert "No family" in one.reason(2)
        assert "TopicExpression" in one.reason(3)
        await one.put("", "", "", "", REGISTER, soap=False)
        assert "--soap" in one.reason(4)


@pytest.mark.parametrize(
    ("content", "operation"),
    [
        (subscribe().encode(), "Subscribe"),
        (b'<?xml version="1.0"?><!-- x --><b:Notify xmlns:b="http://docs.oasis-open.org/wsn/b-2">', "Notify"),
        (b"<Notify/>", None),
        (b'<Subscribe xmlns="urn:other"/>', None),
        (f"<note><Notify {B}/></note>".encode(), None),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", None),
        (b'<?xml version="1.0" encoding="x-none"?><x/>', None),
        (b"", None),
        (b"\x00\xff", None),
    ],
)
def test_an_operation_is_known_by_its_root_alone(content, operation):
    assert operation_of(content) == operation


def test_an_address_that_is_none_and_one_where_nobody_is():
    for wrong in ("", "127.0.0.1:7080", "ftp://broker/", "http://"):
        with pytest.raises(WrongPeer):
            SimplePeer(wrong)
    with pytest.raises(PeerAway, match="refused"):
        SimplePeer("http://127.0.0.1:1").carry_out(REGISTER.encode(), "a.xml", "1")


def test_an_operation_that_nobody_takes_now_waits_for_the_next_time(live, command, tmp_path):
    (tmp_path / "0.xml").write_text(REGISTER)
    arguments = (
        "files",
        "--once",
        "--interval",
        "0.05s",
        "--in",
        str(tmp_path),
        "--soap",
        "http://127.0.0.1:1",
    )
    for _ in range(2):
        result = command(*arguments)
        assert (result.exit_code, "tried again" in result.stderr) == (4, True)
    [place] = (tmp_path / ".palio" / "taken").iterdir()
    assert (place / "0.xml").read_text() == REGISTER


async def test_what_is_behind_an_operation_waits_for_it(desk, tmp_path):
    """While nobody carries it out, nothing overtakes it; then all comes in the order of the files."""

    class Peer:
        tries = 0

        def carry_out(self, content, name, id):
            self.tries += 1
            if self.tries < 3:
                raise PeerAway("http://peer", "away")
            return OperationResult(b"<result/>", "", None)

    order = []
    async with desk as one, palio.connect(one.address) as client:
        await client.families.register("card")
        for number, content in enumerate((card("a"), REGISTER.encode(), card("b"))):
            (one.inside / f"{number}.xml").write_bytes(content)
            os.utime(one.inside / f"{number}.xml", ns=(number, number))
        folder = InFolder(one.inside)
        watch = FolderWatch(
            client, folder, lambda outcome: order.append(outcome.file), interval=0.02, peer=Peer()
        )
        watching = asyncio.create_task(watch.run())
        async with asyncio.timeout(20):
            while len(order) < 3:
                await asyncio.sleep(0.01)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        folder.close()
    assert order == ["0.xml", "1.xml", "2.xml"]


async def test_a_broker_without_soap_says_so():
    async with calling() as (broker, _):
        peer = SimplePeer(broker.url)
        with pytest.raises(UnusableFile, match=r"soap|404"):
            await asyncio.to_thread(peer.carry_out, REGISTER.encode(), "a.xml", "1")
