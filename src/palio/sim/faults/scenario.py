"""`FaultScenario`: everything that decides a run with faults. The same scenario gives the same run, always."""

from __future__ import annotations

from palio.routing.reconfiguration.settings import Protocol
from palio.sim.faults.knots import Word
from palio.sim.faults.station import CrashPlan
from palio.sim.faults.steps import Step
from palio.sim.scenario import AnyScenario, Shape, StrategyName, Topology

# Fields that say how often something goes wrong, or is done by clients, and the most of it in a soak.
TROUBLE = {
    "crashes": 3, "pauses": 3, "cuts": 4, "partitions": 2, "lags": 3, "full_disks": 2, "slow_disks": 2,
    "jumps": 3, "leaves": 5, "refilters": 2, "ends": 1, "joins": 2, "shifts": 2,
}  # fmt: skip


class FaultScenario(AnyScenario, frozen=True, kw_only=True, tag="faults"):
    """A network, who is on it, what they do and what goes wrong, for `length` simulated seconds.

    Which kinds of trouble there are, and how much of each, depends on the seed, too, where it is drawn for a
    soak.
    """

    seed: int = 1
    shape: Shape = "line"
    topology: Topology = "acyclic"
    brokers: int = 3
    strategy: StrategyName = "covering"
    merging_excess: float = 0.0
    advertisements: bool = False
    reconfiguration: Protocol = "notified"

    takers: int = 2
    publishers: int = 2
    notifications: int = 20
    length: float = 20.0
    late: bool = False  # whether publishers come only when they have something to say

    # How often something goes wrong or is done, in all
    crashes: int = 0
    pauses: int = 0
    cuts: int = 0
    partitions: int = 0
    lags: int = 0
    full_disks: int = 0
    slow_disks: int = 0
    jumps: int = 0
    leaves: int = 0
    refilters: int = 0
    ends: int = 0
    joins: int = 0  # brokers that are not there at the beginning
    shifts: int = 0  # publishers that go on at another broker
    halts: int = 0  # subscriptions that are paused for a while
    rewinds: int = 0  # subscriptions that are moved back to the beginning
    older: int = 0  # disks that come back older than they were, or empty
    flips: int = 0  # disks of which bits flip
    forget_after: float = 0.0  # seconds after which brokers forget those that are away; 0: never
    flapping: float = 0.0  # seconds from one change of some link to the next, all the time; 0: none are drawn
    relays: int = 0  # brokers that keep nothing, beside the others
    departs: int = 0  # brokers that leave the network for good, in order
    anew: bool = False  # whether takers whose home cannot be reached begin anew at times
    batched: bool = False  # whether takers acknowledge several at once, also just before they leave or end it
    lake: bool = False  # whether what is trimmed can still be read, mostly
    groups: bool = False  # whether several writes reach a disk together
    documents: int = 0  # how often documents are published, or withdrawn
    keepers: int = 0  # brokers that keep the current documents of the whole network
    beginners: int = 0  # subscriptions that begin with the current documents
    retries: bool = False  # whether takers say how, and how soon, what they reject is to be tried again

    outbox: int = 12
    page: int = 3
    attempts: int = 1000
    independent: bool = False  # whether chances say nothing about each other; those of older scenarios did
    mix: tuple[Word, ...] = ()  # how the steps are drawn, and what is drawn together; without it, evenly
    script: tuple[Step, ...] = ()  # these steps instead of what the seed draws: they stay what they are
    scene: str = ""  # one of a few small scenes instead of luck
    crash_at: tuple[CrashPlan, ...] = ()  # crashes of brokers, by the effects that they carry out in a scene
    keep: tuple[int, ...] | None = None  # of the steps only these, by number, to look at a failure

    def __post_init__(self) -> None:
        self._demand_some("brokers", "publishers", "takers", "page", "attempts", "outbox")
        self._demand_more_than_nothing("length")
