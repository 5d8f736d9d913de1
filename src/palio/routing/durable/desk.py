"""What the parts of durable delivery at one broker share: settings, the moment, and where effects are put."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from palio.model.amounts import Positive, Seconds, SecondsOrNone
from palio.model.errors import PalioError
from palio.protocol.durable.retry import Patience
from palio.protocol.vocabulary import Answer, DurableAnswer
from palio.routing.durable.effects import SaveFact
from palio.routing.durable.facts import Fact
from palio.routing.effects import Reply
from palio.routing.scopes import SEPARATOR, Scopes

# How many ticks may pass until a question is answered, or a way known; then it is tried again, or given up.
ANSWER_WITHIN = 10


class DurableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How durable delivery works at a broker. Times are in seconds."""

    patience: Patience = Patience()
    page: Positive = 1_024  # notifications fetched at a time
    # Deliveries kept for one subscription, and their bytes; what is beyond stays in the origins' journals.
    outbox: Positive = 10_000
    outbox_bytes: Positive = 32 << 20
    # The same of all subscriptions of one owner at this home, which share them equally.
    outboxes: Positive = 100_000
    outboxes_bytes: Positive = 128 << 20
    # The same of its dead letters; while there is no room, nothing is given up: it comes again and again.
    dead_letters: Positive = 10_000
    dead_letters_bytes: Positive = 32 << 20
    tick: Seconds = 1.0  # how often progress is told, and what was lost asked for again
    settle_within: Seconds = 0.2  # how long to wait for further changes of the network before catching up
    retention: Seconds = 3_600.0  # how long the ids of notifications are remembered
    remembered: Positive = 250_000  # how many of them at the most: some 60 MB
    # How long what was published is kept for who looks back, whether or not anybody needs it.
    keep: SecondsOrNone = 0.0
    abandon_after: Seconds = 30 * 86_400.0  # when a subscription without a taker ends
    # How long a broker that is away is waited for before it is forgotten; 0: until an operator says so.
    forget_after: SecondsOrNone = 0.0


class UnknownBroker(PalioError):
    """A broker that cannot be forgotten: it was never heard of, or it is the one that is asked."""

    broker: str
    sentence = (
        "The broker {broker!r} cannot be forgotten here: this is it, or it was never heard of here. Look at "
        "the spelling, or ask another broker."
    )


_IDENTITY = re.compile(r"[0-9a-f]+ (.*) ([0-9]+) [0-9]+", re.DOTALL)


def created_at(identity: str) -> tuple[int, str]:
    """What orders the subscriptions of one name by when they were created, by the clocks of their brokers.

    What no broker can have given comes before all others.
    """
    moment = identity.partition(" ")[0] if _IDENTITY.fullmatch(identity) else "-1"
    return int(moment, 16), identity


class Desk:
    """Effects of the message that is being handled, and what follows when the store has completed them."""

    def __init__(
        self,
        broker: str,
        settings: DurableSettings,
        incarnation: int,
        scopes: Scopes | None = None,
        opened_before: int | None = None,
    ) -> None:
        """`opened_before` is the last incarnation that the disk knows; if not given, the one before this."""
        self.broker = broker
        self._opened_before = incarnation - 1 if opened_before is None else opened_before
        self.came_back_older = False  # whether it is known that the disk does not know all that there was
        self.scopes = scopes or Scopes(on=False)
        self._incarnation = incarnation
        self.settings = settings
        self.now = 0.0
        self.effects: list[Any] = []
        self._token = 0
        self._then: dict[int, Callable[..., None]] = {}
        self._otherwise: dict[int, Callable[[str], None]] = {}
        self._of_deliveries: set[int] = set()
        self._after: dict[int, list[Callable[[], None]]] = {}  # what waits for the same, in its order

    def token(
        self,
        then: Callable[..., None] | None = None,
        otherwise: Callable[[str], None] | None = None,
        *,
        of_deliveries: bool = False,
    ) -> int:
        """A token for an effect on the store; `then` is called when that is completed.

        `otherwise` is called if it cannot be done, with the reason. After what was only written of deliveries
        (`of_deliveries`) others go out, at most: whatever else waits may be dealt with before or after it.
        """
        self._token += 1
        if then is not None:
            self._then[self._token] = then
        if otherwise is not None:
            self._otherwise[self._token] = otherwise
        if of_deliveries:
            self._of_deliveries.add(self._token)
        return self._token

    def is_of_deliveries(self, token: int) -> bool:
        """Whether it was given for what was only written of deliveries, and that is not completed."""
        return token in self._of_deliveries

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
        """Whether this broker gave an identity before it began anew, and its disk would know what became of it.

        A disk that came back older does not.
        """
        found = _IDENTITY.fullmatch(identity)
        if found is None or found[1] != self.broker or self.came_back_older:
            return False
        return int(found[2]) <= self._opened_before

    def completed(self, token: int, *result: Any) -> None:
        """Handles a completion of the store: does what waited for it."""
        then = self._then.pop(token, None)
        self._otherwise.pop(token, None)
        self._of_deliveries.discard(token)
        if then is not None:
            then(*result)
        for one in self._after.pop(token, ()):
            one()

    def failed(self, token: int, reason: str) -> None:
        """Handles a write or a read that the store could not do."""
        self._then.pop(token, None)
        self._of_deliveries.discard(token)
        self._after.pop(token, None)
        otherwise = self._otherwise.pop(token, None)
        if otherwise is not None:
            otherwise(reason)

    def __len__(self) -> int:
        """How many effects on the store are waited for."""
        return len(self._then)

    def save(self, fact: Fact, value: int | None, then: Callable[[], None] | None = None) -> None:
        """Remember a fact for ever, or (None) forget it; `then` is called when that is on disk."""
        self.effects.append(SaveFact(self.token(then), fact, value))

    def answer(self, session: str, answer: Answer | DurableAnswer) -> None:
        self.effects.append(Reply(session, answer))
