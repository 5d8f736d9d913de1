"""What may be wished of a durable subscription, and what is said when it cannot be granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar
from math import isfinite

from palio.model.errors import PalioError
from palio.protocol.durable.lineage import LONGEST_LINEAGE
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import Attach

# What a taker may wish. A position names at most as many origins as a network may well have.
LONGEST_LINGER = 3_650 * 86_400.0
MAX_IN_FLIGHT = 10_000
MAX_ORIGINS = 10_000
MAX_SEQUENCE = 2**62  # more than any journal will ever have, and less than what a column holds
LONGEST_WAIT = 86_400.0
MAX_ATTEMPTS = 1_000


class HomeUnreachable(PalioError):
    """A durable subscription whose home does not answer, or might be where nobody answers."""

    name: str
    missing: tuple[str, ...]

    def sentence(self) -> str:
        brokers = ", ".join(self.missing)
        return (
            f"The durable subscription {self.name!r} may have its home at {brokers}, which cannot be reached "
            "now. Try again later, begin anew, or let the network forget a broker that is gone for good "
            "(`palio forget`)."
        )


class NotTaker(PalioError):
    """A request about a durable subscription by a session that is not its taker."""

    name: str
    sentence = "This session is not the taker of the durable subscription {name!r}; attach it first."


class NotHome(PalioError):
    """A request about dead letters at a broker that is not the home of the subscription."""

    name: str
    sentence = "The durable subscription {name!r} does not have its home at this broker; ask at its home."


class WrongAttachment(PalioError):
    """A wish about a durable subscription that cannot be granted."""

    setting: str
    reason: InitVar[str]
    sentence = "The setting {setting!r} cannot be so: {reason}"


def require_sound(attach: Attach) -> None:
    """Raises `WrongAttachment` if a taker wishes what nobody can grant."""
    if attach.linger is not None and not 0.0 <= attach.linger <= LONGEST_LINGER:
        raise WrongAttachment("linger", f"It is from 0 to {LONGEST_LINGER:,.0f} seconds.")
    if attach.in_flight is not None and not 1 <= attach.in_flight <= MAX_IN_FLIGHT:
        raise WrongAttachment("in_flight", f"It is from 1 to {MAX_IN_FLIGHT:,}.")
    since = attach.since
    if since not in ("now", "all") and (isinstance(since, str) or not isfinite(since)):
        raise WrongAttachment("since", "It is a time, now, or all.")
    patience = attach.patience
    if patience is not None and (wrong := wrong_in_patience(patience)):
        raise WrongAttachment(f"patience.{wrong[0]}", wrong[1])
    retry = attach.retry
    if retry is not None:
        pauses = (retry.first_pause, retry.longest_pause)
        if not all(one is None or 0.0 <= one <= LONGEST_WAIT for one in pauses):
            raise WrongAttachment("backoff", f"Its pauses are from 0 to {LONGEST_WAIT:,.0f} seconds.")
        if retry.attempts is not None and not 1 <= retry.attempts <= MAX_ATTEMPTS:
            raise WrongAttachment("attempts", f"They are from 1 to {MAX_ATTEMPTS:,}.")
    require_position(attach.after or {})
    lineages = attach.lineages or {}
    if len(lineages) > MAX_ORIGINS or any(len(one) > LONGEST_LINEAGE for one in lineages.values()):
        raise WrongAttachment("lineages", f"They are those of the position, each up to {LONGEST_LINEAGE} long.")


def wrong_in_patience(patience: Patience) -> tuple[str, str] | None:
    """The part of a retry policy that nobody can grant, and what it may be."""
    if not 0.0 < patience.acknowledge_within <= LONGEST_WAIT:
        return "acknowledge_within", f"It is more than 0, and at most {LONGEST_WAIT:,.0f} seconds."
    for name in ("first_pause", "longest_pause"):
        if not 0.0 <= getattr(patience, name) <= LONGEST_WAIT:
            return name, f"It is from 0 to {LONGEST_WAIT:,.0f} seconds."
    for name, most in (("in_flight", MAX_IN_FLIGHT), ("attempts", MAX_ATTEMPTS)):
        if not 1 <= getattr(patience, name) <= most:
            return name, f"It is from 1 to {most:,}."
    return None


def require_position(after: Mapping[str, int]) -> None:
    """Raises `WrongAttachment` if that is no position after which something may come."""
    if len(after) > MAX_ORIGINS or not all(0 <= sequence <= MAX_SEQUENCE for sequence in after.values()):
        raise WrongAttachment("after", f"It has up to {MAX_ORIGINS:,} origins, and sequences from 0 on.")


def require_delay(delay: float | None) -> None:
    """Raises `WrongAttachment` if that is no time after which something may come again."""
    if delay is not None and not 0.0 <= delay <= LONGEST_WAIT:
        raise WrongAttachment("delay", f"It is from 0 to {LONGEST_WAIT:,.0f} seconds.")
