"""Pending requests: who waits for their answers, and what becomes of them when the connection is lost."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias

from palio.client.errors import ConnectionLost
from palio.model.errors import PalioError
from palio.protocol.pairing import Pairing

# keep: whoever asked says it again by itself; again: the same is said again; done: it has come true by that;
# fail: nobody knows whether it was carried out.
OnLoss: TypeAlias = Literal["keep", "again", "done", "fail"]


class _PendingAnswer:
    __slots__ = ("future", "on_loss", "said")

    def __init__(self, on_loss: OnLoss, *, said: bool) -> None:
        self.on_loss = on_loss
        self.said = said
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class PendingAnswers:
    """Pending requests by their numbers, whatever connection they were made on."""

    def __init__(self) -> None:
        self.pairing: Pairing[_PendingAnswer] = Pairing()

    def add(self, request: Any, on_loss: OnLoss, *, said: bool) -> asyncio.Future[Any]:
        """Add a request, which was `said` if there is a connection."""
        asked = _PendingAnswer(on_loss, said=said)
        self.pairing.add(request, asked)
        return asked.future

    def of(self, subject: str) -> asyncio.Future[Any] | None:
        """What somebody waits for already who has asked for the same."""
        same = self.pairing.of(subject)
        return None if same is None or same.kept.future.done() else same.kept.future

    def answer(self, number: int, answer: Any) -> bool:
        """Completes a request with its answer. Returns whether somebody waited for it."""
        future = self._pop(number)
        if future is not None:
            future.set_result(answer)
        return future is not None

    def refuse(self, number: int, problem: PalioError) -> bool:
        """Fails a request that was refused. Returns whether somebody waited for it."""
        future = self._pop(number)
        if future is not None:
            future.set_exception(problem)
            future.exception()  # whoever waited may have given up
        return future is not None

    def _pop(self, number: int) -> asyncio.Future[Any] | None:
        asked = self.pairing.pop(number)
        return None if asked is None or asked.kept.future.done() else asked.kept.future

    def lost(self, reason: str) -> None:
        """Handles a lost connection: what cannot simply be said again fails."""
        for request, subject, asked in self.pairing.all():
            if asked.said and asked.on_loss == "fail":
                self.refuse(request.number, ConnectionLost(subject, reason))
            elif asked.on_loss == "done":
                self.answer(request.number, None)
            asked.said = False

    def connected(self) -> list[Any]:
        """The requests that are said again on a new connection."""
        unsaid = [one for one in self.pairing.all() if not one.kept.said and one.kept.on_loss != "keep"]
        for one in unsaid:
            one.kept.said = True
        return [one.request for one in unsaid]

    def close(self, problem: PalioError) -> None:
        """Fails all requests: there will be no answers."""
        for one in self.pairing.all():
            self.refuse(one.request.number, problem)


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
