"""Pause, resume and seek: a durable subscription is steered from outside, and its taker not disturbed."""

from __future__ import annotations

from palio.protocol.base import Moment, Number
from palio.protocol.durable.subscriptions import OfSubscription


class Pause(OfSubscription, frozen=True):
    """Pause a durable subscription: keep what comes, and deliver nothing until it is resumed."""


class Resume(OfSubscription, frozen=True):
    """Resume a paused durable subscription: deliver again."""


class Seek(OfSubscription, frozen=True):
    """Move it to a position: `since` a time, "all" or "now", or `after` that of some origins.

    What follows comes, also what had been acknowledged, as far back as journals and lakes have it; what is
    before and was not acknowledged is dropped. With `dry` nothing is done: only what would be dropped is said.
    """

    since: str | Moment | None = None
    after: dict[str, Number] | None = None
    dry: bool = False


class Paused(OfSubscription, frozen=True):
    """Answers `Pause` and `Resume`: whether it is paused now, on disk."""

    paused: bool


class Sought(OfSubscription, frozen=True):
    """Answers `Seek`: on disk. So many deliveries were dropped; `unread` if journals may have had more."""

    dropped: Number
    unread: bool = False
