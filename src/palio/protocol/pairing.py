"""`Pairing`: requests that are not answered yet, each by a number of its own.

A pairing may outlast a connection: whoever says a request again on the next one says it with its number.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from palio.protocol.subjects import subject_of

Kept = TypeVar("Kept")


class OpenRequest(NamedTuple, Generic[Kept]):
    """A request, what it is called, and what whoever asked has kept with it."""

    request: Any
    subject: str
    kept: Kept


class Pairing(Generic[Kept]):
    """Numbers for requests, and what belongs to each until its answer, or its refusal, has come."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._open: dict[int, OpenRequest[Kept]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def number(self) -> int:
        """A number that no request has had."""
        return next(self._numbers)

    def numbered(self, request: Any) -> Any:
        """The request with a number, if it has none."""
        return request if request.number else msgspec.structs.replace(request, number=self.number())

    def add(self, request: Any, kept: Kept) -> None:
        """Add a request, with its number."""
        self._open[request.number] = OpenRequest(request, subject_of(request), kept)

    def get(self, number: int) -> OpenRequest[Kept] | None:
        """A request that is not answered yet."""
        return self._open.get(number)

    def pop(self, number: int) -> OpenRequest[Kept] | None:
        """Remove a request that is answered, or that nobody waits for any more."""
        return self._open.pop(number, None)

    def of(self, subject: str) -> OpenRequest[Kept] | None:
        """A request of that subject that is not answered yet."""
        return next((one for one in self._open.values() if one.subject == subject), None)

    def all(self) -> list[OpenRequest[Kept]]:
        """All that are not answered, in the order in which they were made."""
        return list(self._open.values())
