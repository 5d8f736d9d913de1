"""`SimulatedNetwork`: brokers, links and a queue of events.

The shell around the routing core that has no clock.

Everything that happens is an event in one queue, ordered by time and then by the number that it was given
when it was put there. Handling an event means: one broker handles one message or timer, and the effects that
it returns are carried out at once, in their order. Nothing else ever touches a broker.

Invariants.

- A link is first in, first out: its latency does not change, time does not run backwards, and of events at
  the same time the older one comes first.
- What is on a link when it goes down is lost. Each line (one direction of a link) has an epoch, which is in
  every event that it carries; a message of an earlier epoch is dropped where it arrives.
- Clients are where their access broker is: a request is handled at the time at which it is made, answers and
  deliveries arrive at the moment they are given.
- No event depends on the order of a set or on the address of an object, so a run is repeated exactly.

There is one event per message, and large networks have millions: events are plain tuples, and counts are kept
in the loop that handles them. The steps of a script are in order and older than whatever follows from them, so
they need not be in the queue: the next one comes before all events that are not earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import msgspec

from palio.protocol.envelope import Envelope
from palio.protocol.peers import Forward, Interest, Update
from palio.routing.effects import CloseLink, Deliver, Effect, Reply, Send, SetTimer
from palio.routing.occurrences import LinkDown, LinkUp, Message
from palio.sim.clients import ClientStep, LinkStep, Phase
from palio.sim.edge_history import BrokerAnswer, ClientRequest, Delivery, Disturbance, History
from palio.sim.topologies import Layout

if TYPE_CHECKING:
    from palio.routing.router import Router
    from palio.sim.trace import RunTrace

# A run that handles so many messages per broker and step of its script will not come to rest.
_MOST_MESSAGES_PER_STEP = 50


@dataclass(eq=False, slots=True)
class NetworkLine:
    """One direction of a link."""

    link: int
    source: str
    target: NetworkStation
    cost: float
    latency: float
    epoch: int = 0
    up: bool = False
    # How many messages went here, and how many notifications in forwards.
    updates: int = 0
    forwards: int = 0
    notifications: int = 0
    others: dict[type, int] = field(default_factory=dict)  # by type

    @property
    def messages(self) -> dict[type, int]:
        """How many messages went here, by type."""
        common = {Update: self.updates, Forward: self.forwards}
        return self.others | {kind: number for kind, number in common.items() if number}


class NetworkStation:
    """A broker and the lines that lead away from it."""

    __slots__ = ("handle", "lines", "name", "router", "timers")

    def __init__(self, name: str, router: Router) -> None:
        self.name = name
        self.router = router
        self.handle: Callable[[Message, str, float], list[Effect]] = router.handle
        self.lines: dict[str, NetworkLine] = {}
        self.timers: dict[str, int] = {}


class TrafficCounts(msgspec.Struct, eq=False):
    """What updates said and what became of notifications; how many messages there were, each line knows."""

    rows_added: int = 0
    rows_removed: int = 0
    advertisements_added: int = 0
    advertisements_removed: int = 0
    advertisement_messages: int = 0  # updates that carry advertisements only
    advertisement_cost: float = 0.0
    wasted_forwards: int = 0


# An event: time, number, and either (line, message, epoch), (station, message, source) or a timer's
# (station, number, name). They are of several types in one place for speed; `Any` is the price.
_Event = tuple[float, int, Any, Any, Any]


class SimulatedNetwork:
    """A network of brokers that can be taken through the phases of a script."""

    def __init__(
        self, layout: Layout, make_router: Callable[[str], Router], trace: RunTrace | None = None
    ) -> None:
        self.layout = layout
        names = [f"b{number}" for number in range(layout.size)]
        self.stations = [NetworkStation(name, make_router(name)) for name in names]
        self.lines: list[tuple[NetworkLine, NetworkLine]] = []
        for number, link in enumerate(layout.links):
            one, other = self.stations[link.one], self.stations[link.other]
            there = one.lines[other.name] = NetworkLine(number, one.name, other, link.cost, link.latency)
            back = other.lines[one.name] = NetworkLine(number, other.name, one, link.cost, link.latency)
            self.lines.append((there, back))
        self.history = History()
        self.counts = TrafficCounts()
        self.trace = trace
        self.now = 0.0
        self.moment = 0
        self._queue: list[_Event] = []
        self._number = 0
        self._disturbed: dict[int, int] = {}  # links that are missing or were since the last rest: from when

    @property
    def handled(self) -> int:
        """How many messages and timers the brokers have handled; a rest is a moment in which none did."""
        return self.moment - len(self.history.rests)

    def traffic(self, *kinds: type) -> tuple[int, float]:
        """How many messages of these types (without any: of all) went over links, and at what cost."""
        messages, cost = 0, 0.0
        for line in (line for pair in self.lines for line in pair):
            count = sum(number for kind, number in line.messages.items() if not kinds or kind in kinds)
            messages += count
            cost += count * line.cost
        return messages, cost

    def forwards(self) -> tuple[int, float]:
        """How many notifications went over all links, and at what cost if each had gone alone."""
        lines = [line for pair in self.lines for line in pair]
        return (
            sum(line.notifications for line in lines),
            sum(line.notifications * line.cost for line in lines),
        )

    @property
    def is_whole(self) -> bool:
        """Whether all links are up."""
        return all(there.up for there, _ in self.lines)

    # The script

    def play(self, phase: Phase) -> None:
        """Take all steps of a phase and go on until the network is at rest.

        A broker that raises an error, whichever, ends the run: that is a finding, like everything else that
        is wrong with brokers, and can be shortened like it.
        """
        if self.history.is_broken:
            return
        limit = self.moment + _MOST_MESSAGES_PER_STEP * (len(self.stations) + 10) * (len(phase.steps) + 10)
        try:
            self._work(phase, limit)
        except Exception as problem:  # noqa: BLE001
            place = extract_tb(problem.__traceback__)[-1]
            self.history.crash = f"{type(problem).__name__}: {problem} ({place.name}, line {place.lineno})"
            self._queue.clear()
        self.moment += 1
        self.history.rests.append(self.moment)
        for link, since in list(self._disturbed.items()):
            if self.lines[link][0].up:
                self.history.disturbances.append(Disturbance(since, self.moment, link))
                del self._disturbed[link]

    def finish(self) -> None:
        """No more phases: what is disturbed now stays so."""
        for link, since in self._disturbed.items():
            self.history.disturbances.append(Disturbance(since, self.moment + 1, link))

    # The queue

    def _put(self, time: float, first: Any, second: Any, third: Any) -> None:
        self._number += 1
        heappush(self._queue, (time, self._number, first, second, third))

    def _work(self, phase: Phase, limit: int) -> None:
        queue, history, counts, trace = self._queue, self.history, self.counts, self.trace
        last_seen = history.last_seen
        begin, initial = self.now, phase.name == "links"
        steps = iter(phase.steps)
        step = next(steps, None)
        step_time = inf if step is None else begin + step.time
        while queue or step is not None:
            if self.moment > limit:
                left = len(queue) + (step is not None) + sum(1 for _ in steps)
                history.unquiet = f"after {self.moment:,} messages there are still {left:,} under way"
                queue.clear()
                return
            if step is not None and (not queue or step_time <= queue[0][0]):
                self.now = step_time
                if isinstance(step, LinkStep):
                    self._link_step(step, initial=initial)
                else:
                    self._client_step(step)
                step = next(steps, None)
                step_time = inf if step is None else begin + step.time
                continue
            time, _, first, second, third = heappop(queue)
            self.now = time
            if first.__class__ is NetworkLine:
                if first.epoch != third:
                    self._lose(second)
                    continue
                station, source, message = first.target, first.source, second
            elif second.__class__ is int:
                self._timer(first, second, third)
                continue
            else:
                station, message, source = first, second, third
            self.moment = moment = self.moment + 1
            if trace is not None:
                trace.note(moment, time, station.name, source, message)
            effects = station.handle(message, source, time)
            if message.__class__ is Forward:
                envelopes = message.envelopes
                for envelope in envelopes:
                    last_seen[envelope.origin, envelope.sequence] = moment
                if not effects:
                    counts.wasted_forwards += len(envelopes)
                elif len(envelopes) > 1:
                    counts.wasted_forwards += _wasted(envelopes, effects)
            if effects:
                self._carry_out(station, effects)

    def _handle(self, station: NetworkStation, message: Message, source: str) -> None:
        self.moment += 1
        if self.trace is not None:
            self.trace.note(self.moment, self.now, station.name, source, message)
        self._carry_out(station, station.handle(message, source, self.now))

    def _client_step(self, step: ClientStep) -> None:
        station = self.stations[step.broker]
        self.history.requests.append(
            ClientRequest(self.moment + 1, self.now, station.name, step.session, step.message)
        )
        self._handle(station, step.message, step.session)

    def _timer(self, station: NetworkStation, number: int, name: str) -> None:
        if station.timers.get(name) != number:
            return  # it was cancelled, or set anew
        del station.timers[name]
        self.moment += 1
        if self.trace is not None:
            self.trace.note(self.moment, self.now, station.name, "timer", name)
        self._carry_out(station, station.router.on_timer(name, self.now))

    # Links

    def _link_step(self, step: LinkStep, *, initial: bool) -> None:
        link = self.layout.links[step.link]
        there, back = self.lines[step.link]
        if there.up == step.up:
            return
        for line in (there, back):
            line.epoch += 1
            line.up = step.up
        if not initial:
            self._disturb(step.link)
        one, other = back.target, there.target
        message: Message
        other_message: Message
        if step.up:
            message, other_message = LinkUp(link.kind, link.cost), LinkUp(link.other_kind, link.cost)
        else:
            message = other_message = LinkDown(step.orderly)
        self._handle(one, message, other.name)
        if step.delay:
            self._put(self.now + step.delay, other, other_message, one.name)
        else:
            self._handle(other, other_message, one.name)

    def _lose(self, message: Any) -> None:
        """A message was on a link that is gone; a notification in it was under way up to now."""
        if message.__class__ is Forward:
            for envelope in message.envelopes:
                self.history.last_seen[envelope.origin, envelope.sequence] = self.moment

    def _disturb(self, link: int) -> None:
        self._disturbed.setdefault(link, self.moment + 1)

    # Effects

    def _carry_out(self, station: NetworkStation, effects: list[Effect]) -> None:
        now = self.now
        effect: Any
        for effect in effects:
            kind = effect.__class__
            if kind is Send:
                line = station.lines[effect.broker]
                message = effect.message
                what = message.__class__
                if what is Update:
                    line.updates += 1
                    self._count_update(message, line.cost)
                elif what is Forward:
                    line.forwards += 1
                    line.notifications += len(message.envelopes)
                else:
                    line.others[what] = line.others.get(what, 0) + 1
                    if what is Interest:
                        self._count_update(message.update, line.cost)
                if line.up:
                    self._number = number = self._number + 1
                    heappush(self._queue, (now + line.latency, number, line, message, line.epoch))
            elif kind is Deliver:
                self.history.deliveries += [
                    Delivery(self.moment, now, effect.session, envelope, effect.handles)
                    for envelope in effect.envelopes
                ]
                if self.trace is not None:
                    self.trace.note(self.moment, now, station.name, effect.session, effect)
            elif kind is Reply:
                self.history.answers.append(BrokerAnswer(self.moment, now, effect.session, effect.answer))
                if self.trace is not None:
                    self.trace.note(self.moment, now, station.name, effect.session, effect.answer)
            else:
                self._carry_out_rarely(station, effect)

    def _carry_out_rarely(self, station: NetworkStation, effect: Effect) -> None:
        match effect:
            case SetTimer(name, at):
                self._number += 1
                station.timers[name] = self._number
                heappush(self._queue, (max(at, self.now), self._number, station, self._number, name))
            case CloseLink(broker, reason):
                self.history.refused_links.append((station.name, broker, reason))
                self._close(station, broker)

    def _close(self, station: NetworkStation, neighbour: str) -> None:
        """A broker will not use a link: nothing more goes over it, and the other end finds out.

        What the broker said before, its reason for instance, still arrives.
        """
        line = station.lines[neighbour]
        back = line.target.lines[station.name]
        if line.up:
            line.up = back.up = False
            back.epoch += 1
            self._disturb(line.link)
            self._put(self.now + line.latency, line.target, LinkDown(), station.name)

    def _count_update(self, update: Update, cost: float) -> None:
        counts = self.counts
        counts.rows_added += len(update.add)
        counts.rows_removed += len(update.remove)
        if update.advertise or update.withdraw:
            counts.advertisements_added += len(update.advertise)
            counts.advertisements_removed += len(update.withdraw)
            if not (update.add or update.remove):
                counts.advertisement_messages += 1
                counts.advertisement_cost += cost


def _wasted(envelopes: tuple[Envelope, ...], effects: list[Effect]) -> int:
    """How many of the notifications went neither to a session nor to another broker."""
    used: set[tuple[str, int]] = set()
    for effect in effects:
        if isinstance(effect, Deliver):
            used.update((one.origin, one.sequence) for one in effect.envelopes)
        elif isinstance(effect, Send) and isinstance(effect.message, Forward):
            used.update((one.origin, one.sequence) for one in effect.message.envelopes)
    return sum((one.origin, one.sequence) not in used for one in envelopes)
