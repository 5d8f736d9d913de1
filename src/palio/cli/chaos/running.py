"""A run of `palio chaos`, from the first broker to the last check.

All is calm at first, and again at the end: then nothing may be lost for anybody. In between, faults of the plan
happen at their times, each in a task of its own, so that some meet. When the last one is over, the network has
`settle` seconds to be whole, and durable subscriptions as many to have everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from palio.broker.settings import Settings
from palio.cli.brokers.hosting import CannotStart
from palio.cli.chaos.load import Load
from palio.cli.chaos.network import LOOK_EVERY, ChaosNetwork
from palio.cli.chaos.oracle import ChaosOracle
from palio.cli.chaos.plan import CALM, FaultKind, PlannedFault, draw_plan
from palio.cli.chaos.record import (
    ChaosRecord,
    ChaosSecond,
    DurableRow,
    FaultSpan,
    NetworkChange,
    TransientRow,
)
from palio.cli.network.members import STOP_WITHIN, MemberState
from palio.client import Client
from palio.model.errors import PalioError
from palio.protocol.addresses import SCHEME
from palio.protocol.heartbeat import SILENCES
from palio.routing.overlay.settings import OverlayKind

# Seconds between two looks at how far behind durable subscriptions are.
_LOOK_EVERY = 0.25
_ASK_WITHIN = 2.0
# Brokers that have to be left untouched: what is done to fewer tells nothing.
_LEFT = 2
# How long a broker is there again before the next one is restarted.
_BETWEEN_RESTARTS = 1.0
# How long an event is under way at the most, where nothing is wrong and the machine is not too busy.
_UNDER_WAY = 0.5
_TARGETS = {"inner": "an inner broker", "root": "the root"}
_GOOD_AGAIN = frozenset(("back", "going on", "mended", "healed"))
# Moments of brokers that were not there.
_OF_BROKERS = frozenset(("killed", "stopped", "restarting", "back", "going on"))
# What the overlay of a broker says of itself that can be added up.
_COUNTED = ("linked", "taken", "lost", "given_up", "damped", "repairs", "repair_seconds")


class ChaosOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    seed: int
    seconds: float
    brokers: int
    durable: int
    rate: float
    overlay: OverlayKind
    faults: tuple[FaultKind, ...]
    heartbeat: float
    every: float  # between two faults, on average, beside what they take
    settle: float
    command: str
    # Nothing that is done here cuts the power.
    settings: Settings = Settings(sync="normal")
    pace: float = 1.0  # the unit of time by which the plan is drawn, in seconds


class ChaosRun:
    """One run. `record` is what has come of it so far."""

    def __init__(self, options: ChaosOptions, folder: Path, tell: Callable[[str], None]) -> None:
        self.options = options
        width = max(2, len(str(options.brokers)))
        self.names = tuple(f"b{number:0{width}}" for number in range(1, options.brokers + 1))
        self.plan = draw_plan(
            options.seed,
            self.names,
            options.seconds,
            options.faults,
            heartbeat=options.heartbeat,
            every=options.every,
            pace=options.pace,
        )
        self.oracle = ChaosOracle(late=options.pace)
        self.network = ChaosNetwork(
            self.names,
            folder,
            settings=options.settings,
            overlay=options.overlay,
            heartbeat=options.heartbeat,
            seed=options.seed,
        )
        self.load: Load | None = None
        self.record = ChaosRecord(
            seed=options.seed,
            command=options.command,
            brokers=self.names,
            overlay=options.overlay,
            heartbeat=options.heartbeat,
            rate=options.rate,
            late=options.pace,
        )
        self.doing: dict[int, str] = {}  # what is wrong now, in words, by number of the fault
        self._tell = tell
        self._busy: set[str] = set()  # brokers that something is done to
        self._rolling = asyncio.Lock()  # of restarts one is made after the other

    @property
    def now(self) -> float:
        """Seconds since the load began."""
        return self.load.now() if self.load is not None else 0.0

    async def play(self) -> ChaosRecord:
        """All of it. Raises `CannotStart` and errors of clients if it cannot begin."""
        options = self.options
        try:
            await self.network.start()
            addresses = {name: f"{SCHEME}{member.server}" for name, member in self.network.members.items()}
            self.load = Load(
                self.oracle, addresses, rate=options.rate, heartbeat=options.heartbeat, seed=options.seed
            )
            await self.load.open(options.durable)
            self.load.begin()
            looking = asyncio.create_task(self._look())
            try:
                await self._trouble()
                await self._come_to_rest()
                await self._finish()
            finally:
                looking.cancel()
        finally:
            if self.load is not None:
                await self.load.close()
            await self.network.close()
        return self.record

    # What goes wrong

    async def _trouble(self) -> None:
        async with asyncio.TaskGroup() as group:
            for fault in self.plan:
                await asyncio.sleep(fault.at - self.now)
                group.create_task(self._do(fault))

    async def _do(self, fault: PlannedFault) -> None:
        try:
            match fault.kind:
                case "cut":
                    await self._cut(fault)
                case "split":
                    await self._split(fault)
                case "restart":
                    await self._restart(fault)
                case _:
                    await self._hit(fault, await self._victims(fault))
        except CannotStart as problem:
            self.oracle.wrong(str(problem))
        finally:
            self.doing.pop(fault.number, None)

    async def _hit(self, fault: PlannedFault, names: tuple[str, ...]) -> None:
        """Brokers are killed, or stand still, and are there again later."""
        if not names:
            return
        target = "" if fault.target == "named" else f", {_TARGETS[fault.target]},"
        verb = "killed" if fault.kind == "kill" else "stopped"
        with self._wrong(fault, verb, names, f"{_some(names)}{target} {_is(names)} {verb}"):
            if fault.kind == "kill":
                await asyncio.gather(*[self.network.end(name, signal.SIGKILL) for name in names])
                await asyncio.sleep(fault.lasts)
                await asyncio.gather(*map(self.network.start_again, names))
            else:
                for name in names:
                    self.network.stop(name)
                try:
                    await asyncio.sleep(fault.lasts)
                finally:
                    for name in names:
                        self.network.go_on(name)
        self._moment(fault, "back" if fault.kind == "kill" else "going on", names)

    async def _restart(self, fault: PlannedFault) -> None:
        """Brokers are restarted in order, one after the other."""
        async with self._rolling:
            for name in fault.brokers:
                if self._may_take((name,)):
                    await self._restart_one(fault, name)

    async def _restart_one(self, fault: PlannedFault, name: str) -> None:
        with self._wrong(fault, "restarting", (name,), f"{name} is restarted"):
            try:
                async with asyncio.timeout(STOP_WITHIN):
                    await self.network.end(name, signal.SIGTERM)
            except TimeoutError:
                self.oracle.wrong(f"{name} has not ended in order within {STOP_WITHIN:g} seconds.")
                await self.network.end(name, signal.SIGKILL)
            await self.network.start_again(name)
        self._moment(fault, "back", (name,))
        await asyncio.sleep(_BETWEEN_RESTARTS * self.options.pace)

    async def _cut(self, fault: PlannedFault) -> None:
        links = sorted(
            {
                tuple(sorted((one, other)))
                for one, row in (await self._overlay()).items()
                for other in row["links"]
            }
        )
        if not links:
            self.record.skipped += 1
            return
        pair = links[fault.choice % len(links)]
        with self._noted(fault, f"the link of {pair[0]} and {pair[1]} is cut", links=(pair,)):
            self._moment(fault, "cut", pair)
            self.network.cut(frozenset(pair))
            await asyncio.sleep(fault.lasts)
            self.network.mend(frozenset(pair))
        self._moment(fault, "mended", pair)

    async def _split(self, fault: PlannedFault) -> None:
        some = frozenset(fault.brokers)
        with self._noted(fault, f"{_some(fault.brokers)} {_is(fault.brokers)} split off", fault.brokers):
            self._moment(fault, "split", fault.brokers)
            separation = self.oracle.apart(some, self.now)
            self.network.part(some)
            await asyncio.sleep(fault.lasts)
            separation.end = self.now
            self.network.join(some)
        self._moment(fault, "healed", fault.brokers)

    async def _victims(self, fault: PlannedFault) -> tuple[str, ...]:
        """Whom a fault hits: as it says, or of the overlay as it is now."""
        names = fault.brokers
        if fault.target != "named":
            rows = await self._overlay()
            root = Counter(str(row["component"]) for row in rows.values()).most_common(1)[0][0] if rows else ""
            inner = sorted(name for name, row in rows.items() if len(row["links"]) > 1 and name != root)
            names = (
                (root,)
                if fault.target == "root"
                else tuple(inner[fault.choice % len(inner) :][:1] if inner else ())
            )
        names = tuple([name for name in names if name in self.names and name not in self._busy])
        return names if self._may_take(names) else ()

    def _may_take(self, names: Sequence[str]) -> bool:
        """Whether something can be done to these brokers, and enough others are left."""
        may = (
            bool(names)
            and not self._busy & set(names)
            and len(self.names) - len(self._busy) - len(names) >= _LEFT
        )
        self.record.skipped += not may
        return may

    @contextlib.contextmanager
    def _wrong(self, fault: PlannedFault, what: str, names: tuple[str, ...], said: str) -> Iterator[None]:
        """These brokers are not there; whoever is connected to them is owed nothing meanwhile."""
        reason = f"fault {fault.number}"
        with self._noted(fault, said, names):
            self._moment(fault, what, names)
            self._busy |= set(names)
            for name in names:
                self.oracle.transient[name].away(reason, self.now)
            try:
                yield
            finally:
                self._busy -= set(names)
                for name in names:
                    self.oracle.transient[name].back(reason, self.now)

    @contextlib.contextmanager
    def _noted(
        self,
        fault: PlannedFault,
        said: str,
        brokers: tuple[str, ...] = (),
        links: tuple[tuple[str, str], ...] = (),
    ) -> Iterator[None]:
        """What is wrong, for the record and for whoever looks on."""
        trouble = FaultSpan(
            number=fault.number, kind=fault.kind, begin=self.now, end=0.0, brokers=brokers, links=links
        )
        self.record.troubles.append(trouble)
        self.doing[fault.number] = said
        self._tell(f"{self.now:6.1f} s  {said}.")
        try:
            yield
        finally:
            trouble.end = self.now

    def _moment(self, fault: PlannedFault, what: str, brokers: tuple[str, ...]) -> None:
        group, within = self._group(fault, what, brokers)
        moment = NetworkChange(
            at=self.now, number=fault.number, what=what, group=group, within=within, brokers=brokers
        )
        self.record.moments.append(moment)
        if what in _GOOD_AGAIN:
            self._tell(f"{self.now:6.1f} s  {_some(brokers)}: {what}.")

    def _group(self, fault: PlannedFault, what: str, brokers: tuple[str, ...]) -> tuple[str, float]:
        """With what it can be compared, and within how many seconds routes should be whole after it."""
        heartbeat = self.options.heartbeat
        noticed = "for long" if fault.lasts > SILENCES * heartbeat else "for a moment"
        match what:
            case "killed":
                several = "one broker killed" if len(brokers) == 1 else f"{len(brokers)} brokers killed at once"
                return {"inner": "inner broker killed", "root": "root killed"}.get(
                    fault.target, several
                ), heartbeat + 1
            case "stopped":  # that it is away is known after three heartbeats
                return f"stands still {noticed}", (SILENCES + 1) * heartbeat
            case "split":
                return f"split {noticed}", (SILENCES + 1) * heartbeat
            case "healed":
                return f"healed after a split {noticed}", 2 * LOOK_EVERY * heartbeat
            case "going on":
                return f"goes on after it stood still {noticed}", 2 * LOOK_EVERY * heartbeat
            case "back":
                return "restarted" if fault.kind == "restart" else "back after it was killed", heartbeat + 1
        return {"cut": "link cut", "mended": "link mended", "restarting": "ended in order"}[what], heartbeat + 1

    def status(self) -> str:
        """How it is, in a line."""
        if self.load is None:
            up = sum(member.state is MemberState.UP for member in self.network.members.values())
            return f"{up} of {len(self.names)} brokers are up …"
        counts = self.oracle.counts
        behind = [taker for taker in self.oracle.durable.values() if taker.waiting]
        lag = max([taker.lag(self.now) for taker in behind], default=0.0)
        wrong = ", ".join(self.doing.values()) or "all is well"
        return (
            f"{self.now:.0f} s of {max(self.now, self.options.seconds):.0f}  "
            f"{counts['confirmed']:,} confirmed  {counts['delivered']:,} delivered  "
            f"{len(behind)} behind by {lag:.1f} s  "
            f"{counts['violations']:,} promises broken  {wrong}"
        )

    async def _overlay(self) -> dict[str, dict[str, Any]]:
        """What each broker that answers says of its links."""
        assert self.load is not None

        async def ask(name: str, client: Client) -> tuple[str, dict[str, Any]] | None:
            try:
                [row] = await client.inspect("overlay", timeout=_ASK_WITHIN)
            except PalioError:
                return None
            return name, row

        stations = [(name, client) for name, client in self.load.stations.items() if name not in self._busy]
        return dict(filter(None, await asyncio.gather(*[ask(*one) for one in stations])))

    # How it ends

    async def _come_to_rest(self) -> None:
        """The network becomes whole, is so for a while, and everybody gets what is left."""
        assert self.load is not None
        self.doing = {0: "all faults are over"}
        late, calm, over = self.oracle.late, CALM * self.options.pace, self.now
        while any(self.oracle.missed(self.now - late - calm, self.now - late)) or self.now < over + late + calm:
            if self.now > over + self.options.settle:
                self.oracle.wrong(f"Routes are not whole {self.options.settle:g} seconds after the last fault.")
                break
            await asyncio.sleep(_LOOK_EVERY)
        self.record.calm_from = self.now - late - calm
        await self.load.stop()
        self.record.seconds = end = self.now
        self._tell(f"{end:6.1f} s  The network is at rest; durable subscriptions get what is left.")
        while not self.oracle.is_complete() and self.now < end + self.options.settle:
            await asyncio.sleep(_LOOK_EVERY)
        await asyncio.sleep(late)
        self.oracle.judge_end(self.now)
        self.oracle.judge_calm(0.0, calm - late, "before the first fault")

    async def _look(self) -> None:
        """How far behind durable subscriptions are, again and again."""
        while True:
            second = self._second(self.now)
            behind = [taker for taker in self.oracle.durable.values() if taker.waiting]
            second.behind = max(second.behind, len(behind))
            for taker in behind:
                unexcused = self.oracle.unexcused_lag(taker, self.now)
                taker.longest_unexcused = max(taker.longest_unexcused, unexcused)
                second.unexcused = max(second.unexcused, unexcused)
                second.lag = max(second.lag, taker.lag(self.now))
            await asyncio.sleep(_LOOK_EVERY)

    def _second(self, at: float) -> ChaosSecond:
        by_second = self.record.by_second
        while len(by_second) <= int(at):
            by_second.append(ChaosSecond())
        return by_second[int(at)]

    def _judge_changes(self) -> None:
        """How soon routes were whole after each change, and what was lost until the next one.

        What was published a moment before a change was under way when it came, and so belongs to it.
        """
        record, oracle, moment = self.record, self.oracle, _UNDER_WAY * self.options.pace
        whole, fault = True, 0  # before the change; and which one it was then
        for change, after in zip_longest(record.moments, record.moments[1:]):
            change.until = after.at if after is not None else record.seconds
            begin, end = change.at - moment, change.until - moment
            change.whole_after = oracle.whole_after(begin, end)
            if change.whole_after is not None:
                change.whole_after = max(0.0, change.whole_after - moment)
            others = [one for one in record.troubles if one.number != change.number]
            still = any(one.begin <= change.at < one.end for one in others)
            change.alone = not still and (whole or fault == change.number)
            whole, fault = change.whole_after is not None, change.number
            own = set(change.brokers) if change.what in _OF_BROKERS else set()
            for (publisher, _), taker in oracle.missed(begin, end):
                if {publisher, taker.name} & own:
                    change.lost_own += 1
                else:
                    change.lost += 1

    async def _finish(self) -> None:
        """What came of it all."""
        record, oracle = self.record, self.oracle
        record.made = time.time()
        record.moments.sort(key=lambda one: one.at)
        self._judge_changes()
        lost: Counter[str] = Counter()
        late: Counter[str] = Counter()
        for seen, taker in oracle.missed(0.0, record.seconds):
            lost[taker.name] += 1
            self._second(oracle.events[seen].at).lost += 1
        for _, event in oracle.between(0.0, record.seconds):
            second = self._second(event.at)
            second.published += 1
            second.late += event.late.bit_count()
            late.update([taker.name for taker in oracle.transient.values() if event.late >> taker.bit & 1])
        record.transient = [
            TransientRow(one.name, one.got, late[one.name], lost[one.name]) for one in oracle.transient.values()
        ]
        record.durable = [
            DurableRow(
                name=one.name,
                broker=one.broker,
                filter=one.wish.text,
                owed=one.owed,
                got=one.got,
                again=one.again,
                missing=len(one.waiting),
                longest_lag=one.longest,
                unexcused_lag=one.longest_unexcused,
            )
            for one in oracle.durable.values()
        ]
        record.counts = oracle.counts | Counter(lost=lost.total())
        record.violations = oracle.violations
        assert self.load is not None
        record.requests = self.load.requests
        found: Counter[str] = Counter()
        for row in (await self._overlay()).values():
            found.update({key: row[key] for key in _COUNTED})
        record.overlay_counts = found


def _some(names: Iterable[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
