"""Membership: the brokers that were ever heard of, and were not forgotten; who they are is on disk.

Everyone in the network waits for all of them where a promise is made, so nobody may slip anyone's mind by a
crash. See `topology` for how they are counted, and for what it means to be forgotten.

A link *counts* when its neighbour is on disk here as one that was heard of. Before that nothing of the network
is told there or heard from there, and no question asked or answered: what comes waits. All that goes there is
news without content, by which the neighbour knows that this broker delivers durably, too. So whoever is known
here and is there can be asked.

1. *Who has heard of a broker is found from there.* Say that A leads to B if A has on disk that it knows B, or
   somebody who leads to B. If B has heard of A, A leads to B: a neighbour C told it, which is A or has heard of
   A itself; and it told it by a link that counts, so C has B on disk.
2. *Whoever asks everyone asks all who have heard of the network.* All whom the asker has on disk have to answer
   in one epoch, and each of them tells of all whom it has on disk before it does. So a filter is changed, and a
   subscription ready, only when all have been asked to whom its home leads, whatever crashed meanwhile.
3. What a broker takes from its clients before it has heard of anybody has no such promise: nobody can tell it
   from one that is alone. A neighbour that has told no count is on disk with one that no broker has
   (`Topology.heard_of`): so others hear of it after a crash, and it is not taken for one that has told us.
4. Nobody who has left is brought back. A neighbour that has told no count is taken for what was known of it
   when it came: if it was forgotten since, it stays so until it says that it is there after all. Who has left
   for good greets nobody; who is about to is a member again if somebody knows it beyond its last count.
5. That a link comes up is a change of the network, and that it begins to count is another one: what was asked
   in between was not asked there.
6. A link to a relay counts at once, and nothing of the relay is on disk. Whom only relays have told of is
   known, but not heard of (`strangers`). The counts of relays themselves are heard from anybody, and passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from palio.protocol.durable.journals import Forget, Forgot
from palio.protocol.durable.peers import TopologyChanged
from palio.routing.durable.desk import Desk, UnknownBroker
from palio.routing.durable.effects import ForgottenWhy, ReportForgotten
from palio.routing.durable.facts import FactKind
from palio.routing.durable.network.topology import INCARNATION_BITS, Counts, Topology
from palio.routing.durable.origin.introduced import Introduced
from palio.routing.durable.origin.retention import Retention
from palio.routing.effects import Send


class CountingLinks:
    """The links of this broker that count; `neighbours` are those to whom there is a link at all."""

    def __init__(self, neighbours: Callable[[], Iterable[str]]) -> None:
        self.neighbours = neighbours
        self.counting: set[str] = set()
        self.relays: set[str] = set()
        self.taken_for: dict[str, int] = {}  # by neighbour: its count, as far as it was known when it came

    def brokers(self) -> list[str]:
        """The neighbours whose links count."""
        return [name for name in self.neighbours() if name in self.counting]


@dataclass(eq=False, repr=False)
class Membership:
    """The members of the network. `listeners` hear, in this order, that the epoch is another.

    `began_anew` hears of brokers that did. The life of this broker before this one was `opened_before`, as far
    as its disk knows.
    """

    _desk: Desk
    _topology: Topology
    _links: CountingLinks
    _retention: Retention
    _introduced: Introduced
    _listeners: tuple[Callable[[], None], ...]
    _began_anew: Callable[[str], None]
    _opened_before: int

    def link_gained(self, neighbour: str, *, is_relay: bool) -> None:
        """Handles a new link. Who was about to leave is a member again: there may be others to ask now."""
        if self._topology.is_gone:
            return
        topology = self._topology
        if is_relay:
            topology.rejoin()
            self._links.relays.add(neighbour)
            self._links.counting.add(neighbour)
            self.change(neighbour)
            return
        self._links.taken_for[neighbour] = topology.versions.get(neighbour, self._no_count(neighbour))
        topology.rejoin()
        if neighbour in topology.known:
            self._count_when_saved(neighbour)
        if neighbour not in self._links.counting:
            self._tell(neighbour, ())
            self.change()

    def link_lost(self, neighbour: str) -> None:
        self._links.counting.discard(neighbour)
        self._links.relays.discard(neighbour)
        self._links.taken_for.pop(neighbour, None)
        if not self._topology.is_gone:
            self._topology.rejoin()
            self.change()

    def change(self, new: str | None = None) -> None:
        """Count a change, and tell the neighbours; one that is `new` is told of everyone."""
        news = self._topology.change()
        gone = (self._topology.own,) if self._topology.left else ()
        for name in self._links.brokers():
            if name == new:
                forgotten = (*self._topology.forgotten.items(), *gone)
                self._tell(name, self._topology.all(), forgotten, tuple(self._topology.relays.items()))
            else:
                self._tell(name, news, gone)
        self._changed()

    def leave(self) -> None:
        """Let everybody forget this broker, from now on."""
        self._topology.leave()
        self.change()

    def rejoin(self) -> None:
        """Be a member again, as far as others have forgotten this broker."""
        self._topology.rejoin()
        self.change()

    def hear(self, source: str, message: TopologyChanged) -> None:
        """Handles a `TopologyChanged` from a neighbour; it is heard when the link to it counts."""
        if source in self._links.counting:
            self._hear(source, message)
            return
        if self._topology.is_gone:
            return
        if source not in self._topology.known:
            self._retention.save(FactKind.KNOWN.of(source), self._links.taken_for[source])
        self._count_when_saved(source)
        self.when_counting(source, lambda: self._hear(source, message))

    def met(self, strangers: Iterable[str]) -> None:
        """Handles that brokers are strangers no more: this one is found from them."""
        met = self._topology.meet(strangers)
        for broker, version in met:
            self._retention.save(FactKind.KNOWN.of(broker), version)
        for name in self._links.brokers() if met else ():
            self._tell(name, met)

    def _hear(self, source: str, message: TopologyChanged) -> None:
        forgotten = tuple(
            [one for one in message.forgotten if self._forget(*one, "left" if one[0] == source else "told")]
        )
        own, heard_of = self._desk.broker, self._topology.heard_of
        versions = message.versions + message.strangers
        if any(
            broker == own and self._topology.is_unknown_self(version, self._opened_before)
            for broker, version in versions
        ):
            self._retention.came_back_older()
        if any(broker == own and version > self._topology.versions[own] for broker, version in versions):
            self._topology.rejoin()  # else nobody would agree with it for as long as it leaves
        relays = self._topology.hear_relays(message.relays)
        anew = {broker for broker, version in versions if self._topology.begins_anew(broker, version)}
        news = self._topology.hear(versions)
        has_changed = bool(news or forgotten or relays)
        if source in self._links.relays:
            self._topology.note_strangers(versions, heard_of)
        else:
            self._topology.note_strangers(message.strangers, heard_of)
            told = {broker for broker, version in message.versions if version >> INCARNATION_BITS}
            new = {broker for broker, _ in news}
            news += tuple([one for one in self._topology.meet(told) if one[0] not in new])
        for broker, _ in news:
            if broker != own and broker in anew:
                self._began_anew(broker)
        if any(broker == own for broker, _ in forgotten) and not any(broker == own for broker, _ in news):
            news += ((own, self._topology.versions[own]),)  # this broker is there after all
        for broker, version in news:
            if broker != own and broker not in heard_of:
                is_stranger = broker in self._topology.strangers
                on_disk = self._no_count(broker) if is_stranger else version
                self._retention.save(FactKind.KNOWN.of(broker), on_disk)
        if news or forgotten or relays:
            for name in self._links.brokers():
                if name != source or any(broker == own for broker, _ in news):
                    self._tell(name, news, forgotten, relays)
        if has_changed:
            self._changed()

    def when_counting(self, neighbour: str, then: Callable[[], None]) -> None:
        """Do something once the link to a neighbour counts, which may be now; never if it is lost before."""

        def if_linked() -> None:
            if neighbour in self._links.brokers():
                then()

        self._retention.when_saved((FactKind.KNOWN.of(neighbour),), if_linked)

    def _count_when_saved(self, neighbour: str) -> None:
        self._retention.when_saved((FactKind.KNOWN.of(neighbour),), lambda: self._count(neighbour))

    def _count(self, neighbour: str) -> None:
        """Lets a link count: the neighbour is on disk, so it may hear of everyone, and everyone of it."""
        links = self._links
        if neighbour in links.counting or neighbour not in links.taken_for or self._topology.is_gone:
            return
        news = self._topology.hear(((neighbour, links.taken_for[neighbour]),))  # or not: see 4
        if news:
            for name in links.brokers():
                self._tell(name, news)
        links.counting.add(neighbour)
        self.change(neighbour)

    def _no_count(self, broker: str) -> int:
        """What stands for the count of a broker that has not told it, and was not forgotten with it."""
        return self._topology.forgotten.get(broker, -1) + 1

    def forget(self, session: str, message: Forget) -> None:
        """Removes a member that an operator says is gone for good. Raises `UnknownBroker`."""
        broker = message.broker
        topology = self._topology
        counted = topology.known | topology.relays.keys() | topology.forgotten.keys()
        if broker == self._desk.broker or broker not in counted:
            raise UnknownBroker(broker)
        forgot = Forgot(broker, number=message.number)
        if not self.give_up(broker, "operator", lambda: self._desk.answer(session, forgot)):
            self._desk.answer(session, forgot)

    def give_up(self, broker: str, why: ForgottenWhy, then: Callable[[], None] | None = None) -> bool:
        """Removes a member as it is known now, everywhere; `then` is called when that is on disk here.

        Returns whether that is news.
        """
        topology = self._topology
        version = max(topology.versions.get(broker, 0), topology.relays.get(broker, 0))
        if not self._forget(broker, version, why, then):
            return False
        for name in self._links.brokers():
            self._tell(name, (), ((broker, version),))
        self._changed()
        return True

    def _forget(
        self, broker: str, version: int, why: ForgottenWhy, then: Callable[[], None] | None = None
    ) -> bool:
        """Removes a member: nobody waits for it, nothing is kept for it. False if that is no news."""
        was_known = broker in self._topology.known
        if not self._topology.forget(broker, version):
            return False
        self._introduced.forget(broker)  # first on disk: it will be no news again after a crash
        self._retention.save(FactKind.FORGOTTEN.of(broker), version, then)
        if was_known and broker not in self._topology.known:
            self._desk.save(FactKind.KNOWN.of(broker), None)
            report = ReportForgotten(
                broker, why, *self._retention.read_at(broker), self._retention.head, self._desk.now
            )
            self._desk.effects.append(report)
            self._retention.end_all_at(broker)
        return True

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()

    def _tell(self, broker: str, versions: Counts, forgotten: Counts = (), relays: Counts = ()) -> None:
        strangers = self._topology.strangers
        strange: Counts = ()
        if strangers and broker not in self._links.relays:
            strange = tuple([one for one in versions if one[0] in strangers])
            versions = tuple([one for one in versions if one[0] not in strangers])
        self._desk.effects.append(Send(broker, TopologyChanged(versions, forgotten, relays, strange)))
