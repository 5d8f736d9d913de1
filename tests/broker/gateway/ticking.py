"""HTTP servers that notice sooner that they shall stop.

Ten times a second uvicorn looks whether it shall stop, and pauses as long while it does. In tests, which stop a
broker each, that would be most of their time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn.server

_TIMES = 20


class _Hasty:
    """As uvicorn sees asyncio: with a sleep that is shorter."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / _TIMES)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


@pytest.fixture(scope="session", autouse=True)
def hasty_servers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", _Hasty())
        yield
