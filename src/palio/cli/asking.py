"""Questions about a broker itself, over a connection for that alone."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any

from palio.broker.settings import split_address
from palio.model.errors import PalioError
from palio.routing.messages import Refused
from palio.routing.protocol import PROTOCOL, Bye, Frames, Greet, Inspect, Inspected, Role, frame
from palio.routing.wire import decode, encode

TIMEOUT = 5.0


class NoBroker(PalioError):
    """There is no broker at an address, or it does not answer."""

    server: str

    def __init__(self, server: str, why: str = "") -> None:
        super().__init__(
            f"No broker answers at {server}{f' ({why})' if why else ''}; "
            "start one with `palio up`, or name another one with --server.",
            server=server,
        )


class QuestionRefused(PalioError):
    """A broker that does not answer a question."""


async def ask(server: str, *questions: str, timeout: float = TIMEOUT) -> list[list[dict[str, Any]]]:
    """The answers to questions, each as rows. Raises `NoBroker` and `QuestionRefused`."""
    return await ask_with(server, [(one, {}) for one in questions], timeout=timeout)


async def ask_with(
    server: str, questions: Sequence[tuple[str, dict[str, Any]]], *, timeout: float = TIMEOUT
) -> list[list[dict[str, Any]]]:
    """The answers to questions with arguments."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(*split_address(server))
            try:
                return await _exchange(reader, writer, questions)
            finally:
                writer.write(frame(encode(Bye("The questions are answered."))))
                writer.close()
    except TimeoutError:
        raise NoBroker(server, f"nothing came within {timeout:g} seconds") from None
    except (OSError, EOFError):
        raise NoBroker(server) from None


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, questions: Sequence[tuple[str, dict[str, Any]]]
) -> list[list[dict[str, Any]]]:
    writer.write(frame(encode(Greet(PROTOCOL, Role.CLIENT, f"question-{secrets.token_hex(8)}"))))
    for number, (what, argument) in enumerate(questions):
        writer.write(frame(encode(Inspect(number, what, argument))))
    answers: list[list[dict[str, Any]]] = [[] for _ in questions]
    frames, missing = Frames(), len(questions)
    while missing:
        data = await reader.read(65_536)
        if not data:
            raise EOFError
        for payload in frames.feed(data):
            message = decode(payload)
            if isinstance(message, Refused | Bye):
                raise QuestionRefused(message.reason)
            if isinstance(message, Inspected):
                if isinstance(message.result, dict):
                    raise QuestionRefused(str(message.result.get("error")))
                answers[message.number] += message.result
                missing -= message.last
    return answers
