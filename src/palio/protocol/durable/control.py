"""Pause, resume and seek: a durable subscription is steered from outside, and its taker not disturbed."""

from __future__ import annotations

from palio.protocol.base import Moment, Number, Numbered


class Pause(Numbered, frozen=True):
    """Pause a durable subscription: keep what comes, and deliver nothing until it is resumed."""

    name: str


class Resume(Numbered, frozen=True):
    """Resume a paused durable subscription: deliver again."""

    name: str


class Seek(Numbered, frozen=True):
    """Seek: `since` a time, "all" or "now", or `after` a position of some origins.

    What follows comes, also what had been acknowledged, as far back as journals and lakes have it; what is
    before and was not acknowledged is dropped. With `dry` nothing is done: only what would be dropped is said.
    """

    name: str
    since: str | Moment | None = None
    after: dict[str, Number] | None = None
    dry: bool = False


class Paused(Numbered, frozen=True):
    """Answers `Pause` and `Resume`: whether it is paused now, on disk."""

    name: str
    paused: bool


class Sought(Numbered, frozen=True):
    """Answers `Seek`: on disk. So many deliveries were dropped; `unread` if journals may have had more."""

    name: str
    dropped: Number
    unread: bool = False
