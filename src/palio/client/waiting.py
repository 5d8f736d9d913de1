"""Requests that wait for their answers, and what becomes of them when the connection is lost."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias

from palio.client.errors import ConnectionLost
from palio.model.errors import PalioError

# keep: whoever asked says it again by itself; again: the same is said again; done: it has come true by that;
# fail: nobody knows whether it was carried out.
OnLoss: TypeAlias = Literal["keep", "again", "done", "fail"]


class Waiting:
    """By subject: the kind of a request, and what tells it from others of its kind."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[asyncio.Future[Any], Any, OnLoss]] = {}

    def add(self, subject: str, message: Any, on_loss: OnLoss) -> asyncio.Future[Any]:
        """A request was said. One of the same subject that waits shares its answer."""
        known = self._asked.get(subject)
        if known is not None and not known[0].done():
            return known[0]
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[subject] = future, message, on_loss
        return future

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

    def forget(self, subject: str) -> None:
        """Nobody waits for it any more."""
        self._asked.pop(subject, None)

    def _pop(self, subject: str) -> asyncio.Future[Any] | None:
        future = self._asked.pop(subject, (None,))[0]
        return None if future is None or future.done() else future

    def lost(self, reason: str) -> None:
        """The connection is lost."""
        for subject, (_, _, on_loss) in list(self._asked.items()):
            if on_loss == "fail":
                self.refuse(subject, ConnectionLost(subject, reason))
            elif on_loss == "done":
                self.answer(subject, None)

    def again(self) -> list[Any]:
        """What is to be said again on a new connection."""
        return [message for _, message, on_loss in self._asked.values() if on_loss == "again"]

    def close(self, problem: PalioError) -> None:
        """There will be no answers."""
        for subject in list(self._asked):
            self.refuse(subject, problem)


def release(waiting: list[asyncio.Future[None]]) -> None:
    """Let all go on that wait for something which has come true."""
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()
