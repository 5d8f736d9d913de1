"""What a transport is to who connects: it dials, and gives an asyncio protocol an ordered stream of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

End = TypeVar("End", bound=asyncio.Protocol)


class Dialler(Protocol):
    """Reaches one place."""

    async def dial(self, make: Callable[[], End]) -> End:
        """A stream of bytes to the place, for the protocol that `make` makes. Raises OSError."""
