"""`Pusher`: webhooks. The consumer (taker) of a durable subscription that calls one for each delivery.

What the webhook has taken (2xx) is acknowledged, everything else rejected: durable delivery then tries it again
after a pause that doubles, and keeps it as a dead letter after the last attempt. While the webhook cannot be
reached, or says that it cannot go on (5xx, 429), one delivery at a time is tried, with pauses that double,
too, so that nobody is flooded who has trouble already. `410 Gone` ends the subscription, as its owner wishes.

A retroactive one is sent the current documents first. If that is interrupted it begins anew; what is published
meanwhile waits, and what of it is among these documents is acknowledged without being sent again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from palio.broker.documents.knowledge import LONGEST_WAIT, SelectionQuestion
from palio.broker.gateway.definitions import StoredDefinition
from palio.broker.gateway.modes import PushModes, require_mode
from palio.broker.gateway.sinks import Sinks
from palio.broker.gateway.visitor import Visitor
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.deliveries import Handed
from palio.protocol.durable.attempts import MAX_REASON
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Rejected, Taken
from palio.protocol.envelope import Envelope
from palio.routing.documents.beginning import RetroactivePosition

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

GONE = 410
_TROUBLE = frozenset({429, *range(500, 600)})
# Seconds for which a webhook may make the broker wait by its rate.
_SLOWEST = 60.0
# Seconds until the broker is asked again for a subscription that it refuses to hand out.
_AGAIN = 5.0


class PushStatistics(msgspec.Struct, frozen=True):
    """How a webhook is doing. `failed` counts attempts, by reason."""

    state: str
    pushed: int
    failed: dict[str, int]
    problem: str | None


@dataclass(eq=False, repr=False)
class Pusher:
    """Calls one webhook. `start` and `stop` it; `gone` is called if the webhook wants no more."""

    _broker: BrokerServer
    _sinks: Sinks
    _modes: PushModes
    _kept: StoredDefinition
    _filter: Filter
    _counts: Counter[str]  # of all pushers together
    _gone: Callable[[StoredDefinition], None]
    _begun: Callable[[tuple[str, str], RetroactivePosition], Awaitable[None]]

    def __post_init__(self) -> None:
        self._settings = self._broker.settings.gateway
        self._task: asyncio.Task[None] | None = None
        self._streak = 0  # how often in a row there was trouble
        self._next = 0.0  # when the next request may go out, by the webhook's rate
        self._state = "starting"
        self._problem: str | None = None
        self._pushed = 0
        self._failed: Counter[str] = Counter()
        self._headers = _own_headers(self._kept)

    def statistics(self) -> PushStatistics:
        return PushStatistics(self._state, self._pushed, dict(self._failed), self._problem)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._state not in ("gone", "taken over"):
            pause = self._pause()
            try:
                visitor = await Visitor.enter(
                    self._broker, f"push-{self._kept.definition.id}", acting_for=self._kept.owner
                )
                try:
                    await self._visit(visitor)
                finally:
                    visitor.leave("The webhook is left alone for a while.")
                pause = self._pause()
            except PalioError as problem:
                self._state, self._problem = "waiting", str(problem)
                pause = max(pause, _AGAIN)
            except Exception:
                self._broker.log.exception("An event could not be pushed.")
                mistake = "The broker could not push an event; this is its mistake."
                self._state, self._problem = "waiting", mistake
                pause = max(pause, _AGAIN)
            if self._state not in ("gone", "taken over"):
                await asyncio.sleep(pause)
        if self._state == "gone":
            self._gone(self._kept)

    def _pause(self) -> float:
        if not self._streak:
            return 0.0
        settings = self._settings
        doubled = settings.push_first_pause * 2.0 ** min(self._streak - 1, 32)
        return float(min(doubled, settings.push_longest_pause))

    async def _visit(self, visitor: Visitor) -> None:
        """Take deliveries and push them, until there is trouble."""
        await visitor.ask(self._attach())
        self._state = "trying again" if self._streak else "pushing"
        if not await self._begin(visitor):
            return
        under_way: set[asyncio.Task[None]] = set()
        hearing = asyncio.ensure_future(visitor.take())
        careful = bool(self._streak)
        try:
            while True:
                done, _ = await asyncio.wait({hearing, *under_way}, return_when=asyncio.FIRST_COMPLETED)
                for task in done & under_way:
                    task.result()  # which is nothing, unless the broker ended the conversation
                under_way -= done
                if self._state == "gone" or (self._streak and not under_way and done != {hearing}):
                    return
                if careful and not self._streak:
                    careful, self._state = False, "pushing"
                    visitor.say(self._attach())
                if hearing in done:
                    message = hearing.result()
                    if isinstance(message, Taken):
                        self._state, self._problem = "taken over", "Another client takes these events now."
                        return
                    if isinstance(message, Handed) and (careful or not self._streak):
                        for number, _, envelope in message.deliveries:
                            if self._kept.begun is not None and self._kept.begun.has(envelope):
                                visitor.say(Acknowledged(self._kept.definition.id, (number,)))
                                continue
                            under_way.add(asyncio.ensure_future(self._deliver(visitor, number, envelope)))
                    hearing = asyncio.ensure_future(visitor.take())
        finally:
            for task in (hearing, *under_way):
                task.cancel()
            await asyncio.gather(hearing, *under_way, return_exceptions=True)

    async def _begin(self, visitor: Visitor) -> bool:
        """Push the current documents, if that is wanted and not done. Returns whether it is done."""
        definition = self._kept.definition
        if not definition.config.retroactive or self._kept.begun is not None:
            return True
        knowledge, principal = self._broker.documents.knowledge, visitor.connection.principal
        position = await knowledge.beginnings.position(principal.own(definition.id), LONGEST_WAIT)
        after: str | None = None
        while True:
            question = SelectionQuestion(after=after, upto=position.position)
            page = await knowledge.select(question, self._filter, principal)
            for one in page.documents:
                # One that the webhook refuses for what it is does not keep the others back.
                if await self._push(one.envelope) is not None and (self._streak or self._state == "gone"):
                    return False
            if page.onward is None:
                break
            after = page.onward
        await self._begun(self._kept.key, position)
        self._kept = msgspec.structs.replace(self._kept, begun=position)
        return True

    def _attach(self) -> Attach:
        settings, definition = self._settings, self._kept.definition
        config = definition.config
        several = 1 if self._kept.rate is not None else config.in_flight or settings.push_in_flight
        in_flight = 1 if self._streak else several
        patience = Patience(
            in_flight=in_flight,
            acknowledge_within=2 * _SLOWEST + settings.push_within,
            first_pause=settings.push_first_pause,
            longest_pause=settings.push_longest_pause,
            attempts=settings.push_attempts,
        )
        # Whoever changes the filter elsewhere means it.
        return Attach(
            definition.id, self._filter, in_flight=in_flight, patience=patience, as_is=True, retry=config.retry
        )

    async def _deliver(self, visitor: Visitor, number: int, envelope: Envelope) -> None:
        name = self._kept.definition.id
        problem = await self._push(envelope)
        if problem is None:
            visitor.say(Acknowledged(name, (number,)))
        else:
            visitor.say(Rejected(name, (number,), reason=problem[:MAX_REASON]))

    async def _push(self, envelope: Envelope) -> str | None:
        """Call the webhook. Returns why it did not take the event, if so."""
        await self._keep_to_rate()
        definition = self._kept.definition
        assert definition.sink is not None
        try:
            message = require_mode(self._modes, definition.config.contentmode)(definition, envelope)
            answer = await self._sinks.send(
                definition.sink, {**self._headers, **dict(message.headers)}, message.body
            )
        except PalioError as problem:
            self._streak += 1
            return self._note(type(problem).__name__, str(problem))
        if answer.is_good:
            self._streak = 0
            self._pushed += 1
            self._counts["taken"] += 1
            self._problem = None
            return None
        if answer.status == GONE:
            self._state = "gone"
        elif answer.status in _TROUBLE:
            self._streak += 1
        return self._note(str(answer.status), f"The webhook answered with {answer.status}.")

    async def _keep_to_rate(self) -> None:
        rate = self._kept.rate
        if rate is not None:
            now = asyncio.get_running_loop().time()
            self._next = max(now, self._next + min(60.0 / rate, _SLOWEST))
            await asyncio.sleep(self._next - now)

    def _note(self, reason: str, sentence: str) -> str:
        self._failed[reason] += 1
        self._counts[reason] += 1
        if self._problem is None:
            extra = {"subscription": self._kept.definition.id, "reason": sentence}
            self._broker.log.warning("A webhook did not take an event.", extra=extra)
        self._problem = sentence
        return sentence


def _own_headers(kept: StoredDefinition) -> Mapping[str, str]:
    definition = kept.definition
    headers = dict(definition.protocolsettings.headers)
    if definition.sinkcredential is not None:
        headers["Authorization"] = f"Bearer {definition.sinkcredential.accesstoken}"
    return headers
