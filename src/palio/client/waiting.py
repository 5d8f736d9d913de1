"""Requests that wait for their answers, and what becomes of them when the connection is lost."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias

from palio.client.errors import ConnectionLost
from palio.model.errors import PalioError
from palio.protocol.subjects import subject_of

# keep: whoever asked says it again by itself; again: the same is said again; done: it has come true by that;
# fail: nobody knows whether it was carried out.
OnLoss: TypeAlias = Literal["keep", "again", "done", "fail"]


class _Asked:
    __slots__ = ("future", "message", "on_loss", "said", "subject")

    def __init__(self, message: Any, on_loss: OnLoss, *, said: bool) -> None:
        self.message = message
        self.subject = subject_of(message)
        self.on_loss = on_loss
        self.said = said
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class Waiting:
    """Requests by their numbers."""

    def __init__(self) -> None:
        self._asked: dict[int, _Asked] = {}

    def add(self, message: Any, on_loss: OnLoss, *, said: bool) -> asyncio.Future[Any]:
        """A request is made, and was `said` if there is a connection."""
        asked = self._asked[message.number] = _Asked(message, on_loss, said=said)
        return asked.future

    def of(self, subject: str) -> asyncio.Future[Any] | None:
        """What somebody waits for already who has asked for the same."""
        same = (one.future for one in self._asked.values() if one.subject == subject)
        return next((future for future in same if not future.done()), None)

    def answer(self, number: int, answer: Any) -> bool:
        """Returns whether somebody waited for it."""
        future = self._pop(number)
        if future is not None:
            future.set_result(answer)
        return future is not None

    def refuse(self, number: int, problem: PalioError) -> bool:
        """Returns whether somebody waited for it."""
        future = self._pop(number)
        if future is not None:
            future.set_exception(problem)
            future.exception()  # whoever waited may have given up
        return future is not None

    def forget(self, number: int) -> None:
        """Nobody waits for it any more."""
        self._asked.pop(number, None)

    def _pop(self, number: int) -> asyncio.Future[Any] | None:
        asked = self._asked.pop(number, None)
        return None if asked is None or asked.future.done() else asked.future

    def lost(self, reason: str) -> None:
        """The connection is lost."""
        for number, asked in list(self._asked.items()):
            if asked.said and asked.on_loss == "fail":
                self.refuse(number, ConnectionLost(asked.subject, reason))
            elif asked.on_loss == "done":
                self.answer(number, None)
            asked.said = False

    def connected(self) -> list[Any]:
        """What is to be said on a new connection."""
        unsaid = [asked for asked in self._asked.values() if not asked.said and asked.on_loss != "keep"]
        for asked in unsaid:
            asked.said = True
        return [asked.message for asked in unsaid]

    def close(self, problem: PalioError) -> None:
        """There will be no answers."""
        for number in list(self._asked):
            self.refuse(number, problem)


def lose(waiting: list[asyncio.Future[None]], request: str) -> None:
    """Tell all that wait for a request that nobody will know what has become of it."""
    for future in waiting:
        if not future.done():
            future.set_exception(ConnectionLost(request, "The broker had not answered."))
            future.exception()  # whoever waited may have given up
    waiting.clear()


def release(waiting: list[asyncio.Future[None]]) -> None:
    """Let all go on that wait for something which has come true."""
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()
