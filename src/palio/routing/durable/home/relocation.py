"""Relocation: a durable subscription follows its client to another home.

Who wants a subscription asks everyone for its home. The home answers with its own name, or, once it has begun
to hand it over, with that of the next one: from then on that one may have it. The former home keeps what it
has until the next one says that all is on disk there, and writes again until then. So there is always at least
one broker that has it, and never two that deliver. Each home has a higher generation; a broker remembers up to
which one it has handed a subscription on, and does not take an older one back from a letter that comes late.
A question may come to the next home before the subscription does, and to the former home after that was told
to forget it: so the next home first tells whoever may believe that it has it not (`wishes`), and the former one
may forget it when they have noted it. No clock is asked: what was answered in several epochs is looked for
again, so that who cannot be told creates nothing, either. Once it has gone on from there, its newest home has
seen to that.

See `namesakes` for two of one name, `wishes` for who waits for a subscription.

Two who look for a subscription that is nowhere hear of each other; only the one with the smaller name creates
it. If the home is not among those who answer, that is said. Only if every broker that was ever heard of has
answered, and none is the home, there is no such subscription. They answer when they have on disk that they
know who asks, so that each of them, after whatever crash, waits for the one that may have created it.
"""

from __future__ import annotations

from dataclasses import dataclass

from palio.model.errors import FilterDiffers, NoSuchSubscription, PalioError
from palio.protocol.durable.letters import (
    Arrived,
    Differs,
    MovedIn,
    MoveIn,
    MoveOut,
    Noted,
    NotHere,
)
from palio.protocol.durable.peers import Told
from palio.protocol.durable.subscriptions import Attach, Detach, Taken
from palio.protocol.durable.wishes import HomeUnreachable, require_sound
from palio.protocol.requests import Refused
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.home.endings import Endings
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.lifecycle import Lifecycle
from palio.routing.durable.home.namesakes import Namesakes
from palio.routing.durable.home.subscription import Durable, HomeState
from palio.routing.durable.home.takers import Takers, failures_of
from palio.routing.durable.home.wishes import GIVE_UP_AFTER, LOOKING, AttachWish, Wishes
from palio.routing.durable.network.answering import Answering
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.network.unicast import Unicast
from palio.routing.scopes import not_seen

# What is handed over and not answered is written again with the next tick; what has more bytes than this, after
# as many more ticks as it has more, since it may still be on its way.
BYTES_A_TICK = 4 << 20


@dataclass(eq=False, repr=False)
class Relocation:
    """Subscriptions that are looked for, asked for, and handed over."""

    _desk: Desk
    _homes: Homes
    _wishes: Wishes
    _lifecycle: Lifecycle
    _takers: Takers
    _endings: Endings
    _namesakes: Namesakes
    _topology: Topology
    _polling: Polling
    _answering: Answering
    _letters: Unicast
    _tick: Alarm

    # At the next home

    def attach(self, session: str, attach: Attach) -> None:
        """Attach a session: it becomes the taker now, or when the subscription has been moved here.

        If another one here is waiting for it, that one waits in vain: the latest is the taker. Raises
        `WrongAttachment`, `ContradictoryFilter` or `NotAllowed`.
        """
        require_sound(attach)
        if attach.filter is not None:
            attach.filter.require_satisfiable()
            if not self._desk.scopes.narrow(attach.name, attach.filter).conjunctions:
                raise not_seen(attach.name, "subscribe to this")
        former = self._wishes.by_name.pop(attach.name, None)
        if former is not None and former.session != session:
            self._desk.answer(former.session, Taken(attach.name))
        # What has just left may first have to arrive where it goes, which is waited for as long once more.
        ticks = GIVE_UP_AFTER * (2 if attach.name in self._homes.subscriptions else 1)
        wish = AttachWish(session, attach, self._desk.now + ticks * self._desk.settings.tick)
        if former is not None:
            wish.rivals = former.rivals
        self._look(wish)
        if self._wishes.by_name:
            self._tick.set()

    def detach(self, session: str, message: Detach) -> None:
        """Detach a session that wants or takes the subscription no more. Raises `NotTaker`."""
        if not self._wishes.withdraw(session, message.name):
            self._takers.detach(self._homes.of(session, message.name))

    def _look(self, wish: AttachWish) -> None:
        name = wish.attach.name
        durable = self._homes.subscriptions.get(name)
        if durable is not None and durable.state is not HomeState.MOVING:
            self._grant(wish, durable)
            return
        self._wishes.by_name[name] = wish
        wish.rest()
        if durable is None:  # otherwise it first has to arrive where it goes
            ask = self._polling.ask(name, then=self._told)
            wish.question = ask.number
            self._answering.answer(ask)

    def _grant(self, wish: AttachWish, durable: Durable) -> None:
        """Makes the session that waits the taker: the subscription is here."""
        self._wishes.by_name.pop(durable.name, None)
        self._takers.give_to(durable, wish.session, wish.attach)

    def _told(self, told: Told) -> None:
        """Handles the answers to who is the home of a subscription."""
        wish = next((one for one in self._wishes.by_name.values() if one.question == told.number), None)
        if wish is not None:
            self._go_on(wish, told)
            self._tick.set()

    def _go_on(self, wish: AttachWish, told: Told) -> None:
        """Ask for it where it is, or create it if it is nowhere."""
        name = wish.attach.name
        durable = self._homes.subscriptions.get(name)
        if durable is not None and durable.state is not HomeState.MOVING:
            self._grant(wish, durable)
            return
        answered = {head.origin for head in told.heads}
        homes = [home for home in told.homes if home != self._desk.broker and not home.endswith(LOOKING)]
        rivals = {home.removesuffix(LOOKING) for home in told.homes if home.endswith(LOOKING)}
        rivals |= wish.rivals
        wish.rivals = set()
        wish.rest()
        coming = self._desk.broker in told.homes  # another one says that it is on its way to us
        if coming or (not homes and any(rival < self._desk.broker for rival in rivals)):
            return  # it is looked for again: another one may be about to create it
        missing = tuple(sorted(set(homes or self._topology.known) - answered))
        if not homes and not wish.attach.anew and set(told.epochs) != {self._topology.epoch}:
            return  # it may have gone from who has answered later to who has answered before
        if homes and not missing:
            # Where one has handed it on to another, the latter is asked; it says so itself if it has it.
            wish.home = homes[0]
            for home in dict.fromkeys(homes):
                self._letters.write(home, MoveOut(name, wish.attach.expected))
        elif homes or not (wish.attach.anew or not missing):
            self._refuse(wish, HomeUnreachable(name, missing))
        elif wish.attach.filter is None:
            self._refuse(wish, NoSuchSubscription(self._desk.called(name)))
        else:
            del self._wishes.by_name[name]
            self._lifecycle.create(wish.session, wish.attach, wish.attach.filter)

    def come(self, sender: str, letter: MoveIn) -> None:
        """Handles a `MoveIn`: a subscription is handed over."""
        name = letter.name
        durable = self._homes.subscriptions.get(name)
        here = durable is not None and durable.identity == letter.identity
        if letter.generation <= self._endings.upto(letter.identity) or (
            durable is not None and here and durable.generation >= letter.generation
        ):
            if durable is None or not here:
                self._let_forget(sender, letter)  # it has gone on, or ended: who has it now says so itself
            elif durable.state is not HomeState.STORING:
                self._confirm(sender, letter)
            return
        if durable is not None and not here:
            self._namesakes.hear_of(name, letter.identity, sender)
            if name in self._homes.subscriptions:
                return  # the one that is here was created later
        elif durable is not None and durable.state in (HomeState.MOVING, HomeState.STORING):
            return  # an older one is on its way from here: that comes first
        elif durable is not None:  # it had gone from here, before the disk here came back older
            self._lifecycle.give_way(durable, sender)
        durable = self._lifecycle.restored(letter)
        numbers = [number for number, *_ in (*letter.spool, *letter.dead)]
        durable.next_delivery = max([0, *numbers, letter.next_delivery - 1]) + 1
        durable.ready_told = letter.ready
        durable.paused = letter.paused
        durable.unconfirmed = letter.unconfirmed
        self._takers.leave_alone(durable)

        def stored() -> None:
            self._confirm(sender, letter)
            wish = self._wishes.by_name.get(name)
            if wish is not None:
                self._grant(wish, durable)

        self._lifecycle.adopt(durable, stored)

    def _confirm(self, sender: str, letter: MoveIn) -> None:
        """Lets the former home forget what is here, or write again if it may not forget it yet."""
        believers = self._wishes.believers(letter.name, sender)
        for asker in believers:
            self._letters.write(asker, Arrived(letter.name))
        if not believers:
            self._let_forget(sender, letter)

    def _let_forget(self, sender: str, letter: MoveIn) -> None:
        self._letters.write(sender, MovedIn(letter.name, letter.identity, letter.generation))

    def differs(self, sender: str, letter: Differs) -> None:
        """Handles a `Differs`: it is there, with another filter than the session asked for."""
        wish = self._wishes.by_name.get(letter.name)
        if wish is not None and wish.home is not None and wish.attach.expected is not None:
            wanted = str(wish.attach.expected)
            self._refuse(wish, FilterDiffers(self._desk.called(letter.name), str(letter.filter), wanted))

    def not_here(self, sender: str, letter: NotHere) -> None:
        """Handles a `NotHere`: the broker that should have had it has not, so look again."""
        wish = self._wishes.by_name.get(letter.name)
        if wish is not None and wish.home == sender:
            wish.rest()

    def arrived(self, sender: str, letter: Arrived) -> None:
        """Handles an `Arrived`: whoever was told before that it is not there asks again."""
        wish = self._wishes.by_name.get(letter.name)
        if wish is not None and wish.question is not None:
            wish.rest()
        self._letters.write(sender, Noted(letter.name))

    def noted(self, sender: str, letter: Noted) -> None:
        """Handles a `Noted`: the former home, which writes again, may forget it as far as that one goes."""
        self._wishes.believes_no_more(letter.name, sender)

    def refuse_all(self, problem: PalioError) -> None:
        """Refuses all who wait for a subscription here."""
        for wish in list(self._wishes.by_name.values()):
            self._refuse(wish, problem)

    # At the former home

    def hand_over(self, durable: Durable, home: str) -> None:
        """Hands a subscription over to a home that has not asked for it."""
        self._lifecycle.begin_moving(durable, home, lambda: self._hand_over(durable))

    def asked_for(self, sender: str, letter: MoveOut) -> None:
        """Handles a `MoveOut`: the next home asks for a subscription."""
        durable = self._homes.subscriptions.get(letter.name)
        if durable is None or durable.state is HomeState.STORING:
            self._letters.write(sender, NotHere(letter.name))
            return
        if durable.state is not HomeState.MOVING:
            if letter.filter is not None and letter.filter != self._homes.filter_of(durable):
                self._letters.write(sender, Differs(letter.name, self._homes.filter_of(durable)))
                return
            self._lifecycle.begin_moving(durable, sender, lambda: self._hand_over(durable))
        elif durable.moving_to == sender:
            self._hand_over_again(durable)

    def gone(self, sender: str, letter: MovedIn) -> None:
        """Handles a `MovedIn`: the next home has it on disk, and this one may forget it."""
        durable = self._homes.subscriptions.get(letter.name)
        if durable is None or durable.moving_to != sender or durable.identity != letter.identity:
            return
        if letter.generation == durable.generation + 1:
            self._lifecycle.finish(durable, "handed over")

    def again(self) -> bool:
        """Retry what was not answered, give up what cannot be reached. Returns whether anything waits."""
        for name, wish in list(self._wishes.by_name.items()):
            durable = self._homes.subscriptions.get(name)
            if wish.until <= self._desk.now:
                going = durable.moving_to if durable is not None else None
                silent = "another broker" if wish.question is None else "a broker that does not answer"
                self._refuse(wish, HomeUnreachable(name, (wish.home or going or silent,)))
            elif wish.home is not None:
                self._letters.write(wish.home, MoveOut(name, wish.attach.expected))
            elif wish.question is None:
                self._look(wish)
        moving = [one for one in self._homes.subscriptions.values() if one.state is HomeState.MOVING]
        for durable in moving:
            self._hand_over_again(durable)
        return bool(moving or self._wishes.by_name)

    def _hand_over_again(self, durable: Durable) -> None:
        ticks = (durable.outbox.bytes + durable.dead.bytes) // BYTES_A_TICK
        if durable.moving_stored and durable.handed_at + ticks * self._desk.settings.tick <= self._desk.now:
            self._hand_over(durable)

    def _hand_over(self, durable: Durable) -> None:
        assert durable.moving_to is not None
        durable.handed_at = self._desk.now
        self._letters.write(
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
                durable.retry,
                failures_of(durable),
                durable.paused,
                tuple(durable.lineages.items()),
                durable.gaps,
                durable.unconfirmed,
            ),
        )

    def _refuse(self, wish: AttachWish, problem: PalioError) -> None:
        name = wish.attach.name
        del self._wishes.by_name[name]
        self._desk.answer(wish.session, Refused.of(f"attach {name}", problem, wish.attach.number))
