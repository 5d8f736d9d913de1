"""What the parts of durable delivery at one broker share: settings, the moment, and where effects are put."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from palio.model.errors import PalioError
from palio.routing.durable.messages import Attach, DurableAnswer
from palio.routing.durable.outbox import Patience
from palio.routing.effects import Reply
from palio.routing.messages import Answer
from palio.routing.scopes import SEPARATOR, Scopes

# What a taker may wish. A position names at most as many origins as a network may well have.
LONGEST_LINGER = 3_650 * 86_400.0
MAX_IN_FLIGHT = 10_000
MAX_ORIGINS = 10_000
MAX_SEQUENCE = 2**62  # more than any journal will ever have, and less than what a column holds
LONGEST_WAIT = 86_400.0
MAX_ATTEMPTS = 1_000
# How many ticks may pass until a question is answered, or a way known; then it is tried again, or given up.
ANSWER_WITHIN = 10


class DurableSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How durable delivery works at a broker. Times are in seconds."""

    patience: Patience = Patience()
    page: int = 1_024  # notifications fetched at a time
    # Deliveries kept for one subscription, and their bytes; what is beyond stays in the origins' journals.
    outbox: int = 10_000
    outbox_bytes: int = 32 << 20
    # The same of its dead letters; while there is no room, nothing is given up: it comes again and again.
    dead_letters: int = 10_000
    dead_letters_bytes: int = 32 << 20
    tick: float = 1.0  # how often progress is told, and what was lost asked for again
    settle_within: float = 0.2  # how long to wait for further changes of the network before catching up
    retention: float = 3_600.0  # how long the ids of notifications are remembered
    remembered: int = 250_000  # how many of them at the most: some 60 MB
    keep: float = 0.0  # how long what was published is kept for who looks back, whether or not anybody needs it
    abandon_after: float = 30 * 86_400.0  # when a subscription without a taker ends


class HomeUnreachable(PalioError):
    """A durable subscription whose home does not answer, or might be where nobody answers."""

    name: str
    missing: tuple[str, ...]

    def __init__(self, name: str, missing: tuple[str, ...]) -> None:
        brokers = ", ".join(missing)
        super().__init__(
            f"The durable subscription {name!r} may have its home at {brokers}, which cannot be reached now. "
            "Try again later, begin anew, or let the network forget a broker that is gone for good "
            "(`palio forget`).",
            name=name,
            missing=missing,
        )


class NotTaker(PalioError):
    """A request about a durable subscription by a session that is not its taker."""

    name: str

    def __init__(self, name: str) -> None:
        super().__init__(
            f"This session is not the taker of the durable subscription {name!r}; attach it first.", name=name
        )


class NotHome(PalioError):
    """A request about dead letters at a broker that is not the home of the subscription."""

    name: str

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The durable subscription {name!r} does not have its home at this broker; ask at its home.",
            name=name,
        )


class WrongAttachment(PalioError):
    """A wish about a durable subscription that cannot be granted."""

    setting: str

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"The setting {setting!r} cannot be so: {reason}", setting=setting)


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
    if patience is not None:
        times = (patience.acknowledge_within, patience.first_pause, patience.longest_pause)
        if not all(0.0 < one <= LONGEST_WAIT for one in times) or not 1 <= patience.in_flight <= MAX_IN_FLIGHT:
            raise WrongAttachment("patience", f"Its times are from 0 to {LONGEST_WAIT:,.0f} seconds.")
        if not 1 <= patience.attempts <= MAX_ATTEMPTS:
            raise WrongAttachment("patience", f"It has from 1 to {MAX_ATTEMPTS:,} attempts.")
    retry = attach.retry
    if retry is not None:
        pauses = (retry.first_pause, retry.longest_pause)
        if not all(one is None or 0.0 <= one <= LONGEST_WAIT for one in pauses):
            raise WrongAttachment("backoff", f"Its pauses are from 0 to {LONGEST_WAIT:,.0f} seconds.")
        if retry.attempts is not None and not 1 <= retry.attempts <= MAX_ATTEMPTS:
            raise WrongAttachment("attempts", f"They are from 1 to {MAX_ATTEMPTS:,}.")
    after = attach.after or {}
    if len(after) > MAX_ORIGINS or not all(0 <= sequence <= MAX_SEQUENCE for sequence in after.values()):
        raise WrongAttachment("after", f"It has up to {MAX_ORIGINS:,} origins, and sequences from 0 on.")


def require_delay(delay: float | None) -> None:
    """Raises `WrongAttachment` if that is no time after which something may come again."""
    if delay is not None and not 0.0 <= delay <= LONGEST_WAIT:
        raise WrongAttachment("delay", f"It is from 0 to {LONGEST_WAIT:,.0f} seconds.")


class UnknownBroker(PalioError):
    """A broker that cannot be forgotten: it was never heard of, or it is the one that is asked."""

    broker: str

    def __init__(self, broker: str) -> None:
        super().__init__(
            f"The broker {broker!r} cannot be forgotten here: this is it, or it was never heard of here. "
            "Look at the spelling, or ask another broker.",
            broker=broker,
        )


_IDENTITY = re.compile(r"[0-9a-f]+ (.*) ([0-9]+) [0-9]+", re.DOTALL)


def created_at(identity: str) -> tuple[int, str]:
    """What orders the subscriptions of one name by when they were created, by the clocks of their brokers.

    What no broker can have given comes before all others.
    """
    moment = identity.partition(" ")[0] if _IDENTITY.fullmatch(identity) else "-1"
    return int(moment, 16), identity


class Desk:
    """Effects and what follows when the store has completed them."""

    def __init__(
        self, broker: str, settings: DurableSettings, incarnation: int, scopes: Scopes | None = None
    ) -> None:
        self.broker = broker
        self.scopes = scopes or Scopes(on=False)
        self._incarnation = incarnation
        self.settings = settings
        self.now = 0.0
        self.effects: list[Any] = []
        self._token = 0
        self._then: dict[int, Callable[..., None]] = {}
        self._otherwise: dict[int, Callable[[str], None]] = {}
        self._after: dict[int, list[Callable[[], None]]] = {}  # what waits for the same, in its order

    def token(
        self, then: Callable[..., None] | None = None, otherwise: Callable[[str], None] | None = None
    ) -> int:
        """A token for an effect on the store; `then` is called when that is completed.

        `otherwise` is called if it cannot be done, with the reason.
        """
        self._token += 1
        if then is not None:
            self._then[self._token] = then
        if otherwise is not None:
            self._otherwise[self._token] = otherwise
        return self._token

    def after(self, token: int, then: Callable[[], None]) -> None:
        """Do something once the store has completed what has this token, which may be now."""
        if token in self._then:
            self._after.setdefault(token, []).append(then)
        else:
            then()

    def identity(self) -> str:
        """A text that no broker gives twice, and that tells when it was given (`created_at`)."""
        return f"{max(0, round(self.now * 1000)):x} {self.broker} {self._incarnation} {self.token()}"

    def called(self, name: str) -> str:
        """What its owner calls a durable subscription."""
        return name.partition(SEPARATOR)[2] or name if self.scopes.on else name

    def gave_before(self, identity: str) -> bool:
        """Whether this broker gave an identity before it began anew."""
        found = _IDENTITY.fullmatch(identity)
        return found is not None and found[1] == self.broker and int(found[2]) < self._incarnation

    def completed(self, token: int, *result: Any) -> None:
        """The store has completed something."""
        then = self._then.pop(token, None)
        self._otherwise.pop(token, None)
        if then is not None:
            then(*result)
        for one in self._after.pop(token, ()):
            one()

    def failed(self, token: int, reason: str) -> None:
        """The store could not do something."""
        self._then.pop(token, None)
        self._after.pop(token, None)
        otherwise = self._otherwise.pop(token, None)
        if otherwise is not None:
            otherwise(reason)

    def __len__(self) -> int:
        """How many effects on the store are waited for."""
        return len(self._then)

    def answer(self, session: str, answer: Answer | DurableAnswer) -> None:
        self.effects.append(Reply(session, answer))
