"""Requests that wait for their answers, and what becomes of them when the connection is lost."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias

from palio.client.errors import ConnectionLost
from palio.model.errors import PalioError

# keep: whoever asked says it again by itself; again: the same is said again; done: it has come true by that;
# fail: nobody knows whether it was carried out.
OnLoss: TypeAlias = Literal["keep", "again", "done", "fail"]


class _Asked:
    __slots__ = ("future", "message", "on_loss", "said")

    def __init__(self, message: Any, on_loss: OnLoss) -> None:
        self.message = message
        self.on_loss = on_loss
        self.said = False
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class Waiting:
    """By subject: the kind of a request, and what tells it from others of its kind."""

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}

    def add(self, subject: str, message: Any, on_loss: OnLoss, *, said: bool) -> asyncio.Future[Any]:
        """A request is made, and was `said` if there is a connection."""
        asked = self._asked[subject] = _Asked(message, on_loss)
        asked.said = said
        return asked.future

    def get(self, subject: str) -> asyncio.Future[Any] | None:
        """What somebody waits for already."""
        asked = self._asked.get(subject)
        return None if asked is None or asked.future.done() else asked.future

    def message(self, subject: str) -> Any:
        """The request that waits for an answer, or None."""
        asked = self._asked.get(subject)
        return None if asked is None else asked.message

    def answer(self, subject: str, answer: Any) -> bool:
        """Returns whether somebody waited for it."""
        future = self._pop(subject)
        if future is not None:
            future.set_result(answer)
        return future is not None

    def refuse(self, subject: str, problem: PalioError) -> bool:
        """Returns whether somebody waited for it."""
        future = self._pop(subject)
        if future is not None:
            future.set_exception(problem)
            future.exception()  # whoever waited may have given up
        return future is not None

    def forget(self, subject: str, future: asyncio.Future[Any]) -> None:
        """Nobody waits for it any more."""
        asked = self._asked.get(subject)
        if asked is not None and asked.future is future:
            del self._asked[subject]

    def _pop(self, subject: str) -> asyncio.Future[Any] | None:
        asked = self._asked.pop(subject, None)
        return None if asked is None or asked.future.done() else asked.future

    def lost(self, reason: str) -> None:
        """The connection is lost."""
        for subject, asked in list(self._asked.items()):
            if asked.said and asked.on_loss == "fail":
                self.refuse(subject, ConnectionLost(subject, reason))
            elif asked.on_loss == "done":
                self.answer(subject, None)
            asked.said = False

    def connected(self) -> list[Any]:
        """What is to be said on a new connection."""
        unsaid = [asked for asked in self._asked.values() if not asked.said and asked.on_loss != "keep"]
        for asked in unsaid:
            asked.said = True
        return [asked.message for asked in unsaid]

    def close(self, problem: PalioError) -> None:
        """There will be no answers."""
        for subject in list(self._asked):
            self.refuse(subject, problem)


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
