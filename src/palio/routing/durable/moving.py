"""Moving: a durable subscription follows its client to another home.

Who wants a subscription asks everyone for its home. The home answers with its own name, or, once it has begun
to hand it over, with that of the next one: from then on that one may have it. The former home keeps what it
has until the next one says that all is on disk there, and writes again until then. So there is always at least
one broker that has it, and never two that deliver. Each home has a higher generation; a broker remembers up to
which one it has handed a subscription on, and does not take an older one back from a letter that comes late.

A client that began anew, while its home could not be reached, leaves two of that name: of these, the one that
was created later stays. Homes hear of each other when they ask how far the journals are; the older one retires.

Two who look for a subscription that is nowhere hear of each other; only the one with the smaller name creates
it. If the home is not among those who answer, that is said. Only if every broker that was ever heard of has
answered, and none is the home, there is no such subscription.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.model.errors import FilterDiffers, NoSuchSubscription, PalioError
from palio.routing.durable.desk import Desk, HomeUnreachable, created_at
from palio.routing.durable.homes import Homes
from palio.routing.durable.messages import (
    Ask,
    Attach,
    Content,
    Differs,
    MovedIn,
    MoveIn,
    MoveOut,
    Newer,
    NotHere,
    Taken,
    Told,
)
from palio.routing.durable.outbox import DeadLetters
from palio.routing.durable.subscription import Durable, State
from palio.routing.messages import Refused

# Who looks for a subscription answers others who do with its name and this: of several, one creates it.
LOOKING = "?"
# How many ticks a session waits for a subscription that is elsewhere before it is refused.
GIVE_UP_AFTER = 5
# What is handed over and not answered is written again with the next tick; what has more bytes than this, after
# as many more ticks as it has more, since it may still be on its way.
BYTES_A_TICK = 4 << 20


class Moving:
    """Subscriptions that are looked for, asked for, and handed over."""

    def __init__(
        self,
        desk: Desk,
        homes: Homes,
        *,
        ask: Callable[[str], Ask],
        answer: Callable[[Ask], None],
        write: Callable[[str, Content], bool],
    ) -> None:
        self._desk = desk
        self._homes = homes
        self._ask = ask
        self._answer = answer
        self._write = write
        # Who wants what, and until when: by the number of the question; and what is to be asked again.
        self._looking: dict[int, tuple[str, Attach, float]] = {}
        self._again: list[tuple[str, Attach, float]] = []
        self._rivals: dict[str, set[str]] = {}  # by name: who else was heard to look for it meanwhile
        self._waiting: dict[str, tuple[str, Attach, str, float]] = {}  # by name: session, request, home, until

    # At the next home

    def attach(self, session: str, attach: Attach) -> None:
        """A session wants a subscription that is not here, or on its way from here.

        If another one here is waiting for it, that one waits in vain: the latest is the taker.
        """
        name = attach.name
        former = [one for one, other, _ in [*self._looking.values(), *self._again] if other.name == name]
        if name in self._waiting:
            former.append(self._waiting.pop(name)[0])
        self._looking = {number: one for number, one in self._looking.items() if one[1].name != name}
        self._again = [one for one in self._again if one[1].name != name]
        for one in former:
            if one != session:
                self._desk.answer(one, Taken(name))
        self._look(session, attach, self._desk.now + GIVE_UP_AFTER * self._desk.settings.tick)

    def _look(self, session: str, attach: Attach, until: float) -> None:
        durable = self._homes.subscriptions.get(attach.name)
        if durable is not None and durable.state is not State.MOVING:
            self._homes.give_to(durable, session, attach)
        elif durable is not None:
            self._again.append((session, attach, until))  # first it has to arrive where it goes
        else:
            ask = self._ask(attach.name)
            self._looking[ask.number] = session, attach, until
            self._answer(ask)

    def told(self, told: Told, known: set[str]) -> bool:
        """Everyone has answered who has it. Returns whether the question was about that."""
        found = self._looking.pop(told.number, None)
        if found is None:
            return False
        session, attach, until = found
        name = attach.name
        durable = self._homes.subscriptions.get(name)
        if durable is not None and durable.state is not State.MOVING:
            self._homes.give_to(durable, session, attach)
            return True
        answered = {head.origin for head in told.heads}
        homes = [home for home in told.homes if home != self._desk.broker and not home.endswith(LOOKING)]
        rivals = {home.removesuffix(LOOKING) for home in told.homes if home.endswith(LOOKING)}
        rivals |= self._rivals.pop(name, set())
        coming = self._desk.broker in told.homes  # another one says that it is on its way to us
        if coming or (not homes and any(rival < self._desk.broker for rival in rivals)):
            self._again.append((session, attach, until))  # or another one may be about to create it
            return True
        missing = (
            tuple(sorted({*homes, *known} - answered)) if not homes else tuple(sorted({*homes} - answered))
        )
        if homes and not missing:
            # Where one has handed it on to another, the latter is asked; it says so itself if it has it.
            self._waiting[name] = session, attach, homes[0], until
            for home in dict.fromkeys(homes):
                self._write(home, MoveOut(name, attach.expected))
        elif not homes and (attach.anew or not missing):
            if attach.filter is None:
                self._refuse(session, name, NoSuchSubscription(self._desk.called(name)))
            else:
                self._homes.create(session, attach, attach.filter)
        else:
            self._refuse(session, name, HomeUnreachable(name, missing))
        return True

    def come(self, sender: str, letter: MoveIn) -> None:
        """A subscription is handed over."""
        name = letter.name
        durable = self._homes.subscriptions.get(name)
        here = durable is not None and durable.identity == letter.identity
        if letter.generation <= self._homes.ended.get(letter.identity, 0) or (
            durable is not None and here and durable.generation >= letter.generation
        ):
            if durable is None or durable.state is not State.STORING:
                self._write(sender, MovedIn(name, letter.identity, letter.generation))
            return
        if durable is not None and not here:
            self.hear_of(name, letter.identity, sender)
            if name in self._homes.subscriptions:
                return  # the one that is here was created later
        elif durable is not None:
            return  # an older one is on its way from here: that comes first
        durable = Durable(
            name,
            letter.filter,
            since=letter.since,
            identity=letter.identity,
            generation=letter.generation,
            patience=self._desk.settings.patience,
        )
        durable.position = dict(letter.position)
        for number, attempts, envelope in letter.spool:
            durable.outbox.add(number, attempts, envelope)
        durable.dead = DeadLetters(letter.dead)
        numbers = [number for number, *_ in (*letter.spool, *letter.dead)]
        durable.next_delivery = max([0, *numbers, letter.next_delivery - 1]) + 1
        durable.ready_told = letter.ready
        durable.linger = letter.linger
        durable.paused = letter.paused
        durable.look_for_reread()
        self._homes.leave_alone(durable)

        def stored() -> None:
            self._write(sender, MovedIn(name, letter.identity, letter.generation))
            waiting = self._waiting.pop(name, None)
            if waiting is not None:
                self._homes.give_to(durable, waiting[0], waiting[1])

        self._homes.adopt(durable, stored)

    def differs(self, sender: str, letter: Differs) -> None:
        """It is there, with another filter than the session asked for."""
        waiting = self._waiting.get(letter.name)
        if waiting is not None and waiting[1].expected is not None:
            session, attach, _, _ = self._waiting.pop(letter.name)
            problem = FilterDiffers(self._desk.called(letter.name), str(letter.filter), str(attach.filter))
            self._refuse(session, letter.name, problem)

    def not_here(self, sender: str, letter: NotHere) -> None:
        """The broker that should have had it has not: look again."""
        waiting = self._waiting.get(letter.name)
        if waiting is not None and waiting[2] == sender:
            session, attach, _, until = self._waiting.pop(letter.name)
            self._again.append((session, attach, until))

    # Two of one name

    def hear_of(self, name: str, identity: str, home: str) -> None:
        """Another broker speaks of a subscription that it has: of two of one name, the older one retires."""
        durable = self._homes.subscriptions.get(name)
        if durable is None or durable.identity == identity:
            return
        if created_at(durable.identity) < created_at(identity):
            self._homes.retire(durable)
        else:
            self._write(home, Newer(name, durable.identity))

    def newer(self, sender: str, letter: Newer) -> None:
        """Another broker has one that was created later."""
        durable = self._homes.subscriptions.get(letter.name)
        if durable is not None and created_at(durable.identity) < created_at(letter.identity):
            self._homes.retire(durable)

    # At the former home

    def home_of(self, name: str, asker: str) -> tuple[str, ...]:
        """What this broker answers to who looks for a subscription."""
        durable = self._homes.subscriptions.get(name)
        if durable is not None:
            return (durable.moving_to or self._desk.broker,)
        looking = any(attach.name == name for _, attach, _ in [*self._looking.values(), *self._again])
        if looking and asker != self._desk.broker:
            self._rivals.setdefault(name, set()).add(asker)
        return (self._desk.broker + LOOKING,) if looking else ()

    def asked_for(self, sender: str, letter: MoveOut) -> None:
        """The next home asks for a subscription."""
        durable = self._homes.subscriptions.get(letter.name)
        if durable is None or durable.state is State.STORING:
            self._write(sender, NotHere(letter.name))
            return
        if durable.state is not State.MOVING:
            if letter.filter is not None and letter.filter != self._homes.filter_of(durable):
                self._write(sender, Differs(letter.name, self._homes.filter_of(durable)))
                return
            self._homes.begin_moving(durable, sender, lambda: self._hand_over(durable))
        elif durable.moving_to == sender:
            self._hand_over_again(durable)

    def gone(self, sender: str, letter: MovedIn) -> None:
        """The next home has it on disk."""
        durable = self._homes.subscriptions.get(letter.name)
        if durable is None or durable.moving_to != sender or durable.identity != letter.identity:
            return
        if letter.generation == durable.generation + 1:
            self._homes.finish(durable, "handed over")

    def again(self) -> bool:
        """Write again what was not answered, give up what cannot be reached. Returns whether anything waits."""
        for number, (session, attach, until) in list(self._looking.items()):
            if until <= self._desk.now:
                del self._looking[number]
                self._unreachable(session, attach.name, "a broker that does not answer")
        looking, self._again = self._again, []
        for session, attach, until in looking:
            if until <= self._desk.now:
                durable = self._homes.subscriptions.get(attach.name)
                home = durable.moving_to if durable is not None else None
                self._unreachable(session, attach.name, home or "another broker")
            else:
                self._look(session, attach, until)
        moving = [one for one in self._homes.subscriptions.values() if one.state is State.MOVING]
        for durable in moving:
            self._hand_over_again(durable)
        for name, (session, attach, home, until) in list(self._waiting.items()):
            if until <= self._desk.now:
                del self._waiting[name]
                self._unreachable(session, name, home)
            else:
                self._write(home, MoveOut(name, attach.expected))
        return bool(moving or self._waiting or self._looking or self._again)

    def _hand_over_again(self, durable: Durable) -> None:
        ticks = (durable.outbox.bytes + durable.dead.bytes) // BYTES_A_TICK
        if durable.moving_stored and durable.handed_at + ticks * self._desk.settings.tick <= self._desk.now:
            self._hand_over(durable)

    def _hand_over(self, durable: Durable) -> None:
        assert durable.moving_to is not None
        durable.handed_at = self._desk.now
        self._write(
            durable.moving_to,
            MoveIn(
                durable.name,
                durable.identity,
                durable.generation + 1,
                durable.filter,
                durable.since,
                tuple(durable.position.items()),
                tuple([(one.number, one.attempts, one.envelope) for one in durable.outbox.deliveries.values()]),
                tuple(durable.dead),
                durable.next_delivery,
                durable.ready_told,
                durable.linger,
                durable.paused,
            ),
        )

    def _unreachable(self, session: str, name: str, home: str) -> None:
        self._refuse(session, name, HomeUnreachable(name, (home,)))

    def _refuse(self, session: str, name: str, problem: PalioError) -> None:
        self._desk.answer(session, Refused.of(f"attach {name}", problem))
