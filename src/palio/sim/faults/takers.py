"""Takers: the clients of durable subscriptions.

A taker comes back when its broker has crashed, asks again when its home cannot be reached, repeats a change
or an end that was not answered, and acknowledges what it gets sooner, later or not at all; one by one, or
several together, and then also as the last thing that it says before it leaves or ends the subscription.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from palio.model.filter import Filter
from palio.protocol.durable.control import Pause, Paused, Resume, Seek, Sought
from palio.protocol.durable.lineage import JournalGap
from palio.protocol.durable.retry import Retry
from palio.protocol.durable.subscriptions import (
    Acknowledged,
    Attach,
    Attached,
    Change,
    Changed,
    Detach,
    Done,
    DurableReady,
    Finish,
    GapNoticed,
    Rejected,
    Taken,
)
from palio.protocol.envelope import Envelope
from palio.protocol.requests import Ended, Refused
from palio.routing.durable.effects import Hand
from palio.routing.occurrences import Close, Open
from palio.sim.faults.beginnings import BeginningReader
from palio.sim.faults.inspection import subscription_at
from palio.sim.faults.record import NEVER, Handing, SubscriptionWish, Taking
from palio.sim.faults.station import FaultyStation
from palio.sim.faults.steps import Take

if TYPE_CHECKING:
    from palio.sim.faults.scenario import FaultScenario
    from palio.sim.faults.world import World

_ATTACH_WITHIN = 15.0  # seconds until a taker tries again
_BATCH = 3  # deliveries that are acknowledged together, of the four that may be out
_LOOK_AGAIN = 0.5  # seconds between two looks whether a broker is back
# What subscriptions want that have a wish: less than the broker's patience.
_RETRY = Retry(attempts=4, first_pause=0.2, longest_pause=2.0)


class FaultConsumer:
    """The client of one durable subscription, in one session after the other."""

    def __init__(self, world: World, take: Take, scenario: FaultScenario) -> None:
        self.world = world
        self._batched = scenario.batched  # whether it acknowledges several deliveries at once
        self._batches: dict[str, list[int]] = {}  # by session: what will be acknowledged together
        self._impatient = scenario.anew  # whether it begins anew at times, if its home cannot be reached
        self._retries = scenario.retries  # whether it says how what it rejects is to be tried again
        self.name = take.name
        self.broker = take.broker
        self.session = ""  # the present one
        self.attached = False
        self.away = False
        self.sessions: dict[str, str] = {}  # those that live, and their brokers
        self._looking: dict[str, str] = {}  # those whose wish to attach was not answered, and their brokers
        self._connections = 0
        self._lives: dict[str, str] = {}  # by broker: the identity of the subscription that was last there
        self._finishing = ""  # the session in which the end was asked for
        self._halted = self._is_halted = False  # whether it wants to be paused, and is
        self._halting: tuple[str, bool] | None = None  # the session in which that was asked for, and what
        self._rewinds = 0  # how often it wants everything once more
        self._rewinding = ""  # the session in which that was asked for
        self.taking = world.record.takings[take.name] = Taking(take.name, take.since)
        self.beginning: BeginningReader | None = None
        if take.retroactive:
            self.beginning = BeginningReader(world, take.name, Filter.parse(take.filter))
        first = self._wish(take.filter)
        first.known = world.record.moment
        self._changing = "", first  # the session in which a change was asked for, and to what

    @property
    def _ended(self) -> bool:
        return self.taking.ended != NEVER

    def _wish(self, filter: str) -> SubscriptionWish:
        wish = SubscriptionWish(self.world.record.tick(), Filter.parse(filter))
        self.taking.wishes.append(wish)
        return wish

    # Coming and going

    def connect(self, broker: str) -> None:
        """Come (back), to a broker that may be down."""
        if self._ended:
            return
        world = self.world
        self.away = False
        self.broker = broker = world.place_for(broker)
        self.attached = False
        self._connections += 1
        self.session = session = f"{self.name}.{self._connections}"
        station = world.stations[broker]
        if not world.is_open(station):
            world.after(_LOOK_AGAIN, self._if_still, session, self.connect, broker)
            return
        self.sessions[session] = broker
        world.note(self.name, f"connects to {broker} as {session}", self.name)
        world.post(station, Open(), session)
        self._attach(session)
        world.after(_ATTACH_WITHIN, self._give_up, session)

    def _attach(self, session: str, anew: bool = False) -> None:
        if session in self.sessions:
            # As a client does: with what it knows to be in force, should it have to be created once more.
            filter = [wish.filter for wish in self.taking.wishes if wish.known != NEVER][-1]
            self._looking[session] = self.sessions[session]
            if anew:
                self.world.note(self.name, "begins anew", self.name)
                self.world.record.given_up.add(self.name)
            retry = _RETRY if self._retries else None
            self._post(session, Attach(self.name, filter, self.taking.since, anew, as_is=True, retry=retry))

    def _give_up(self, session: str) -> None:
        if session == self.session and not self.attached and not self.away:
            self.world.note(self.name, "has had no answer and connects again", self.name)
            self._close(session)
            self.connect(self.broker)

    def _if_still(self, session: str, do: Callable[..., None], *arguments: object) -> None:
        if session == self.session and not self.away:
            do(*arguments)

    def _connect_soon(self, session: str) -> None:
        self.attached = False
        self.world.after(1.0, self._if_still, session, self.connect, self.broker)

    def _post(self, session: str, message: object) -> None:
        broker = self.sessions.get(session)
        if broker is not None:
            self.world.post(self.world.stations[broker], message, session)

    def _close(self, session: str) -> None:
        self._acknowledge(session)
        self._post(session, Close())
        if self.sessions.pop(session, None):  # nobody closes what has vanished: its wish goes on
            self._looking.pop(session, None)

    def leave(self, manner: str, seconds: float, broker: str) -> None:
        """Go away in one of several manners, and come back later."""
        if self.taking.ending != NEVER:
            return
        world, session = self.world, self.session
        self.away = True
        self.attached = False
        if manner == "closes":
            self._close(session)
        elif manner == "detaches":
            self._acknowledge(session)
            self._post(session, Detach(self.name))
            if session in self.sessions:
                self._looking.pop(session, None)
        elif manner == "moves":
            pass  # the old session is left to itself: it hears that another one has taken over
        elif session in self.sessions:
            world.after(4.0, self._found_gone, session, self.sessions.pop(session))
        world.after(seconds, self._back, session, broker)

    def _found_gone(self, session: str, broker: str) -> None:
        """A broker finds out that a client has vanished."""
        if self._looking.pop(session, None):
            self._ask()
        self.world.post(self.world.stations[broker], Close(), session)

    def _back(self, session: str, broker: str) -> None:
        if self.away and self.session == session:
            self.connect(broker)

    def lost(self, broker: str) -> None:
        """A broker crashed."""
        for session in [one for one, place in self.sessions.items() if place == broker]:
            del self.sessions[session]
        self._looking = {session: place for session, place in self._looking.items() if place != broker}
        if self.broker == broker and not self.away:
            self.attached = False
            world, place = self.world, broker
            if not world.calm and world.chance("elsewhere", self.session) < 0.25:
                places = [station.name for station in world.members]
                place = places[int(world.chance("where", self.session) * len(places))]
            world.after(0.3, self._if_still, self.session, self.connect, place)
        else:
            self._ask()

    def come_back(self) -> None:
        """All faults are over."""
        if self.away:
            self.connect(self.broker)

    # Wishes

    def twice(self, brokers: tuple[str, str]) -> None:
        """Connect two times at once."""
        if self.taking.ending == NEVER:
            for broker in brokers:
                self.connect(broker)

    def change(self, filter: str) -> None:
        if self.beginning is not None or self._ended or self.taking.ending != NEVER:
            return
        self._wish(filter)
        self._ask()

    def halt(self, seconds: float) -> None:
        if not self._halted and self.taking.ending == NEVER:
            self._halted = True
            self._ask()
            self.world.after(seconds, self._go_on)

    def _go_on(self) -> None:
        self._end_halt()
        self._halted = False
        self._ask()

    def _end_halt(self) -> None:
        halts = self.taking.halts
        if halts and halts[-1][1] == NEVER:
            halts[-1] = halts[-1][0], self.world.record.tick()

    def rewind(self) -> None:
        if self.beginning is None and self.taking.ending == NEVER:
            self.taking.rewound = True
            self._rewinds += 1
            self._ask()

    def end(self) -> None:
        if self.taking.ending == NEVER:
            self.taking.ending = self.world.record.tick()
            # A pause ends with its subscription. Who does not hear of the end attaches again, and may make
            # a new one, which is not paused.
            self._end_halt()
            if self.away:
                self.connect(self.broker)
            else:
                self._ask()

    def _ask(self) -> None:
        """Ask for what was not answered yet."""
        if not self.attached:
            return
        if self.taking.ending != NEVER:
            # Another session of ours that is still looking for it would create it once more.
            if not self._ended and not self._looking and self._finishing != self.session:
                self._finishing = self.session
                self._acknowledge(self.session)
                self._post(self.session, Finish(self.name))
        elif self.taking.wishes[-1].known == NEVER and self._changing[0] != self.session:
            # An answer does not say to which change it belongs: the next one waits for it.
            self._changing = self.session, self.taking.wishes[-1]
            self._post(self.session, Change(self.name, self.taking.wishes[-1].filter))
        if self.taking.ending == NEVER:
            self._steer()

    def _steer(self) -> None:
        wish = self.session, self._halted
        if self._halted != self._is_halted and self._halting != wish:
            self._halting = wish
            self._post(self.session, Pause(self.name) if self._halted else Resume(self.name))
        if self._rewinds and self._rewinding != self.session:
            self._rewinding = self.session
            self._post(self.session, Seek(self.name, "all"))

    # Hearing

    def answered(self, session: str, answer: object) -> None:
        world, record, taking = self.world, self.world.record, self.taking
        if isinstance(answer, Attached | Refused | Taken) and session in self._looking:
            del self._looking[session]
            if session != self.session:
                self._ask()
        if session not in self.sessions:
            return
        if not isinstance(answer, Done):
            world.note(self.name, f"hears {answer}", self.name)
        match answer:
            case Attached():
                if session == self.session:
                    self.attached = True
                    if self.beginning is not None:
                        self.beginning.attached(session, world.stations[self.sessions[session]])
                    self._is_halted, self._halting = answer.paused, None
                    self._ask()
            case Paused() | Sought():
                self._steered(session, answer)
            case Refused(_, "NotHome", _) if session == self.session and taking.ending == NEVER:
                self._rewinding = ""
                self._connect_soon(session)
            case GapNoticed(_, origin, after, upto, noticed, what):
                taking.gaps.append(JournalGap(origin, after, upto, noticed, what))
            case DurableReady():
                taking.readies.append(record.moment)
                if taking.ready == NEVER:
                    taking.ready = record.moment
                    taking.ready_trimmed = {
                        name: one.disk.history_will_begin for name, one in world.stations.items()
                    }
            case Done(_, deliveries):
                record.tick()
                for delivery in deliveries:
                    record.done.setdefault((self.name, delivery), record.moment)
            case Changed():
                # One that another session of ours asked for may come true first.
                if session == self._changing[0] and answer.filter == self._changing[1].filter:
                    self._changing[1].known = record.moment
                    self._changing = "", taking.wishes[-1]
                    self._ask()
            case Ended() if not self._looking:
                taking.ended = record.tick()
            case Taken() if session == self.session and not self.away:
                self._connect_soon(session)
            case Refused(_, "HomeUnreachable", _) if session == self.session:
                anew = self._impatient and world.chance("anew", session, world.now) < 0.4
                world.after(1.5, self._if_still, session, self._attach, session, anew)
            case Refused(_, "HistoryUnavailable" | "BrokerLeaves", _) if session == self.session:
                self._connect_soon(session)
            case Refused(_, "NotTaker", _) if session == self.session:
                if answer.kind in ("change", "finish"):
                    self._connect_soon(session)

    def _steered(self, session: str, answer: Paused | Sought) -> None:
        if isinstance(answer, Sought):
            if session == self._rewinding:
                self._rewinds, self._rewinding = self._rewinds - 1, ""
        elif session == self.session:
            self._is_halted, self._halting = answer.paused, None
            if answer.paused and self._halted and self.taking.ending == NEVER:
                self.taking.halts.append((self.world.record.tick(), NEVER))
        self._ask()

    def handed(self, station: FaultyStation, hand: Hand) -> None:
        for handed in hand.deliveries:
            seen = hand.session in self.sessions
            self._note(station, handed, seen)
            if seen:
                self._think(hand.session, handed[0], handed[1])

    def _note(self, station: FaultyStation, handed: tuple[int, int, Envelope], seen: bool) -> None:
        world, record = self.world, self.world.record
        delivery, attempt, envelope = handed
        number = envelope.notification["n"]
        what = (
            f"{'gets' if seen else 'is gone and does not get'} delivery {delivery} from {station.name}, "
            f"attempt {attempt}: {envelope.origin}#{envelope.sequence} (n={number})"
        )
        world.note(self.name, what, self.name, number)
        when = record.tick(), world.now, station.last
        life = self._life(station)
        record.handings.append(Handing(*when, station.name, self.name, *handed, seen, life))

    def _life(self, station: FaultyStation) -> str:
        """Which one of its name it is; it may have ended just after it delivered something."""
        found = subscription_at(station, self.name)
        if found is not None:
            self._lives[station.name] = found.identity
        return self._lives.get(station.name, "")

    def _think(self, session: str, delivery: int, attempt: int) -> None:
        world = self.world
        luck = world.chance("think", self.name, delivery, attempt)
        if world.calm or luck < (0.4 if self._retries else 0.7):
            if self._batched:
                self._collect(session, delivery, luck)
            else:
                world.after(0.01 + 0.3 * luck, self._post, session, Acknowledged(self.name, (delivery,)))
        elif luck < 0.8:
            rejected = self._rejected(delivery, attempt) if self._retries else Rejected(self.name, (delivery,))
            world.after(0.02, self._post, session, rejected)
        elif luck < 0.9:
            world.after(40.0 * (luck - 0.8) + 1.0, self._post, session, Acknowledged(self.name, (delivery,)))

    def _collect(self, session: str, delivery: int, luck: float) -> None:
        """Acknowledge something together with others: when there are some, or after a while."""
        batch = self._batches.setdefault(session, [])
        batch.append(delivery)
        if len(batch) == 1:
            self.world.after(0.1 + luck, self._acknowledge, session)
        elif len(batch) == _BATCH:
            self._acknowledge(session)

    def _acknowledge(self, session: str) -> None:
        """Acknowledge what waits for that."""
        batch = self._batches.pop(session, ())
        if batch:
            self._post(session, Acknowledged(self.name, tuple(batch)))

    def _rejected(self, delivery: int, attempt: int) -> Rejected:
        """After a delay, or for good, or as the subscription wants it; with a reason."""
        luck = self.world.chance("tried again", self.name, delivery, attempt)
        delay = 8.0 * luck if luck < 0.5 else None
        return Rejected(self.name, (delivery,), delay, f"attempt {attempt}", dead_letter=luck > 0.8)

    def unanswered(self) -> list[str]:
        taking = self.taking
        found = [f"{session} has had no answer to its wish to attach" for session in self._looking]
        if taking.ending != NEVER:
            if not self._ended:
                found.append(f"{self.name} has not been told that it has ended")
            return found
        open_ends = {
            "has not had all current documents": self.beginning is not None and not self.beginning.done,
            "is not attached": not self.attached,
            "has not been told that it is ready": taking.ready == NEVER,
            "has not been told that its filter has changed": taking.wishes[-1].known == NEVER,
            "has not been told that it is paused, or goes on": self._is_halted != self._halted,
            "has not been told that it gets everything once more": self._rewinds > 0,
        }
        return found + [f"{self.name} {what}" for what, is_so in open_ends.items() if is_so]
