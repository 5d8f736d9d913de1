"""Publish/subscribe for XML content: the same requests by SOAP with attachments, and by files."""

import asyncio
import re
from contextlib import asynccontextmanager

import pytest
from lxml import etree

import palio
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.soap.settings import SoapSettings
from palio.cli.documents import files
from tests.acceptance.test_xml_content import A1, CARD, SPACE, card
from tests.broker.gateway.calling import calling
from tests.cli.conftest import command
from tests.folders.test_operations import BR, B
from tests.soap.speaking import S12, envelope

__all__ = ["command"]

REGISTER = f'<{{}} {BR}><Topic Dialect="{SPACE}"/></{{}}>'
REGISTERED, WITHDRAWN = (REGISTER.format(one, one) for one in ("RegisterPublisher", "DestroyRegistration"))
A2 = card("c1", "Acme", "North", 12)
INVALID = A1[0].replace(b"<code>c1</code>", b"")
TWO_BRANDS = card("c4", ("Acme", "Zeta"), "West", 7)


def about(name, *conditions, more=""):
    """An operation about what conditions select; the subscriber is a folder, or takes it by its handle."""
    wanted = "".join(
        f'<subscription xmlns=""><xpath expression="{path}"/><value>{value}</value></subscription>'
        for path, value in conditions
    )
    consumer = '<Address xmlns="http://www.w3.org/2005/08/addressing">file:desk</Address>'
    return (
        f"<{name} {B}{more}><ConsumerReference>{consumer}</ConsumerReference>"
        f'<Filter><TopicExpression Dialect="{SPACE}">{wanted}</TopicExpression></Filter></{name}>'
    )


ACME, NORTH = ("/c:card/c:brand", "Acme"), ("/c:card/c:supplier", "North")
# Requests, and the operation that they are; documents are published.
FIRST = (
    A1[0],  # before it has registered
    REGISTERED,
    REGISTERED,
    about("Subscribe", ACME),
    about("Subscribe", ACME, NORTH),
    about("Subscribe", ACME),
    about("Subscribe", ("/c:card/c:colour", "red")),
    *A1,
    TWO_BRANDS,
    A2,
    INVALID,
    about("GetCurrentMessage", ACME),
)
THEN = (
    about("Unsubscribe", ACME),
    about("Unsubscribe", ACME),
    WITHDRAWN,
    WITHDRAWN,
    A1[0],
)
DOCUMENTS = sum(isinstance(one, bytes) for one in FIRST)
DONE = [False, True, True, True, True, True, False, *[True] * 5, False, True]
DONE_THEN = [True] * 4 + [False]


class BySoap:
    """Requests in envelopes; documents are attached to them."""

    def __init__(self, session):
        self._session = session

    async def results(self, requests):
        return [await self._result(one) for one in requests]

    async def _result(self, request):
        kind = "application/soap+xml; charset=utf-8"
        if isinstance(request, bytes):
            message = '<NotificationMessage><Message href="cid:content"/></NotificationMessage>'
            kind = 'multipart/related; type="application/soap+xml"; boundary="here"; start="<root>"'
            root = envelope(f"<Notify {B}>{message}</Notify>", "", S12)
            body = b"".join(
                b"--here\r\nContent-ID: <" + id + b">\r\n\r\n" + content + b"\r\n"
                for id, content in ((b"root", root), (b"content", request))
            )
            body += b"--here--\r\n"
        else:
            body = envelope(request, "", S12)
        async with self._session.post("/wsn/simple", data=body, headers={"Content-Type": kind}) as answer:
            return etree.fromstring(await answer.read()).find(".//result")


class ByFiles:
    """Requests as files that are dropped into a folder, one operation each."""

    def __init__(self, folder, broker, command):
        self._folder, self._broker, self._command = folder, broker, command
        self._rounds = 0

    async def results(self, requests):
        self._rounds += 1
        inside, outside = self._folder / f"in{self._rounds}", self._folder / "out"
        inside.mkdir()
        outside.mkdir(exist_ok=True)
        names = [f"{number}-input.xml" for number in range(len(requests))]
        for name, request in zip(names, requests, strict=True):
            if isinstance(request, bytes):
                message = f"<NotificationMessage><Message>{request.decode()}</Message></NotificationMessage>"
                request = f"<Notify {B}>{message}</Notify>"
            (inside / name).write_text(request)
        arguments = ["--in", str(inside), "--out", str(outside), "--soap", self._broker.url, "--json", "-q"]
        arguments += ["--server", self._broker.address, "--once", "--interval", "0.05s"]
        await asyncio.to_thread(self._command, "files", *arguments)
        return [self._result(inside, name) for name in names]

    def _result(self, inside, name):
        done = inside / "done" / f"{name}.result.xml"
        if done.exists():
            return etree.parse(done).getroot()
        reason = (inside / "rejected" / f"{name}.reason.txt").read_text()
        return etree.Element("result", valueACK="false", code=re.search(r": (\w+): ", reason)[1])


@asynccontextmanager
async def desk():
    settings = {"gateway": GatewaySettings(), "soap": SoapSettings(enabled=True)}
    async with calling(**settings) as (broker, session), palio.connect(broker.address) as client:
        await client.families.add("card", **CARD, registered=True)
        yield broker, session, client


def said(results):
    """What was answered: whether it was done, the handle (by its order), the error, and documents."""
    handles = {}
    return [
        (
            one.get("valueACK"),
            one.get("handle") and handles.setdefault(one.get("handle"), len(handles)),
            one.get("code"),
            [etree.tostring(document, method="c14n2") for document in one],
        )
        for one in results
    ]


async def state_of(broker, client, published):
    """All that a broker has: journal, current documents, registrations, subscriptions, the log.

    That has a row of each document that somebody wanted to publish; the last one comes after its answer.
    """

    def told(event):
        document = etree.tostring(etree.fromstring(event.payload), method="c14n2", strip_text=True)
        return event.sequence, dict(event.attributes), document

    log = []
    while len(log) < published:
        after = log[-1]["number"] if log else 0
        page = await client.operations(kinds=["publishdocuments"], after=after, wait=10)
        log += page["operations"]
    homes = broker.running.router.durable.homes.subscriptions
    return {
        "journal": [told(one) async for one in client.replay("true")],
        "current": [told(one) async for one in client.documents("family card")],
        "publishers": len(await client.families.publishers("card")),
        "subscriptions": sorted(str(one.filter) for name, one in homes.items() if "documents-" not in name),
        "log": [(one["kind"], one["result"], one.get("error")) for one in log],
    }


@pytest.fixture
def soon_quiet(monkeypatch):
    """The broker is in this process: what waits there comes at once."""
    monkeypatch.setattr(files, "QUIET", 0.2)


async def test_a10_the_same_requests_by_soap_and_by_files_give_the_same_state(tmp_path, command, soon_quiet):
    found = []
    for way in ("soap", "files"):
        async with desk() as (broker, session, client):
            there = BySoap(session) if way == "soap" else ByFiles(tmp_path, broker, command)
            first = await there.results(FIRST)
            between = await state_of(broker, client, DOCUMENTS)
            then = await there.results(THEN)
            found.append((said(first), between, said(then), await state_of(broker, client, DOCUMENTS + 1)))
    by_soap, by_files = found
    assert [one[0] == "true" for one in by_soap[0]] == DONE
    assert [one[0] == "true" for one in by_soap[2]] == DONE_THEN
    for one, other in zip(by_soap, by_files, strict=True):
        assert one == other
    _, between, _, end = by_soap
    assert [attributes["xml.key"] for _, attributes, _ in between["current"]] == ["c1", "c2", "c3", "c4"]
    assert len(between["journal"]) == 5
    assert len(between["subscriptions"]) == 2
    assert (between["publishers"], end["publishers"], len(end["subscriptions"])) == (1, 0, 1)
    assert [result for _, result, _ in between["log"]].count("refused") == 2
