"""Closed by default: what a door does not list does not pass it.

Each door of a broker (`request_guard` for clients, `border` for brokers of another domain) lists every kind of
message that it knows, also those that pass as they are. A kind that is added to the protocol and to no list is
refused: forgetting to think about it costs a feature, not a right.
"""

from __future__ import annotations

from palio.model.errors import PalioError


class UnlistedMessage(PalioError):
    """A kind of message that a door does not list."""

    kind: str
    door: str

    def __init__(self, message: object, door: str) -> None:
        kind = type(message).__name__.lower()
        super().__init__(f"A {kind!r} message may not pass the {door}.", kind=kind, door=door)
