"""`simulate`: one scenario with faults, from its network to the oracle's verdict."""

from __future__ import annotations

from random import Random

import msgspec

from palio.protocol.durable.retry import Patience
from palio.routing.configuration import Configuration, Strategy
from palio.routing.durable.desk import DurableSettings
from palio.routing.reconfiguration.settings import ReconfigurationSettings
from palio.routing.router import Router
from palio.sim.faults import steps
from palio.sim.faults.clients import FaultClients
from palio.sim.faults.damage import come_back_older, copy_disk, flip
from palio.sim.faults.departures import depart, stay
from palio.sim.faults.document_oracle import judge_documents
from palio.sim.faults.inspection import describe_rest, look_at_documents, look_at_end
from palio.sim.faults.keepers import FaultKeeper
from palio.sim.faults.oracle import judge
from palio.sim.faults.publishers import FaultPublisher
from palio.sim.faults.reach import FaultReach
from palio.sim.faults.record import NEVER, FaultRecord
from palio.sim.faults.relays import relays_steps, with_relays
from palio.sim.faults.scenario import FaultScenario
from palio.sim.faults.scenes import SCENES
from palio.sim.faults.script import drawn_steps, keepers_places, kept, publishers_places
from palio.sim.faults.station import DISK_EACH, CrashPlan, DiskCopy, FaultyStation
from palio.sim.faults.takers import FaultConsumer
from palio.sim.faults.violations import BrokenPromise
from palio.sim.faults.world import RouterMaker, World
from palio.sim.shapes import draw
from palio.sim.topologies import Layout, lay_out

QUIET_WITHIN = 240.0  # simulated seconds after the last fault in which everything has to be over
_BATCH = 3  # the most notifications that a publisher publishes together
_DELIVERY_BYTES = (40, 800)  # by seed: outboxes are full by their bytes, or by their number
_CRASH_WITHIN = 1.5  # seconds in which a broker that shall crash after some effects crashes, also without them


class FaultRun(msgspec.Struct, eq=False):
    """A run that has come to its end."""

    scenario: FaultScenario
    world: World
    script: list[steps.Step]
    violations: list[BrokenPromise]

    @property
    def record(self) -> FaultRecord:
        return self.world.record


def prepare(scenario: FaultScenario) -> tuple[Layout, list[steps.Step]]:
    """The network of a scenario, and what happens on it."""
    chance = Random(f"network {scenario.seed}")
    layout = lay_out(draw(scenario.shape, scenario.brokers, chance), scenario.topology, chance)
    whole = with_relays(layout, scenario.relays, scenario.seed)
    if scenario.script:
        return whole, list(scenario.script)
    drawn = SCENES[scenario.scene] if scenario.scene else drawn_steps(scenario, layout)
    if scenario.relays and not scenario.scene:
        drawn = (*drawn, *relays_steps(scenario.relays, whole, drawn, scenario.seed))
    return whole, kept(scenario, drawn)


def simulate(
    scenario: FaultScenario,
    *,
    make_router: RouterMaker = Router,
    trace: bool = False,
    reach: FaultReach | None = None,
) -> FaultRun:
    """Simulate a scenario, repair everything, let the world come to rest, and judge what happened.

    What it comes across is counted in `reach`.
    """
    stage = Stage(scenario, make_router=make_router, trace=trace)
    stage.world.reach = reach
    stage.play()
    return FaultRun(
        scenario, stage.world, stage.script, [*judge(stage.world.record), *judge_documents(stage.world.record)]
    )


class Stage:
    """A world and its clients, on which steps are played."""

    def __init__(self, scenario: FaultScenario, *, make_router: RouterMaker, trace: bool = False) -> None:
        self._scenario = scenario
        layout, self.script = prepare(scenario)
        patience = Patience(
            in_flight=4, acknowledge_within=3.0, first_pause=0.5, longest_pause=4.0, attempts=scenario.attempts
        )
        outbox, size = scenario.outbox, scenario.outbox * _DELIVERY_BYTES[scenario.seed % 2]
        settings = DurableSettings(
            patience=patience,
            page=scenario.page,
            outbox=outbox,
            outbox_bytes=size,
            forget_after=scenario.forget_after,
        )
        configuration = Configuration(
            broker="-",
            strategy=Strategy(scenario.strategy),
            advertisements=scenario.advertisements,
            merging_excess=scenario.merging_excess,
            durable=settings,
            reconfiguration=ReconfigurationSettings(protocol=scenario.reconfiguration),
        )
        absent = frozenset([step.broker for step in self.script if isinstance(step, steps.Join)])
        self.world = World(
            scenario.seed,
            layout,
            configuration,
            batch=_BATCH,
            make_router=make_router,
            trace=trace,
            absent=absent,
            archived=scenario.lake,
            independent=scenario.independent,
            groups=scenario.groups,
            relays=scenario.relays,
        )
        self.clients = FaultClients(self.world)
        names = [station.name for station in self.world.members]
        for name, filter in keepers_places(scenario, names, absent).items():
            keeper = self.clients.keepers[name] = FaultKeeper(self.world, self.world.stations[name], filter)
            keeper.connect()
        stations = self.world.members
        for number, drawn_place in enumerate(publishers_places(scenario.seed, scenario.publishers, stations)):
            name = f"p{number}"
            place = stations[0] if scenario.scene else drawn_place
            publisher = FaultPublisher(
                self.world, name, place, advertises=scenario.advertisements, documents=bool(scenario.documents)
            )
            self.clients.publishers[name] = publisher
            if not scenario.late:
                publisher.connect()
        self.world.run(until=30.0)
        self._begin = self.world.now
        self.begun = {station.name: station.carried for station in self.world.stations.values()}
        self._healed = False
        self._copies: dict[int, DiskCopy] = {}  # by the number of the step for which they were made
        self._planned = bool(scenario.crash_at)
        self.world.calm = bool(scenario.scene)
        for plan in scenario.crash_at:
            station = self.world.stations[plan.broker]
            station.plans.append(msgspec.structs.replace(plan, at=self.begun[plan.broker] + plan.at))

    def play(self) -> None:
        """Take all steps, repair everything, and go on until nothing happens any more."""
        world, record = self.world, self.world.record
        for step in self.script:
            if isinstance(step, steps.Older) and step.back is not None:
                world.after(max(0.0, step.time - step.back), self._copy_disk, step)
            world.after(step.time, self._take, step)
        last = max([step.time for step in self.script], default=0.0)
        world.run(until=self._begin + last + 1.0)
        self.heal()
        world.after(QUIET_WITHIN / 2, self._stay)
        quiet = world.run(until=world.now + QUIET_WITHIN)
        if not quiet and not record.error:
            record.unquiet = describe_rest(world)
        record.waiting = self.clients.unanswered()
        for station in world.stations.values():
            if station.departs and not station.is_gone:
                record.waiting.append(f"{station.name} has not left the network")
        look_at_end(world, quiet=quiet)
        look_at_documents(world)

    def _stay(self) -> None:
        """Who waits to leave until somebody takes what nobody takes any more stays after all."""
        takings = self.world.record.takings
        homes = [
            one.router.durable.homes
            for one in self.world.stations.values()
            if one.router is not None and one.router.durable is not None
        ]
        if any(
            name in takings and takings[name].ending != NEVER for one in homes for name in one.subscriptions
        ):
            for station in self.world.stations.values():
                stay(self.world, station)

    def heal(self) -> None:
        """No more faults: everything is repaired, everybody comes back and behaves."""
        world = self.world
        self._healed = world.calm = True
        world.note("", "All faults are over")
        for station in world.stations.values():
            if not self._planned:
                station.plans.clear()
            station.each = 0.0
            station.free_at = 0.0
            station.disk_each = DISK_EACH
            world.room(station)
            world.wake(station)
            world.begin(station)
        for wire in world.wires:
            wire.more = 0.0
            wire.cut_until = 0.0
            world.connect(wire)
        for taker in self.clients.takers.values():
            taker.come_back()

    def _take(self, step: steps.Step) -> None:
        world = self.world
        if self._healed:
            return
        world.record.tick()
        if world.reach is not None:
            world.reach.step(world, step)
        about = (_about(step),) if isinstance(step, steps.Say | steps.OfTaker) else ()
        world.note("", str(step), *about)
        match step:
            case steps.Crash(broker=broker, effects=effects, share=share, down=down):
                station = world.stations[broker]
                if station.router is not None and not station.plans:
                    plan = CrashPlan(broker, station.carried + effects, False, share, down)
                    station.plans.append(plan)
                    world.after(_CRASH_WITHIN, self._crash_now, station, plan)
            case steps.PauseBroker(broker=broker, seconds=seconds):
                station = world.stations[broker]
                station.free_at = max(station.free_at, world.now + seconds)
            case steps.Slow(broker=broker, seconds=seconds, each=each):
                world.stations[broker].each = each
                world.after(seconds, setattr, world.stations[broker], "each", 0.0)
            case steps.Cut(links=links, seconds=seconds, noticed=noticed):
                for link in links:
                    wire = world.wires[link]
                    wire.cut_until = max(wire.cut_until, world.now + seconds)
                    world.cut(wire, *noticed)
                    world.after(seconds, world.connect, wire)
            case steps.Lag(link=link, seconds=seconds, more=more):
                world.wires[link].more = more
                world.after(seconds, setattr, world.wires[link], "more", 0.0)
            case steps.Full(broker=broker, seconds=seconds):
                world.stations[broker].disk.full = True
                world.after(seconds, world.room, world.stations[broker])
            case steps.SlowDisk(broker=broker, seconds=seconds, each=each):
                world.stations[broker].disk_each = each
                world.after(seconds, setattr, world.stations[broker], "disk_each", DISK_EACH)
            case steps.Jump(broker=broker, by=by):
                world.jump(world.stations[broker], by)
            case steps.Older(broker=broker, down=down):
                come_back_older(world, world.stations[broker], self._copies.get(step.number), down)
            case steps.Flip(broker=broker, share=share):
                flip(world, world.stations[broker], share, step.number)
            case steps.Depart(broker=broker):
                depart(world, world.stations[broker])
            case steps.Join(broker=broker):
                world.begin(world.stations[broker])
            case _:
                self._client_step(step)

    def _copy_disk(self, step: steps.Older) -> None:
        self._copies[step.number] = copy_disk(self.world, self.world.stations[step.broker])

    def _crash_now(self, station: FaultyStation, plan: CrashPlan) -> None:
        if station.plans and station.plans[0] is plan:
            self.world.crash(station, plan.share, plan.down)

    def _client_step(self, step: steps.Step) -> None:
        clients = self.clients
        match step:
            case steps.Say():
                clients.publisher(step.publisher).say(step)
            case steps.Shift(publisher=publisher, broker=broker):
                clients.shift(publisher, broker)
            case steps.Take():
                taker = clients.takers[step.name] = FaultConsumer(self.world, step, self._scenario)
                taker.connect(step.broker)
            case steps.Leave(name=name) if name in clients.takers:
                clients.takers[name].leave(step.manner, step.seconds, step.broker)
            case steps.Twice(name=name) if name in clients.takers:
                clients.takers[name].twice(step.brokers)
            case steps.Refilter(name=name) if name in clients.takers:
                clients.takers[name].change(step.filter)
            case steps.Halt(name=name) if name in clients.takers:
                clients.takers[name].halt(step.seconds)
            case steps.Rewind(name=name) if name in clients.takers:
                clients.takers[name].rewind()
            case steps.End(name=name) if name in clients.takers:
                clients.takers[name].end()


def _about(step: steps.Say | steps.OfTaker) -> object:
    return step.numbers[0] if isinstance(step, steps.Say) else step.name
