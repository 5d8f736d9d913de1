"""Requests that extensions answer: over a socket, within bounds, closed by default, and with older peers."""

import asyncio
import logging

import pytest

import palio
from palio import testing
from palio.broker import invoking
from palio.broker.access.rights import Allowance
from palio.broker.extension import Extension, ExtensionConflict, ExtensionRequest, Extensions
from palio.client.errors import BrokerTooOld
from palio.protocol.encoding import encode
from palio.protocol.frames import MAX_EVENT
from palio.protocol.greeting import PROTOCOL, Welcome
from palio.protocol.invocations import Invoke
from palio.protocol.requests import Refused
from palio.protocol.vocabulary import SERVED
from tests.client.test_versions import OlderBroker
from tests.live.talking import Talker
from tests.security.world import World


class Wrong(palio.PalioError):
    """What an extension refuses with."""

    number: int
    sentence = "{number} is wrong; take another one."


class Asked:
    """An extension that answers in every way there is."""

    def __init__(self):
        self.under_way = 0
        self.go_on = asyncio.Event()
        self.cancelled = 0

    def __call__(self, broker):
        requests = (
            ExtensionRequest("ask.now", self.now, None),
            ExtensionRequest("ask.later", self.later, None),
            ExtensionRequest("ask.inspector", self.now, Allowance.INSPECT),
            ExtensionRequest("ask.size", self.size, None),
            ExtensionRequest("ask.broken", self.broken, None),
            ExtensionRequest("ask.broken later", self.broken_later, None),
            ExtensionRequest("ask.object", lambda argument, principal, session: object(), None),
        )
        return [Extension(name="asked", requests=requests)]

    def now(self, argument, principal, session):
        if "wrong" in argument:
            raise Wrong(argument["wrong"])
        return {"got": argument, "who": principal.name, "session": session}

    async def later(self, argument, principal, session):
        self.under_way += 1
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        return self.now(argument, principal, session)

    def size(self, argument, principal, session):
        return b"x" * argument["bytes"]

    def broken(self, argument, principal, session):
        raise RuntimeError("a mistake")

    async def broken_later(self, argument, principal, session):
        raise RuntimeError("a mistake")


def asking(client, what, **argument):
    return client._session.invoke(what, argument)


async def test_what_is_asked_is_answered_at_once_or_later():
    asked = Asked()
    async with testing.broker(extensions=(asked,)) as address, palio.connect(address, name="otto") as client:
        argument = {"a": [1, 2.5, None, b"bytes", {"b": True}]}
        expected = {"got": argument, "who": "", "session": "otto"}
        assert await asking(client, "ask.now", **argument) == expected
        later = asyncio.gather(*[asking(client, "ask.later", number=number) for number in range(5)])
        while asked.under_way < 5:
            await asyncio.sleep(0.01)
        assert await asking(client, "ask.now", **argument) == expected  # it overtakes what has to wait
        asked.go_on.set()
        assert [one["got"] for one in await later] == [{"number": number} for number in range(5)]


async def test_refusals_are_told_with_their_fields_and_nothing_else_ends():
    async with testing.broker(extensions=(Asked(),)) as address, palio.connect(address) as client:
        with pytest.raises(palio.RequestRefused, match="3 is wrong; take another one") as caught:
            await asking(client, "ask.now", wrong=3)
        assert (caught.value.error, caught.value.number) == ("Wrong", 3)
        with pytest.raises(palio.RequestRefused, match=r"'nothing'; there are ask\.broken, ask\.bro") as caught:
            await asking(client, "nothing")
        assert caught.value.error == "UnknownRequest"
        for what in ("ask.broken", "ask.broken later", "ask.object"):
            with pytest.raises(palio.RequestRefused, match="this is its mistake"):
                await asking(client, what)
        await client.publish({"a": 1})


async def test_without_further_extensions_there_are_the_requests_of_every_broker():
    async with testing.broker() as address, palio.connect(address) as client:
        with pytest.raises(palio.RequestRefused, match=r"'ask\.now'; there are .*, operations\.read, .*\."):
            await asking(client, "ask.now")


async def test_a_request_needs_the_right_that_it_names(tmp_path):
    world = World(tmp_path)
    world.add("anna", None, None)
    world.add("otto", None, None, "inspect")
    async with world.broker(extensions=(Asked(),)) as address:
        async with world.connect(address, "anna") as anna:
            with pytest.raises(palio.NotAllowed, match="needs the right 'inspect'"):
                await asking(anna, "ask.inspector")
            assert (await asking(anna, "ask.now"))["who"] == "anna"
        async with world.connect(address, "otto") as otto:
            assert (await asking(otto, "ask.inspector"))["session"] == f"otto/{otto.name}"


async def test_what_is_under_way_is_bounded_and_counted_and_ends_with_who_asked(monkeypatch):
    monkeypatch.setattr(invoking, "OF_ONE", 3)
    monkeypatch.setattr(invoking, "IN_ALL", 5)
    asked = Asked()
    broker = testing.broker(extensions=(asked,))
    async with broker as address, palio.connect(address) as other:
        async with palio.connect(address, name="otto") as client:
            waiting = [
                asyncio.create_task(asking(client, "ask.later", of="x" * 100_000)) for number in range(3)
            ]
            while asked.under_way < 3:
                await asyncio.sleep(0.01)
            account = broker.running.sessions["otto"].account
            assert broker.running.accounts.held(account) > 300_000
            with pytest.raises(palio.RequestRefused, match="3 requests of this client are under way"):
                await asking(client, "ask.now")
            more = [asyncio.create_task(asking(other, "ask.later")) for number in range(2)]
            while asked.under_way < 5:
                await asyncio.sleep(0.01)
            with pytest.raises(palio.RequestRefused, match="5 requests of all clients of this broker"):
                await asking(other, "ask.now")
        while asked.cancelled < 3:  # who has gone is not worked for
            await asyncio.sleep(0.01)
        assert broker.running.accounts.held(account) == 0
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(one) for one in results} == {palio.ClientClosed}
        asked.go_on.set()
        assert len(await asyncio.gather(*more)) == 2


async def test_an_answer_fits_into_a_frame_or_is_refused():
    async with testing.broker(extensions=(Asked(),)) as address, palio.connect(address) as client:
        assert len(await asking(client, "ask.size", bytes=MAX_EVENT - 10)) == MAX_EVENT - 10
        with pytest.raises(palio.RequestRefused, match=r"'ask\.size' has 15,\d+,\d+ bytes, and one may have"):
            await asking(client, "ask.size", bytes=MAX_EVENT)
        assert (await asking(client, "ask.now"))["got"] == {}


async def test_an_older_broker_is_asked_for_nothing_that_it_does_not_know():
    older = OlderBroker(encode(Welcome(PROTOCOL, "lucca")))
    async with older as broker, palio.connect(broker.address) as client:
        with pytest.raises(BrokerTooOld, match=r"'lucca' does not know 'ask\.now'; bring it up"):
            await asking(client, "ask.now")
        assert not [one for one in broker.heard if isinstance(one, Invoke)]


async def test_an_older_client_is_welcome_and_hears_nothing_new():
    """It does not say what it knows, and reads a `Welcome` that has more than it expects."""
    async with testing.broker(extensions=(Asked(),)) as address:
        talker = await Talker.open(int(address.rpartition(":")[2]), "older")
        talker.say(Invoke(7, "nothing"))
        refused = await talker.hear_a(Refused)
        assert (refused.number, refused.error) == (7, "UnknownRequest")
        talker.close()
    assert SERVED == ("invoke", "publishdocuments")


def test_no_two_extensions_answer_the_same_request():
    extensions = Extensions(logging.getLogger(__name__))
    requests = (ExtensionRequest("ask.now", lambda *_: None, None),)
    extensions.add(Extension(name="one", requests=requests))
    with pytest.raises(ExtensionConflict, match=r"a request 'ask\.now' is there already"):
        extensions.add(Extension(name="two", requests=requests))
