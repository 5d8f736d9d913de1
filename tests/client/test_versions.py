"""A client and a broker of different versions find out at once, and each is told by the other."""

import asyncio

import msgspec
import pytest

import palio
from palio.protocol.encoding import decode, encode
from palio.protocol.frames import Frames, frame
from palio.protocol.greeting import PROTOCOL, Greet, Welcome
from palio.protocol.requests import Refused
from palio.protocol.violations import ProtocolViolation

OLD = "palio/1"
_REFUSED = {
    "type": "refused",
    "subject": "connection",
    "error": "ProtocolViolation",
    "reason": f"This broker speaks {OLD}, not {PROTOCOL!r}.",
    "fields": {},
}


class OlderBroker:
    """Says the same to whoever connects, once it is greeted, and keeps what it hears."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.heard: list = []
        self.address = ""

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"palio://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *problem):
        self._server.close()

    async def _serve(self, reader, writer):
        frames = Frames()
        while data := await reader.read(65_536):
            for payload in frames.feed(data):
                self.heard.append(decode(payload))
                if isinstance(self.heard[-1], Greet):
                    writer.write(frame(self._answer))
        writer.close()


def test_the_refusal_of_an_older_broker_is_told():
    async def scene():
        async with OlderBroker(msgspec.msgpack.encode(_REFUSED)) as broker:
            with pytest.raises(palio.RequestRefused, match=f"speaks {OLD}, not {PROTOCOL!r}"):
                await palio.connect(broker.address, connect_within=0)

    asyncio.run(scene())


def test_an_older_broker_that_takes_the_connection_is_refused_and_hears_why():
    async def scene():
        async with OlderBroker(encode(Welcome(OLD, "lucca"))) as broker:
            with pytest.raises(ProtocolViolation, match=f"{PROTOCOL} is spoken at this end, and {OLD!r}"):
                await palio.connect(broker.address, connect_within=0)
            async with asyncio.timeout(10):
                while not any(isinstance(one, Refused) for one in broker.heard):
                    await asyncio.sleep(0.01)
            refused = broker.heard[-1]
            assert (refused.subject, refused.error) == ("connection", "ProtocolViolation")
            assert PROTOCOL in refused.reason

    asyncio.run(scene())
