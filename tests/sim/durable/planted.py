"""Brokers with a planted fault: what each check of the oracle is there to catch.

A fault gets the effects of a broker before anybody sees them, and returns others. It is made anew for each
broker that begins: a crash takes what it knows.
"""

import msgspec

from palio.model.filter import Filter
from palio.protocol.durable.peers import Head, Told
from palio.protocol.durable.subscriptions import Acknowledged, Attached, Done, DurableReady
from palio.protocol.peers import Forward
from palio.protocol.requests import Ended, Published
from palio.routing.durable.effects import Append, Hand, Read, Remove, Spool, Trim
from palio.routing.effects import Reply, Send, SetTimer
from palio.routing.occurrences import Close, Stored
from palio.routing.router import Router

replace = msgspec.structs.replace


def spoilt(effect, change):
    """A `Hand` whose deliveries are changed; any other effect as it is."""
    if not isinstance(effect, Hand):
        return effect
    return replace(effect, deliveries=tuple(change(*delivery) for delivery in effect.deliveries))


class Planted(Router):
    """A router whose effects are spoilt."""

    def handle(self, message, source, now):
        return self.spoil(super().handle(message, source, now), now)

    def complete(self, messages, now):
        return self.spoil(super().complete(messages, now), now)

    def on_timer(self, name, now):
        return self.spoil(super().on_timer(name, now), now)

    def spoil(self, effects, now):
        return [other for effect in effects for other in self.spoil_one(effect, now)]

    def spoil_one(self, effect, now):
        raise NotImplementedError


class ConfirmsBeforeItWrites(Planted):
    def handle(self, message, source, now):
        if isinstance(message, Stored) and message.token in self.__dict__.setdefault("early", set()):
            return []
        effects = super().handle(message, source, now)
        for effect in list(effects):
            if isinstance(effect, Append):
                self.early.add(effect.token)
                effects += Router.handle(self, Stored(effect.token), "store", now)
        return effects

    def spoil_one(self, effect, now):
        return [effect]


class ForgetsAnEvent(Planted):
    def spoil_one(self, effect, now):
        if isinstance(effect, Send) and isinstance(effect.message, Forward):
            envelopes = tuple(one for one in effect.message.envelopes if one.sequence % 3)
            return [Send(effect.broker, Forward(envelopes))] if envelopes else []
        return [effect]


class AdvancesWithoutSpooling(Planted):
    """The position is on disk, what it stands for is not."""

    def spoil_one(self, effect, now):
        return [replace(effect, add=())] if isinstance(effect, Spool) else [effect]


class GivesUpAtOnce(Planted):
    """Everything is a dead letter before anybody has got it."""

    def spoil_one(self, effect, now):
        if isinstance(effect, Spool):
            return [replace(effect, add=(), dead=(*effect.dead, *effect.add))]
        return [] if isinstance(effect, Hand) else [effect]


class ForgetsAcknowledgements(Planted):
    def spoil_one(self, effect, now):
        return [replace(effect, remove=())] if isinstance(effect, Spool) else [effect]


class ForgetsTheLastAcknowledgement(Planted):
    """Of several that come together."""

    def handle(self, message, source, now):
        if isinstance(message, Acknowledged) and len(message.deliveries) > 1:
            effects = super().handle(replace(message, deliveries=message.deliveries[:-1]), source, now)
            return [*effects, Reply(source, Done(message.name, message.deliveries[-1:]))]
        return super().handle(message, source, now)

    def spoil_one(self, effect, now):
        return [effect]


class WritesAllAcknowledgementsButTheLast(Planted):
    def spoil_one(self, effect, now):
        if isinstance(effect, Spool) and len(effect.remove) > 1:
            return [replace(effect, remove=effect.remove[:-1])]
        return [effect]


class KeepsTheEpoch(Planted):
    """What passes a broker in another epoch still carries the one in which it was sent."""

    def handle(self, message, source, now):
        self.__dict__["carried"] = (
            {(one.origin, one.sequence): one.epoch for one in message.envelopes}
            if isinstance(message, Forward)
            else {}
        )
        return super().handle(message, source, now)

    def spoil_one(self, effect, now):
        carried = self.__dict__.get("carried")
        if not carried or not isinstance(effect, Send) or not isinstance(effect.message, Forward):
            return [effect]
        envelopes = [replace(one, epoch=carried[one.origin, one.sequence]) for one in effect.message.envelopes]
        return [Send(effect.broker, Forward(tuple(envelopes)))]


class DoesNotMark(Planted):
    def spoil_one(self, effect, now):
        return [spoilt(effect, lambda number, _, envelope: (number, 1, envelope))]


class ForgetsIds(Planted):
    def __init__(self, configuration, facts, recovered):
        super().__init__(configuration, facts, replace(recovered, recent=()))

    def spoil_one(self, effect, now):
        return [effect]


class ReadsEverything(Planted):
    def spoil_one(self, effect, now):
        return [replace(effect, filter=Filter.parse("n > 0"))] if isinstance(effect, Read) else [effect]


class TurnsRound(Planted):
    def spoil_one(self, effect, now):
        if isinstance(effect, Hand):
            return [replace(effect, deliveries=effect.deliveries[::-1])]
        return [effect]


class CountsDeliveriesAnew(Planted):
    def __init__(self, configuration, facts, recovered):
        anew = tuple(replace(one, next_delivery=1) for one in recovered.subscriptions)
        super().__init__(configuration, facts, replace(recovered, subscriptions=anew))

    def spoil_one(self, effect, now):
        return [effect]


class RenumbersRedeliveries(Planted):
    def spoil_one(self, effect, now):
        return [spoilt(effect, lambda number, attempt, what: (number + 1_000 * (attempt > 1), attempt, what))]


class TrimsEverything(Planted):
    def spoil_one(self, effect, now):
        return [effect, Trim(effect.envelopes[-1].sequence)] if isinstance(effect, Append) else [effect]


class NeverRemoves(Planted):
    def spoil_one(self, effect, now):
        return [replace(effect, name="-")] if isinstance(effect, Remove) else [effect]


class NeverSaysReady(Planted):
    def spoil_one(self, effect, now):
        ready = isinstance(effect, Reply) and isinstance(effect.answer, DurableReady)
        return [] if ready else [effect]


class NeverRests(Planted):
    def spoil(self, effects, now):
        return [*effects, SetTimer("nothing", now + 1.0)]


class HasNoLimit(Planted):
    def __init__(self, configuration, facts, recovered):
        durable = replace(configuration.durable, outbox=10_000, outbox_bytes=1 << 30)
        limitless = replace(configuration, durable=durable)
        super().__init__(limitless, facts, recovered)

    def spoil_one(self, effect, now):
        return [effect]


class HidesItsHistory(Planted):
    def spoil_one(self, effect, now):
        if isinstance(effect, Send) and isinstance(effect.message, Told):
            heads = tuple(Head(one.origin, one.head, one.head) for one in effect.message.heads)
            return [Send(effect.broker, replace(effect.message, heads=heads))]
        return [effect]


class KeepsGhosts(Planted):
    """Durable delivery does not hear of sessions that close."""

    def handle(self, message, source, now):
        if isinstance(message, Close):
            self._core.sessions.close(source)
            return []
        return super().handle(message, source, now)

    def spoil_one(self, effect, now):
        return [effect]


class TakesItForAnotherOne(Planted):
    def __init__(self, configuration, facts, recovered):
        others = tuple(
            replace(one, identity=f"{one.identity} {configuration.incarnation}")
            for one in recovered.subscriptions
        )
        super().__init__(configuration, facts, replace(recovered, subscriptions=others))

    def spoil_one(self, effect, now):
        return [effect]


class GoesOnAfterTheEnd(Planted):
    def spoil_one(self, effect, now):
        if isinstance(effect, Hand):
            self.__dict__.setdefault("handed", {})[effect.name] = effect
        if isinstance(effect, Reply) and isinstance(effect.answer, Ended):
            late = self.__dict__.get("handed", {}).get(effect.answer.handles[0])
            return [effect, late] if late is not None else [effect]
        return [effect]


class ChangesWhatWasSaid(Planted):
    def spoil_one(self, effect, now):
        def change(number, attempt, envelope):
            sequence = envelope.sequence + envelope.sequence % 2
            return number, attempt, replace(envelope, sequence=sequence)

        return [spoilt(effect, change)]


class Fails(Planted):
    def spoil_one(self, effect, now):
        if isinstance(effect, Reply) and isinstance(effect.answer, Attached):
            raise KeyError("planted")
        return [effect]


class ConfirmsTheWrongSequence(Planted):
    def spoil_one(self, effect, now):
        if isinstance(effect, Reply) and isinstance(effect.answer, Published):
            return [Reply(effect.session, replace(effect.answer, sequence=1))]
        return [effect]
