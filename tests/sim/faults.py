"""Brokers with a fault: routers whose effects are tampered with before anyone sees them.

A fault is made anew for each network, and is told each broker's name with its effects.
"""

from collections.abc import Callable

import msgspec

from palio.model.notification import Notification
from palio.protocol.peers import Acknowledge, Forward, Update
from palio.protocol.requests import Ended, Ready, Release, Subscribe
from palio.routing.effects import CloseLink, Deliver, Reply, Send
from palio.routing.occurrences import LinkDown, LinkUp
from palio.routing.router import Router

replace = msgspec.structs.replace


def with_fault(make_fault: Callable[[], object]):
    """A maker of routers that share one fault."""
    fault = make_fault()

    class Faulty(Router):
        def handle(self, message, source, now):
            return fault.spoil(super().handle(message, source, now), self.broker, message)

    return Faulty


class Fault:
    """Spoils the effect with this number among those that qualify; without a number, all of them."""

    def __init__(self, number: int | None = 0):
        self.number = number
        self.seen = 0

    def qualifies(self, effect) -> bool:
        raise NotImplementedError

    def spoilt(self, effect) -> list:
        raise NotImplementedError

    def spoil(self, effects, broker, message):
        found = []
        for effect in effects:
            if self.qualifies(effect):
                chosen = self.number is None or self.seen == self.number
                self.seen += 1
                found += self.spoilt(effect) if chosen else [effect]
            else:
                found.append(effect)
        return found


def is_forward(effect) -> bool:
    return isinstance(effect, Send) and isinstance(effect.message, Forward)


def is_update(effect) -> bool:
    return isinstance(effect, Send) and isinstance(effect.message, Update)


class OnForwards(Fault):
    def qualifies(self, effect):
        return is_forward(effect)


class OnDeliveries(Fault):
    def qualifies(self, effect):
        return isinstance(effect, Deliver)


class LosesForward(OnForwards):
    def spoilt(self, effect):
        return []


class RepeatsForward(OnForwards):
    def spoilt(self, effect):
        return [effect, effect]


class MisroutesForward(OnForwards):
    """Sends a notification to another neighbour than the one that it is for."""

    def __init__(self):
        super().__init__(None)
        self.neighbours = {}

    def spoil(self, effects, broker, message):
        self.known = self.neighbours.setdefault(broker, {})
        self.known.update({effect.broker: None for effect in effects if isinstance(effect, Send)})
        return super().spoil(effects, broker, message)

    def spoilt(self, effect):
        others = [name for name in self.known if name != effect.broker]
        return [replace(effect, broker=others[0])] if others else [effect]


class SwapsForwards(OnForwards):
    """Keeps each notification for a neighbour back until the next one for it."""

    def __init__(self):
        super().__init__(None)
        self.kept = {}

    def spoil(self, effects, broker, message):
        self.broker = broker
        return super().spoil(effects, broker, message)

    def spoilt(self, effect):
        key = (self.broker, effect.broker)
        if key in self.kept:
            return [effect, self.kept.pop(key)]
        self.kept[key] = effect
        return []


class RepeatsDelivery(OnDeliveries):
    def spoilt(self, effect):
        return [effect, effect]


class DeliversToWrongSession(OnDeliveries):
    def spoilt(self, effect):
        return [replace(effect, session="somebody")]


class ForgetsHandle(OnDeliveries):
    def spoilt(self, effect):
        return [replace(effect, handles=effect.handles[1:])]


class AltersContent(OnDeliveries):
    def spoilt(self, effect):
        first, *others = effect.envelopes
        return [replace(effect, envelopes=(replace(first, notification=Notification({"a": 1})), *others))]


class Invents(OnDeliveries):
    def spoilt(self, effect):
        return [effect, replace(effect, envelopes=(replace(effect.envelopes[0], sequence=10_000),))]


class DeliversLate(Fault):
    """Keeps a session's deliveries back until one of its subscriptions has ended."""

    def __init__(self):
        super().__init__(None)
        self.kept = {}

    def spoil(self, effects, broker, message):
        found = []
        for effect in effects:
            if isinstance(effect, Deliver):
                self.kept.setdefault(effect.session, []).append(effect)
                continue
            found.append(effect)
            if isinstance(effect, Reply) and isinstance(effect.answer, Ended) and effect.answer.handles:
                found += self.kept.pop(effect.session, [])
        return found


class LosesUpdate(Fault):
    def qualifies(self, effect):
        return is_update(effect)

    def spoilt(self, effect):
        return []


class ForgetsUncovering(Fault):
    """Removes a row, and does not send what it hid."""

    def __init__(self):
        super().__init__(None)

    def qualifies(self, effect):
        return is_update(effect) and effect.message.remove and effect.message.add

    def spoilt(self, effect):
        return [replace(effect, message=replace(effect.message, add=()))]


class KeepsRows(Fault):
    """Never tells anyone that a row is gone."""

    def __init__(self):
        super().__init__(None)

    def qualifies(self, effect):
        return is_update(effect) and effect.message.remove

    def spoilt(self, effect):
        return [replace(effect, message=replace(effect.message, remove=()))]


class SaysReadyTooEarly(Fault):
    def __init__(self):
        super().__init__(None)

    def spoil(self, effects, broker, message):
        found = [one for one in effects if not (isinstance(one, Reply) and isinstance(one.answer, Ready))]
        if isinstance(message, Subscribe):
            reply = next(one for one in found if isinstance(one, Reply))
            found.append(Reply(reply.session, Ready(message.handle)))
        return found


class NeverSaysReady(Fault):
    def __init__(self):
        super().__init__(None)

    def qualifies(self, effect):
        return isinstance(effect, Reply) and isinstance(effect.answer, Ready)

    def spoilt(self, effect):
        return []


class EndsWrongHandles(Fault):
    def qualifies(self, effect):
        return isinstance(effect, Reply) and isinstance(effect.answer, Ended) and effect.answer.handles

    def spoilt(self, effect):
        return [replace(effect, answer=Ended(effect.answer.handles[1:]))]


class NeverRests(Fault):
    """Answers every acknowledgement with an acknowledgement."""

    def spoil(self, effects, broker, message):
        self.neighbours = getattr(self, "neighbours", {})
        for effect in effects:
            if isinstance(effect, Send):
                self.neighbours[broker] = effect.broker
        if isinstance(message, Acknowledge) and broker in self.neighbours:
            return [*effects, Send(self.neighbours[broker], Acknowledge(0))]
        return effects


class RefusesLink(OnForwards):
    def spoilt(self, effect):
        return [effect, CloseLink(effect.broker, "No.")]


class IgnoresReleases(Router):
    """Answers that a subscription has ended, and goes on with it."""

    def handle(self, message, source, now):
        if isinstance(message, Release):
            return [Reply(source, Ended((message.handle,)))]
        return super().handle(message, source, now)


class Panics(OnForwards):
    """Once a link is lost, a broker forwards nothing on the others until one comes up."""

    def __init__(self):
        super().__init__(None)
        self.panicking = {}

    def spoil(self, effects, broker, message):
        if isinstance(message, LinkDown | LinkUp):
            self.panicking[broker] = isinstance(message, LinkDown)
        return super().spoil(effects, broker, message) if self.panicking.get(broker) else effects

    def spoilt(self, effect):
        return []


class Crashes(OnForwards):
    def spoilt(self, effect):
        raise ZeroDivisionError("one by nothing")
