"""Leaving: a broker goes for good, in order, and nobody misses anything.

An operator asks for it; that is on disk, and outlives crashes. From then on the broker takes nothing new that
would have to be kept: neither events nor durable subscriptions. It hands its durable subscriptions to a
neighbour, as to any next home, or to the nearest broker beyond, where all of these are relays; and it waits.
Then it lets itself be forgotten. With each tick it asks everybody what there is to wait for, so whoever looks
is told.

1. *Nothing that was confirmed here is unread*: every reader of this journal, on the disk of its home, is at
   its end, and so is every hold of an archive. All brokers are introduced, so all readers are known.
2. *Nobody's reader goes with this broker.* Whoever forgets a broker ends the readers that have their home
   there. So each broker says whose home it still believes to be here, and it is waited for until each says:
   nobody's. Questions of this broker arrive in their order, so none makes anybody believe so later.
3. *It has left when everybody has forgotten it, on disk.* It counts itself out of the epoch, as they do, so
   that all agree on it while it is still there; and it goes only when everybody answers in that epoch.
4. Who is away is waited for, since both its journal and its subscriptions may need something of this broker.

If it crashes before it has left, it is a member when it begins anew, and goes on leaving; so it is when one of
its links comes or goes while everybody is told, or somebody knows it again. When it has left, it may be started
once more, as any broker that was forgotten: then it is a member again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from palio.model.errors import PalioError
from palio.protocol.durable.letters import ReaderEnded
from palio.protocol.durable.peers import Told
from palio.protocol.peers import LinkKind
from palio.protocol.requests import Refused
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.composition import DurableParts
from palio.routing.durable.desk import ANSWER_WITHIN
from palio.routing.durable.effects import HasLeft
from palio.routing.durable.facts import FactKind, FactsFound, values_of
from palio.routing.durable.home.subscription import Durable, HomeState
from palio.routing.durable.origin.introductions import MOST_DOUBTED
from palio.routing.occurrences import PublishPart

LeaveStage = Literal["member", "leaving", "going", "left"]
MOST_NAMED = 20  # of readers that are waited for, in what is told


class BrokerLeaves(PalioError):
    """Something new was asked of a broker that is leaving the network."""

    broker: str
    sentence = "The broker {broker!r} is leaving the network and takes nothing new: ask another one."


class CannotLeave(PalioError):
    """A broker that cannot leave, as things are."""

    broker: str
    reason: str
    sentence = "The broker {broker!r} cannot leave: {reason}"


class LeaveStatus(msgspec.Struct, frozen=True):
    """How far a broker is with leaving, and what it waits for."""

    broker: str
    stage: LeaveStage
    here: int = 0  # durable subscriptions that have their home here
    to: str = ""  # the neighbour that is to have them
    head: int = 0  # of the journal here
    behind: tuple[tuple[str, int], ...] = ()  # who has not read all of it, and up to where: some of them
    unread: int = 0  # how many have not
    believed: tuple[tuple[str, int], ...] = ()  # brokers that believe so many to be here still
    away: tuple[str, ...] = ()  # brokers that do not answer
    older: tuple[str, ...] = ()  # those of an earlier version, which cannot say what they believe
    problem: str = ""  # what keeps it from going on, if nothing else would
    kept: int = 0  # events of the journal that nobody needs, and who looks back still finds


class Leaving:
    """A broker on its way out, if it is. `neighbours` are those to whom there is a link, and of which kind."""

    def __init__(
        self, parts: DurableParts, facts: FactsFound, neighbours: Callable[[], Mapping[str, Any]], tick: Alarm
    ) -> None:
        self._parts = parts
        self._desk = parts.desk
        self._neighbours = neighbours
        self._tick = tick
        self.stage: LeaveStage = "leaving" if values_of(FactKind.LEAVING, facts) else "member"
        self._wanted = ""  # the neighbour that was asked for
        self._to = ""
        self._handed: set[str] = set()  # what was handed over, by identity
        self._interrupted: set[str] = set()  # sessions of whose request an earlier part was refused
        self._declined: set[str] = set()  # neighbours that gave back what they were handed: they leave, too
        self._question: int | None = None
        self._round = 0
        self._until = 0.0
        self._doubted: dict[str, None] = {}  # readers that somebody believes to be here
        self._near: tuple[str, ...] = ()  # who has answered the last question, the nearest first
        self._away: tuple[str, ...] = ()
        self._believed: dict[str, int] = {}
        self._older: tuple[str, ...] = ()
        self._is_written = False  # whether all that has gone from here is on disk

    @property
    def is_under_way(self) -> bool:
        """Whether nothing new is taken."""
        return self.stage != "member"

    # What an operator asks

    def leave(self, to: str = "", *, parting: bool = False, own: str = "") -> None:
        """Begin to leave, or go on with it, with another neighbour as the next home.

        A durable subscription that is the broker's `own` ends. Raises `CannotLeave`.
        """
        if self.stage == "member":
            self.require_possible(to, parting=parting)
            self.stage = "leaving"
            self._desk.save(FactKind.LEAVING.of(""), 1)
            durable = self._parts.homes.subscriptions.get(own)
            if durable is not None and durable.state in (HomeState.BEHIND, HomeState.LIVE):
                self._part_with_taker(durable, BrokerLeaves(self._desk.broker))
                self._parts.lifecycle.finish(durable)
        elif to and to not in self._next_homes():
            self._refuse(f"There is no neighbour {to!r} that could take its durable subscriptions.")
        self._wanted = to or self._wanted
        self._tick.set()

    def stay(self) -> None:
        """Stay after all, without what has been handed over. Raises `CannotLeave` if it is too late."""
        if self.stage in ("going", "left"):
            self._refuse("it is too late to stay; everybody is being told. Start it anew when it has left.")
        if self.stage == "leaving":
            self.stage = "member"
            self._wanted = self._to = ""
            self._desk.save(FactKind.LEAVING.of(""), None)

    def require_possible(self, to: str = "", *, parting: bool = False) -> None:
        """Raises `CannotLeave` for what speaks against leaving that would not change by itself."""
        parts, neighbours = self._parts, self._neighbours()
        if len(parts.topology.known) == 1:
            self._refuse("it is alone; there is no network to leave. Stop it instead.")
        if to and to not in (next_homes := self._next_homes()):
            self._refuse(f"{to!r} is none of its neighbours, which are {', '.join(sorted(next_homes))}.")
        between = [name for name, kind in neighbours.items() if kind is not LinkKind.GRAPH]
        if len(between) > 1 and not parting:
            names = ", ".join(sorted(between))
            self._refuse(f"it is the only way between {names}. Link these first, or say that they may part.")

    def _refuse(self, reason: str) -> None:
        raise CannotLeave(self._desk.broker, reason)

    # What it takes no more

    def require_none(self) -> None:
        """Raises `BrokerLeaves` if nothing new is taken."""
        if self.is_under_way:
            raise BrokerLeaves(self._desk.broker)

    def publish(self, session: str, message: PublishPart) -> None:
        """Journals what is published, or refuses it; what is here already is confirmed all the same."""
        parts = self._parts
        known = not self.is_under_way or parts.journal.knows(
            message.publisher or session, message.notifications
        )
        if known and session not in self._interrupted:
            parts.appending.publish(session, message)
        elif not message.last:
            self._interrupted.add(session)
        else:
            self._interrupted.discard(session)
            parts.appending.session_closed(session)
            problem = BrokerLeaves(self._desk.broker)
            if message.number:
                self._desk.answer(session, Refused.of(f"publish {message.number}", problem, message.number))

    # On its way

    def again(self) -> bool:
        """Go on. Returns whether there is something to wait for."""
        if self.stage == "member":
            return False
        if self.stage == "going" and not self._parts.topology.left:
            self.stage, self._is_written = "leaving", False  # it is a member again
        if self.stage == "left":
            self._desk.effects.append(HasLeft())
            return False
        problem = BrokerLeaves(self._desk.broker)
        self._parts.relocation.refuse_all(problem)
        self._hand_over(problem)
        self._parts.telling.mark_again()
        if self._question is None or self._until <= self._desk.now:
            self._until = self._desk.now + ANSWER_WITHIN * self._desk.settings.tick
            behind = self._parts.journal.behind()
            doubted = (*self._doubted, *behind)[:MOST_DOUBTED]
            self._round += 1
            all_lists = bool(doubted) and self._round % ANSWER_WITHIN == 0  # they are long
            introduce = tuple(sorted(self._parts.topology.known)) if all_lists else ()
            ask = self._parts.polling.ask(leaving=True, doubted=doubted, introduce=introduce, then=self._told)
            self._question = ask.number
            self._parts.answering.answer(ask)
        return True

    def came_back(self, home: str, identity: str) -> None:
        """Handles a subscription that a neighbour hands over: who gives back what it has got leaves, too."""
        if self.is_under_way and identity in self._handed:
            self._declined.add(home)

    def _hand_over(self, problem: PalioError) -> None:
        """Hands all durable subscriptions here to a neighbour."""
        next_homes = self._next_homes()
        self._declined &= set(next_homes)
        able = [name for name in next_homes if name not in self._declined]
        self._to = self._wanted if self._wanted in able else next(iter(able), "")
        if not self._to:
            return
        for durable in list(self._parts.homes.subscriptions.values()):
            if durable.state in (HomeState.BEHIND, HomeState.LIVE):
                self._part_with_taker(durable, problem)
                self._handed.add(durable.identity)
                self._parts.relocation.hand_over(durable, self._to)

    def _next_homes(self) -> list[str]:
        """Who could take its durable subscriptions: neighbours; or, beyond relays, whoever has answered."""
        known = self._parts.topology.known  # who has just left may still be linked
        if links := sorted([name for name in self._parts.links.brokers() if name in known]):
            return links
        if not self._parts.links.relays:
            return []
        return [name for name in self._near or sorted(known - {self._desk.broker}) if name in known]

    def _part_with_taker(self, durable: Durable, problem: PalioError) -> None:
        if durable.taker is not None:
            refused = Refused.of(f"attach {durable.name}", problem, durable.asked)
            self._desk.answer(durable.taker, refused)
            self._parts.takers.detach(durable)

    def _told(self, told: Told) -> None:
        if told.number != self._question:
            return
        self._question = None
        self._tick.set()
        topology, broker = self._parts.topology, self._desk.broker
        others = topology.known - {broker}
        answered = {head.origin for head in told.heads} & others
        heads = sorted(told.heads, key=lambda head: (head.distance, head.origin))
        self._near = tuple([head.origin for head in heads if head.origin in answered])
        believed = dict(told.believed)
        self._away = tuple(sorted(others - answered))
        self._older = tuple(sorted(answered - believed.keys()))
        self._believed = {one: len(readers) for one, readers in sorted(believed.items()) if readers}
        for reader, sequence, incarnation in told.read:
            self._parts.retention.progress(((reader, sequence),), incarnation)
        self._end_readers(told)
        if set(told.epochs) != {topology.epoch} or self._away or self._older:
            return
        if self.stage == "going":
            if not self._is_free:
                self._parts.membership.rejoin()  # somebody new wants to read
            elif topology.left:
                self._left()
        elif not self._is_free:
            self._is_written = False
        elif self._is_written:
            self._go()
        else:  # what was done here until now shall outlive a crash; then everybody is asked once more
            self._desk.save(FactKind.LEAVING.of(""), 1, self._written)

    def _end_readers(self, told: Told) -> None:
        """Ends readers that have ended, here and wherever they are believed to be here: a letter was lost."""
        parts, known = self._parts, self._parts.topology.known
        ended = set(told.ended)
        if known <= {one.broker for one in told.introductions} and set(told.epochs) == {parts.topology.epoch}:
            # Of what has been handed over from one home to the next, each says where to: who is at none that
            # is there has ended at one that has left since.
            alive = {reader for one in told.introductions for reader, home in one.readers if home in known}
            ended |= {*self._doubted, *parts.journal.behind()} - alive
        for reader in ended:
            parts.retention.end(reader)
        self._doubted = {}
        for broker, readers in told.believed:
            for reader in readers:
                if reader in ended or parts.endings.has_ended(reader):
                    parts.letters.write(broker, ReaderEnded(reader))
                else:
                    self._doubted[reader] = None

    @property
    def _is_free(self) -> bool:
        """Whether nobody needs this broker any more (1, 2)."""
        parts, journal = self._parts, self._parts.journal
        if parts.homes.subscriptions or parts.wishes.by_name or self._believed:
            return False
        if journal.head > journal.stored or (journal.trimmed < journal.stored and parts.introduced.missing):
            return False
        return not self._unread()

    def _unread(self) -> list[tuple[str, int]]:
        """Who has not read all of the journal here, and up to where."""
        journal = self._parts.journal
        needed = {
            **{f"durable subscription {name}": at for name, at in journal.readers.items()},
            **{f"reader {name}": at for name, at in journal.held.items()},
        }
        return sorted(
            [(name, at) for name, at in needed.items() if at < journal.stored], key=lambda one: one[1]
        )

    def _written(self) -> None:
        self._is_written = True

    def _go(self) -> None:
        self.stage = "going"
        self._parts.membership.leave()

    def _left(self) -> None:
        self.stage = "left"
        self._parts.topology.is_gone = True
        # If it is started once more, it is a member as it was.
        self._desk.save(FactKind.LEAVING.of(""), None, self._tick.set)

    def status(self) -> LeaveStatus:
        """How far it is."""
        parts, journal = self._parts, self._parts.journal
        unread = self._unread()
        problem = ""
        if self.stage == "leaving" and parts.homes.subscriptions and not self._to:
            declined = ", ".join(sorted(self._declined))
            problem = (
                f"Nobody can take its durable subscriptions: {declined} would leave, too."
                if declined
                else "There is no neighbour now that could take its durable subscriptions."
            )
        return LeaveStatus(
            broker=self._desk.broker,
            stage=self.stage,
            here=len(parts.homes.subscriptions),
            to=self._to,
            head=journal.stored,
            behind=tuple(unread[:MOST_NAMED]),
            unread=len(unread),
            believed=tuple(self._believed.items()),
            away=tuple(sorted({*self._away, *parts.introduced.missing} if journal.readers else self._away)),
            older=self._older,
            problem=problem,
            kept=journal.stored - journal.begins,
        )
