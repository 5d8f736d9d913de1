"""The body of a request, read within limits: its own size, its time, and what all requests hold together.

A compressed body is refused, whatever it would become: there is no bomb where nothing is unpacked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

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


class EncodedBody(PalioError):
    """A body with a content encoding."""

    encoding: str = cut(40)
    sentence = "A body with the content encoding {encoding!r} is not taken; send it as it is."


class NotNow(PalioError):
    """The broker has enough to do with other requests."""

    def __init__(self) -> None:
        super().__init__("The broker is busy with other requests; try again in a second.")


class Bodies:
    """Reads bodies, and bounds how much is held of them (backpressure)."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self.held = 0

    @asynccontextmanager
    async def read(self, request: Request, limit: int | None = None) -> AsyncIterator[bytes]:
        """The body, which counts as held until the end. Raises the errors of this module."""
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise EncodedBody(encoding)
        limit = min(limit or self._settings.body, self._settings.body)
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and (len(announced) > 18 or int(announced) > limit):
            raise BodyTooLarge(limit)
        parts: list[bytes] = []
        size = 0
        try:
            try:
                async with asyncio.timeout(self._settings.body_within):
                    async for part in request.stream():
                        if self.held + len(part) > self._settings.bodies:
                            raise NotNow
                        self.held += len(part)
                        size += len(part)
                        if size > limit:
                            raise BodyTooLarge(limit)
                        parts.append(part)
            except TimeoutError:
                raise BodyTooSlow(self._settings.body_within) from None
            yield b"".join(parts)
        finally:
            self.held -= size
