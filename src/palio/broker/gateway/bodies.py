"""The body of a request, read within limits: its own size, its time, and what all requests hold together.

What is large lies in a file while it comes (`arriving`).

A compressed body is refused, whatever it would become: there is no bomb where nothing is unpacked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.requests import ClientDisconnect, Request

from palio.broker.gateway.arriving import ArrivingBody, BodyRoom
from palio.broker.gateway.settings import GatewaySettings
from palio.model.errors import PalioError, cut


class BodyTooLarge(PalioError):
    """A request with more bytes than are allowed."""

    limit: int
    sentence = (
        "The body of this request may have {limit:,} bytes; send less at a time, or (for events) raise the "
        "limit `gateway.body` of the broker."
    )


class BodyTooSlow(PalioError):
    """A request whose body did not come in time."""

    seconds: float
    sentence = "The body of the request did not come within {seconds:g} seconds."


class CallerGone(PalioError):
    """Whoever called has closed the connection before the body had come; nobody hears of this."""

    def __init__(self) -> None:
        super().__init__("The connection was closed before the body of the request had come.")


class EncodedBody(PalioError):
    """A body with a content encoding."""

    encoding: str = cut(40)
    sentence = "A body with the content encoding {encoding!r} is not taken; send it as it is."


class SpoolUnusable(PalioError):
    """The folder in which large bodies lie while they come cannot be written to."""

    reason: str = cut(300)
    sentence = (
        "The broker has no room for a body of this size now: {reason}; try again later, or look at the disk of "
        "the broker."
    )


class Bodies:
    """Reads bodies, and bounds how much is held of them (backpressure)."""

    def __init__(self, settings: GatewaySettings, folder: Path) -> None:
        """Large bodies lie in `folder` while they come."""
        self._settings = settings
        self._folder = folder
        self._room = BodyRoom(settings.bodies, settings.bodies_in_files)

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return self._room.held

    @property
    def filed(self) -> int:
        """Bytes in files."""
        return self._room.filed

    @asynccontextmanager
    async def read(self, request: Request, limit: int | None = None) -> AsyncIterator[bytes]:
        """The body, which counts as held until the end. Raises the errors of this module, and `NotNow`."""
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise EncodedBody(encoding)
        settings = self._settings
        limit = min(limit or settings.body, settings.body)
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and (len(announced) > 18 or int(announced) > limit):
            raise BodyTooLarge(limit)
        body = ArrivingBody(self._room, settings.body_in_memory, self._folder)
        try:
            try:
                async with asyncio.timeout(settings.body_within):
                    async for part in request.stream():
                        if body.size + len(part) > limit:
                            raise BodyTooLarge(limit)
                        await body.add(part)
            except ClientDisconnect:
                raise CallerGone from None
            except TimeoutError:
                raise BodyTooSlow(settings.body_within) from None
            except OSError as problem:
                raise SpoolUnusable(problem.strerror or str(problem)) from None
            yield await self._whole(body)
        finally:
            body.release()

    async def _whole(self, body: ArrivingBody) -> bytes:
        try:
            return await body.whole()
        except OSError as problem:
            raise SpoolUnusable(problem.strerror or str(problem)) from None
