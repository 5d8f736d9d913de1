"""`World`: brokers with disks and clocks, links and clients, moved on by one queue of events.

Everything is an event in one queue, ordered by time and then by number. Handling one is: a broker handles a
message, a timer or the news that something is on disk, and the effects that it returns are carried out one by
one. A crash may come before or after any of them.

What is drawn by luck while the world runs (how long a client thinks, for instance) depends on the seed and on
what it is about, not on what was drawn before: a run with fewer steps is otherwise the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from heapq import heappop, heappush
from math import inf
from traceback import extract_tb
from typing import Any
from zlib import crc32

import msgspec

from palio.routing.configuration import Configuration
from palio.routing.documents.current import with_documents
from palio.routing.durable.alarm import ABANDON
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import (
    Append,
    Hand,
    HasLeft,
    ReportForgotten,
    ReportGap,
    Spool,
    StoreEffect,
    Trim,
)
from palio.routing.effects import CloseLink, Deliver, Reply, Send, SetTimer
from palio.routing.facts import Facts
from palio.routing.occurrences import Close, LinkDown, LinkUp, Open, Stored, StoreMessage
from palio.routing.overlay.effects import OverlayEvent
from palio.routing.router import Router
from palio.sim.faults.company import Company
from palio.sim.faults.departures import depart, end_departure
from palio.sim.faults.disk import Disk
from palio.sim.faults.inspection import MOST_EVENTS, check_epochs, check_trim, describe_write, look
from palio.sim.faults.reach import FaultReach
from palio.sim.faults.record import FaultRecord, number_of
from palio.sim.faults.station import REDIAL, FaultyStation, Wire
from palio.sim.topologies import Layout

RouterMaker = Callable[..., Router]

_MOST_TOGETHER = 8  # writes that reach a disk together
_FAR = 3_600.0  # seconds; what is still to happen that much later is of no interest
_LOOK_EVERY = 16  # messages between two looks at what is in memory


class World:
    """Brokers, links and time. Clients are told what concerns them by `clients`."""

    most_events = MOST_EVENTS

    def __init__(
        self,
        seed: int,
        layout: Layout,
        configuration: Configuration,
        *,
        batch: int,
        make_router: RouterMaker = Router,
        trace: bool = False,
        absent: frozenset[str] = frozenset(),
        archived: bool = False,
        independent: bool = False,
        groups: bool = False,
        relays: int = 0,
    ) -> None:
        """With `groups`, some writes reach the disks together, and brokers are told of them together.

        The last of the brokers are `relays`.
        """
        self.seed = seed
        self._independent = independent
        self._groups = groups
        self.settings = configuration.durable or DurableSettings()
        self.record = FaultRecord()
        self.now = 0.0
        self.calm = False
        self.trace = trace
        self.clients: Any = None  # set by `FaultClients`
        self.company = Company(self)
        self.reach: FaultReach | None = None  # where somebody wants to know what is come across
        self._absent = absent
        self.emptied: set[str] = set()  # brokers whose disks came back empty
        self.batch = batch
        self._configuration = configuration
        self._make_router = make_router
        self._facts = Facts()
        self.queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self.handled = 0
        # By broker: the sessions that it has been told of.
        self.connected: dict[str, set[str]] = defaultdict(set)
        names = [f"b{number}" for number in range(layout.size - relays)]
        names += [f"r{number}" for number in range(relays)]
        self.stations = {
            name: FaultyStation(name, Disk(archived=archived), name.startswith("r")) for name in names
        }
        self.wires = [
            Wire(number, self.stations[names[link.one]], self.stations[names[link.other]], link)
            for number, link in enumerate(layout.links)
        ]
        for wire in self.wires:
            wire.one.wires[wire.other.name] = wire
            wire.other.wires[wire.one.name] = wire
        for station in self.stations.values():
            if station.name not in absent:
                self.begin(station)
        for wire in self.wires:
            self.connect(wire)

    def chance(self, *what: Any) -> float:
        """A share from 0 to 1 that depends on the seed and what it is for.

        A checksum is linear: of two texts of one length, those of all seeds differ by the same bits. What two
        such chances decide then meets in few of the ways in which it could. A digest has no such bonds.
        """
        text = f"{self.seed} {what}".encode()
        if self._independent:
            return int.from_bytes(blake2b(text, digest_size=4).digest()) / 2**32
        return crc32(text) / 2**32

    # Time

    def after(self, seconds: float, do: Callable[..., None], *arguments: Any) -> None:
        heappush(self.queue, (self.now + seconds, self.next_number(), do, arguments))

    def next_number(self) -> int:
        """A number that nothing else in this run has."""
        self._number += 1
        return self._number

    def run(self, until: float | None = None) -> bool:
        """Until nothing is left to happen, or a time. Returns whether nothing is left."""
        queue, record = self.queue, self.record
        end = inf if until is None else until
        while queue and not record.error:
            if queue[0][0] > end:
                self.now = end
                return self._is_silent
            if self.handled > self.most_events:
                return False
            self.now, _, do, arguments = heappop(queue)
            do(*arguments)
        return not queue

    @property
    def _is_silent(self) -> bool:
        """Whether nothing is left but timers that count no more, or that watch who has no taker.

        A broker gives itself a day to keep documents, so it may be woken a day after it has.
        """
        for time, _, do, arguments in self.queue:
            if do != self._timer:
                return False
            if time > self.now + _FAR:
                continue
            station, life, (name, number, at) = arguments
            if life == station.life and station.timers.get(name) == (number, at) and name != ABANDON:
                return False
        return True

    def note(self, who: str, what: str, *about: Any) -> None:
        self.record.note(self.now, who, what, *about)

    # Brokers

    @property
    def members(self) -> list[FaultyStation]:
        """The brokers that have disks."""
        return [station for station in self.stations.values() if not station.is_relay]

    def begin(self, station: FaultyStation) -> None:
        """A broker begins, with what is on its disk."""
        if station.router is not None or station.is_gone:
            return
        station.incarnation += 1
        station.life += 1
        station.last = 0.0
        station.disk.open(station.incarnation, f"{station.name} {station.incarnation}")
        station.disk.put_aside(station.name, station.clock(self.now))
        configuration = msgspec.structs.replace(
            self._configuration,
            broker=station.name,
            incarnation=station.incarnation,
            relay=station.is_relay,
            durable=None if station.is_relay else self._configuration.durable,
        )
        station.router = self._make_router(configuration, self._facts, station.disk.recovered())
        if station.incarnation > 1:
            self.note(station.name, "begins anew")
        self._do(station, station.router.on_timer, "begin")
        if self.clients is not None:
            self.clients.began(station)
        if station.departs:
            self.after(REDIAL, depart, self, station)
        for wire in station.wires.values():
            self.after(REDIAL * self.chance("dial", wire.number, station.incarnation), self.connect, wire)

    def is_open(self, station: FaultyStation) -> bool:
        """Whether a broker takes clients.

        One that has joined, or has forgotten everything, does as soon as it has heard of one that has not; if
        all have forgotten everything, as soon as it has heard of all; if all have left, of anybody, unless it
        is alone.
        """
        if station.router is None or station.name not in self._absent | self.emptied:
            return station.router is not None
        gone = {name for name, one in self.stations.items() if one.is_gone}
        others = {one.name for one in self.members} - self._absent - {station.name} - gone
        topology = station.router.durable.topology if station.router.durable is not None else None
        heard_of = topology.heard_of if topology is not None else set()
        if not others:  # those who have joined carry on, once they have met who has left, or each other
            has_met = topology is not None and bool(topology.forgotten or heard_of - {station.name})
            is_alone = gone.issuperset(self.neighbours_of(station))
            return bool(gone) and (has_met or is_alone)
        if remembering := others - self.emptied:
            return not remembering.isdisjoint(heard_of)
        return others.issubset(heard_of)

    def neighbours_of(self, station: FaultyStation) -> set[str]:
        """The brokers with disks that are linked with one, or are beyond relays that are."""
        found, looked_at, next_ones = set[str](), {station.name}, [station]
        while next_ones:
            here = next_ones.pop()
            for wire in here.wires.values():
                other = wire.opposite(here.name)
                if other.name not in looked_at:
                    looked_at.add(other.name)
                    if other.is_relay:
                        next_ones.append(other)
                    else:
                        found.add(other.name)
        return found

    def place_for(self, broker: str) -> str:
        """Where somebody goes who wants to a broker: elsewhere, once that one shall leave."""
        staying = [station.name for station in self.members if not station.departs]
        return broker if broker in staying or not staying else staying[0]

    def crash(self, station: FaultyStation, share: float, down: float) -> None:
        """A broker ends at once. Of what it was writing, the first part is on disk."""
        if station.router is None:
            return
        if self.reach is not None:
            self.reach.crash(station)
        lost = station.disk.crash(share)
        self.observe(station)
        station.router = None
        station.life += 1
        station.forget()
        self.connected[station.name].clear()
        if station.plans:
            station.plans.popleft()
        self.record.tick()
        what = f" It had not yet written {'; '.join(map(describe_write, lost))}." if lost else ""
        self.note(station.name, f"crashes.{what}")
        for wire in station.wires.values():
            wire.told[station.name] = False
            self.cut(wire, 0.5 * self.chance("notice", wire.number, station.incarnation))
        self.clients.lost(station.name)
        self.after(down, self.begin, station)

    def post(self, station: FaultyStation, message: Any, source: str) -> None:
        """A message for a broker; it is handled at once if the broker is not busy."""
        if station.router is None:
            return
        inbox = station.inbox
        inbox.append((message, source))
        if len(inbox) == 1:
            if station.handling or station.free_at > self.now:
                self.after(max(station.free_at - self.now, 0.0), self._work, station, station.life)
            else:
                self._work(station, station.life)

    def _work(self, station: FaultyStation, life: int) -> None:
        inbox = station.inbox
        if station.life != life or not inbox:
            return
        if station.free_at > self.now:
            self.after(station.free_at - self.now, self._work, station, life)
            return
        station.handling = True
        message, source = inbox[0]
        self._handle(station, message, source)
        station.handling = False
        if station.life == life:
            inbox.popleft()
            free_at = station.free_at = self.now + station.each  # it was free until now
            if inbox:
                self.after(free_at - self.now, self._work, station, life)

    def wake(self, station: FaultyStation) -> None:
        """A broker goes on with what has been waiting."""
        if station.router is not None and station.inbox:
            self.after(0.0, self._work, station, station.life)

    def _handle(self, station: FaultyStation, message: Any, source: str) -> None:
        if self.trace:
            self.note(station.name, f"handles {message} from {source}", "trace")
        router = station.router
        assert router is not None
        if source == "timer":
            name, number, at = message
            if station.timers.get(name) == (number, at):
                del station.timers[name]
                station.last = max(station.last, at)
                self._do(station, router.on_timer, name)
            return
        kind = type(message)
        if kind is list:
            self._do(station, router.complete, self._one_by_one(station, message))
            return
        if kind is Open:
            self.connected[station.name].add(source)
        elif kind is Close:
            self.connected[station.name].discard(source)
        elif kind is LinkUp:
            station.wires[source].lines[station.name].begin()
        self._do(station, router.handle, message, source)

    def _one_by_one(self, station: FaultyStation, messages: list[Any]) -> Iterator[Any]:
        """What a broker handles together; in which epochs it is on the way is noted."""
        for message in messages:
            epoch = station.router.epoch if station.router is not None else None
            if epoch is not None and epoch != station.epochs[-1]:
                station.epochs.append(epoch)
            yield message

    def _do(self, station: FaultyStation, handle: Callable[..., list[Any]], *arguments: Any) -> None:
        self.handled += 1
        self.record.moment += 1
        epoch = station.router.epoch if station.router is not None else None
        station.epochs = [epoch] if epoch is not None else []
        station.has_told = False
        try:
            effects = handle(*arguments, station.clock(self.now))
        except Exception as problem:  # noqa: BLE001 (whatever it is, it is a finding)
            place = extract_tb(problem.__traceback__)[-1]
            self.record.error = (
                f"{station.name}: {type(problem).__name__}: {problem} "
                f"({place.filename.rsplit('/', 1)[-1]}, {place.name}, line {place.lineno})"
            )
            return
        if effects:
            self.carry_out(station, effects)
        else:
            station.ends.append(station.carried)
        if self.reach is not None and station.router is not None:
            self.reach.look(station)
        if self.handled % _LOOK_EVERY == 0 and station.router is not None:
            self._look(station)

    def _look(self, station: FaultyStation) -> None:
        look(self, station)

    # Effects

    def carry_out(self, station: FaultyStation, effects: list[Any]) -> None:
        for effect in effects:
            plan = station.plans[0] if station.plans else None
            if plan is not None and not plan.after and station.carried >= plan.at:
                self.crash(station, plan.share, plan.down)
                return
            self._carry_out_one(station, effect)
            station.carried += 1
            if plan is not None and plan.after and station.carried > plan.at:
                self.crash(station, plan.share, plan.down)
                return
        station.ends.append(station.carried)

    def _carry_out_one(self, station: FaultyStation, effect: Any) -> None:
        # By its exact type, the most frequent first: this is where a run spends much of its time.
        kind = type(effect)
        if kind is Send:
            self._send(station, effect.broker, effect.message)
        elif kind is SetTimer:
            self._set_timer(station, effect.name, effect.at)
        elif kind is Reply:
            self.clients.answered(station, effect.session, effect.answer)
        elif kind is Hand:
            self.clients.handed(station, effect)
        elif kind is CloseLink:
            self._close(station, effect.broker, effect.reason)
        elif kind is ReportGap:
            self.note(station.name, f"names a gap: {effect.gap} {effect.durable}")
        elif kind is HasLeft:
            self.after(0.0, end_departure, self, station, station.life)
        elif kind is ReportForgotten:
            self.note(station.name, f"forgets {effect.broker}: {effect.why}")
            self.company.forgotten(station, effect)
        elif kind is not Deliver and kind is not OverlayEvent:  # nobody here has a transient subscription
            if kind is Trim:
                check_trim(self, station, effect)
            elif kind is Spool and effect.filter is not None:
                station.hosted.add(effect.name)
            elif kind is Append:
                effect = with_documents(effect)
            self.write(station, effect)

    def write(self, station: FaultyStation, effect: StoreEffect) -> None:
        station.disk.queue.append(effect)
        if not station.writing:
            self._write_next(station)

    def _set_timer(self, station: FaultyStation, name: str, at: float) -> None:
        number = self.next_number()
        station.timers[name] = number, at
        wait = max(at - self.now - station.offset, 0.0)
        self.after(wait, self._timer, station, station.life, (name, number, at))

    def _timer(self, station: FaultyStation, life: int, timer: tuple[str, int, float]) -> None:
        if station.life == life:
            self.post(station, timer, "timer")

    def jump(self, station: FaultyStation, by: float) -> None:
        station.offset += by
        station.ahead += max(0.0, by)
        for name, (_, at) in list(station.timers.items()):
            self._set_timer(station, name, at)

    # Disks

    def _write_next(self, station: FaultyStation) -> None:
        if self._groups and not station.writing:
            station.group = 1 + int(self.chance("group", station.name, station.carried) * _MOST_TOGETHER)
        if not station.writing and station.disk.queue and not station.disk.is_blocked:
            station.writing = True
            self.after(station.disk_each, self._written, station, station.life)

    def _written(self, station: FaultyStation, life: int) -> None:
        if station.life != life:
            return
        station.writing = False
        messages = []
        for _ in range(station.group):
            if station.disk.queue and not station.disk.is_blocked:
                messages.append(self._complete(station))
        self._tell(station, [message for message in messages if message is not None])
        self._write_next(station)

    def _tell(self, station: FaultyStation, messages: list[StoreMessage]) -> None:
        """A broker is told what its disk has done."""
        if len(messages) == 1:
            self.post(station, messages[0], "store")
        elif messages:
            self.post(station, messages, "store")

    def _complete(self, station: FaultyStation) -> StoreMessage | None:
        """What is first in the queue of a disk has been done. Returns what the broker is to be told."""
        effect = station.disk.queue[0]
        message = station.disk.complete()
        if type(effect) is Append and effect.token in station.keeping:
            self.after(0.0, station.keeping.pop(effect.token), type(message) is Stored)
            return None
        if type(effect) is Append:  # nothing else adds to a journal
            self.observe(station)
            if self.trace:
                self.note(station.name, f"completes {effect} with {message}", "trace")
        return message

    def observe(self, station: FaultyStation) -> None:
        """Keep account of what is in a journal."""
        disk, written = station.disk, self.record.written
        sequence = disk.head
        while sequence > disk.trimmed:
            envelope = disk.journal[sequence]
            known = written.get((station.name, sequence))
            if known is envelope:
                break
            if known is not None and known.notification != envelope.notification:
                numbers = number_of(known), number_of(envelope)
                self.record.given_twice.append((station.name, sequence, *numbers))
            written[station.name, sequence] = envelope
            times = sum([one.broker == station.name for one in self.record.older])
            self.record.branches[(station.name, sequence), number_of(envelope)] = times
            sequence -= 1

    def room(self, station: FaultyStation) -> None:
        """There is room on a disk again."""
        station.disk.full = False
        if station.router is not None:
            self._write_next(station)

    # Links

    def _send(self, station: FaultyStation, broker: str, message: Any) -> None:
        wire = station.wires[broker]
        line = wire.lines[station.name]
        check_epochs(self, station, message)
        if wire.up and line.used == line.epoch:
            now = self.now
            arrival = line.arrival = max(line.arrival, now + wire.latency + wire.more)
            self.after(arrival - now, self._arrive, wire, station.name, line.epoch, message)

    def _arrive(self, wire: Wire, source: str, epoch: int, message: Any) -> None:
        if wire.lines[source].epoch == epoch:
            self.post(wire.opposite(source), message, source)

    def connect(self, wire: Wire) -> None:
        """Two brokers connect, if they can; an end that has not noticed the last cut notices it now."""
        if wire.up or wire.cut_until > self.now or wire.one.router is None or wire.other.router is None:
            return
        wire.up = True
        self.company.changed()
        if self.now:
            self.note(wire.one.name, f"is connected with {wire.other.name} again")
        kinds = {wire.one.name: wire.link.kind, wire.other.name: wire.link.other_kind}
        for line in wire.lines.values():
            line.epoch += 1
        for end in (wire.one, wire.other):
            neighbour = wire.opposite(end.name).name
            if wire.told[end.name]:
                self.post(end, LinkDown(orderly=False), neighbour)
            wire.told[end.name] = True
            if end.router is not None:  # it may have crashed when it heard that the last one is gone
                wire.lines[end.name].coming.append(wire.lines[end.name].epoch)
            self.post(end, LinkUp(kinds[end.name], wire.link.cost), neighbour)

    def cut(self, wire: Wire, *noticed: float) -> None:
        """A link is gone, with what is on it. Each end notices that later."""
        if not wire.up:
            return
        wire.up = False
        self.company.changed()
        for line in wire.lines.values():
            line.epoch += 1
        epoch = wire.lines[wire.one.name].epoch
        for end, delay in zip((wire.one, wire.other), (*noticed, *noticed)[:2], strict=True):
            self.after(delay, self._notice, wire, end, epoch)

    def _notice(self, wire: Wire, end: FaultyStation, epoch: int) -> None:
        if wire.told[end.name] and wire.lines[wire.one.name].epoch == epoch:
            wire.told[end.name] = False
            self.post(end, LinkDown(orderly=False), wire.opposite(end.name).name)

    def _close(self, station: FaultyStation, broker: str, reason: str) -> None:
        """A broker will not use a link. What it said before, its reason for instance, still arrives."""
        wire = station.wires[broker]
        wire.told[station.name] = False
        self.note(station.name, f"closes its link with {broker}: {reason}")
        if wire.up:
            wire.up = False
            self.company.changed()
            wire.lines[broker].epoch += 1
            epoch = wire.lines[wire.one.name].epoch
            self.after(2 * wire.latency + wire.more, self._notice, wire, wire.opposite(station.name), epoch)
        self.after(REDIAL * (1.0 + self.chance("again", wire.number, self.now)), self.connect, wire)
