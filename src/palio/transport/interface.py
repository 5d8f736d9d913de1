"""What a transport is: it dials, or listens, and gives an asyncio protocol an ordered stream of bytes.

Another transport is another file with a class that has these methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

End = TypeVar("End", bound=asyncio.Protocol)


class Dialler(Protocol):
    """Reaches one place."""

    async def dial(self, make: Callable[[], End]) -> End:
        """A stream of bytes to the place, for the protocol that `make` makes. Raises OSError."""


class Listening(Protocol):
    """A place at which streams are taken, until it is closed."""

    def close(self) -> None:
        """Take no more streams; those that are there stay."""

    async def wait_closed(self) -> None:
        """Wait until that is so."""


class Listener(Protocol):
    """Takes streams at one place."""

    async def listen(self, make: Callable[[], asyncio.Protocol]) -> Listening:
        """Take streams from now on, each for a protocol of its own. Raises OSError."""
