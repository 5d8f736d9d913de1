"""The protocol spoken by hand, message by message and byte by byte."""

from __future__ import annotations

import asyncio
from typing import Any, Self, TypeVar

from palio.protocol.encoding import decode, encode
from palio.protocol.frames import Frames, frame
from palio.protocol.greeting import PROTOCOL, Greet, Role, Welcome
from palio.protocol.heartbeat import Ping, Pong
from palio.protocol.inquiries import Inspect, Inspected

PATIENCE = 30.0
Kind = TypeVar("Kind")


class Talker:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._frames = Frames()
        self._heard: list[bytes] = []

    @classmethod
    async def connect(cls, port: int) -> Self:
        """A connection on which nothing was said yet."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    @classmethod
    async def open(cls, port: int, name: str, *, role: Role = Role.CLIENT, heartbeat: float = 5.0) -> Self:
        """A connection that was greeted."""
        talker = await cls.connect(port)
        talker.say(Greet(PROTOCOL, role, name, heartbeat=heartbeat))
        await talker.hear_a(Welcome)
        return talker

    def say(self, message: Any) -> None:
        self.writer.write(frame(encode(message)))

    async def hear(self) -> Any:
        """The next message; heartbeats are answered and passed over. Raises EOFError at the end."""
        while True:
            while not self._heard:
                data = await asyncio.wait_for(self.reader.read(65_536), PATIENCE)
                if not data:
                    raise EOFError
                self._heard = self._frames.feed(data)
            message = decode(self._heard.pop(0))
            if not isinstance(message, Ping):
                return message
            self.say(Pong())

    async def hear_a(self, kind: type[Kind]) -> Kind:
        """The next message of a type; others are passed over."""
        while True:
            message = await self.hear()
            if isinstance(message, kind):
                return message

    def close(self) -> None:
        self.writer.transport.abort()


async def inspect(port: int, what: str) -> list[Any]:
    """What a broker says about itself."""
    talker = await Talker.open(port, f"looker for {what}")
    try:
        talker.say(Inspect(1, what))
        rows: list[Any] = []
        while True:
            answer = await talker.hear_a(Inspected)
            rows += answer.result
            if answer.last:
                return rows
    finally:
        talker.close()
