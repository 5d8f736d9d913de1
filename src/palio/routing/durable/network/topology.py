"""Epochs: how brokers notice that the network has changed between two events.

Each broker counts the changes of its links, and tells everyone; who joins is told all counts. The *epoch* is a
digest of all counts that a broker knows. It is the same everywhere once a change has been told to all, and
different for as long as somebody does not know of it.

An event and a mark carry the epoch of the broker that sent them. A broker that passes one on in another epoch
takes it out. So what arrives with the epoch that the receiver is in has travelled a network in which no link
came or went: nothing can have been lost before it, on links that keep order.

Who hears of a change tells it before anything else that it sends: so each broker on the way knows at least what
the one before it knew, and if the first and the last of them are in one epoch, all between them have been. That
holds for whatever carries the epoch of its sender, questions for instance. Taking it out on the way says early
what the receiver would find out; only about a broker that was heard of and forgotten meanwhile could first and
last agree, and one between them not.

A broker that is gone for good is *forgotten*, up to the count that was known of it: its count is left out of
the digest, and no longer told. Both counts only grow, so that everyone comes to the same epoch in whatever
order they hear of them. Should it be there after all, it counts on from there, and is known again.

A *relay* keeps nothing, and nobody waits for it. It counts its links as all do, since what passes it is lost
with them, and its count is in the epoch; but it is none of those that are `known`. One name may have two
counts: that of a broker which is waited for until it is forgotten, and that of the relay as which it has begun
since.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView
from hashlib import blake2b
from typing import Self, TypeAlias

from palio.routing.durable.facts import FactKind, FactsFound, values_of

Counts: TypeAlias = tuple[tuple[str, int], ...]  # of changes, by broker

INCARNATION_BITS = 29
MAX_OWN = 2**61  # no broker has counted so far: who says that this one has is wrong
_RELAY = b"relay"  # what tells the count of a relay from that of a broker of its name


class Topology:
    """The counts of changes that a broker knows."""

    def __init__(
        self,
        broker: str,
        incarnation: int,
        heard_of: dict[str, int],
        forgotten: dict[str, int],
        *,
        is_relay: bool = False,
    ) -> None:
        """`heard_of` are the brokers that a former incarnation knew: who joins here shall know of them, too."""
        self._broker = broker
        self._is_relay = is_relay
        self.forgotten = forgotten
        self.versions: dict[str, int] = {}
        self.relays: dict[str, int] = {}
        self.strangers: set[str] = set()  # those of whom only relays have told, so far (`strangers`)
        self.left = False  # whether this broker has counted itself out
        self.is_gone = False  # and for good
        self.epoch = 0
        for name, version in heard_of.items():
            self._take(name, version)
        (self._take_relay if is_relay else self._take)(broker, incarnation << INCARNATION_BITS)

    @classmethod
    def recovered(cls, broker: str, incarnation: int, facts: FactsFound) -> Self:
        """What a broker that begins anew knows: also whom a former self had heard of, and was not to forget."""
        forgotten = values_of(FactKind.FORGOTTEN, facts)
        known = values_of(FactKind.KNOWN, facts)
        heard_of = {name: count for name, count in known.items() if count > forgotten.get(name, -1)}
        return cls(broker, incarnation, heard_of, forgotten)

    @property
    def known(self) -> KeysView[str]:
        """All brokers that were ever heard of and not forgotten, but for relays; a live view."""
        return self.versions.keys()

    def change(self) -> Counts:
        """Count a link of this broker that came or went. Returns the news: of brokers, or of relays."""
        if self._is_relay:
            return self._take_relay(self._broker, self.relays[self._broker] + 1)
        return self._take(self._broker, self.versions[self._broker] + 1)

    def hear(self, versions: Counts) -> Counts:
        """Handles counts from a neighbour. Returns what of it is news."""
        news: Counts = ()
        for broker, version in versions:
            is_own = broker == self._broker and not self._is_relay
            if is_own and (version > MAX_OWN or self.left):
                continue
            if version > max(self.versions.get(broker, -1), self.forgotten.get(broker, -1)):
                # Only this broker counts for itself; an older self may have counted further.
                news += self._take(broker, version + 1 if is_own else version)
        return news

    def hear_relays(self, counts: Counts) -> Counts:
        """Handles counts of relays from a neighbour. Returns what of it is news."""
        news: Counts = ()
        for relay, count in counts:
            is_own = relay == self._broker and self._is_relay
            if is_own and count > MAX_OWN:
                continue
            if count > max(self.relays.get(relay, -1), self.forgotten.get(relay, -1)):
                news += self._take_relay(relay, count + 1 if is_own else count)
        return news

    def note_strangers(self, counts: Counts, heard_of: set[str]) -> None:
        """Note of whom only relays have told: those who have counted, and were not `heard_of` before."""
        for broker, version in counts:
            is_name = not version >> INCARNATION_BITS
            if not is_name and broker in self.versions and broker not in heard_of and broker != self._broker:
                self.strangers.add(broker)

    def meet(self, strangers: Iterable[str]) -> Counts:
        """Note that these are none any more. Returns the counts of those that were."""
        met = self.strangers.intersection(strangers)
        self.strangers -= met
        return tuple([(broker, self.versions[broker]) for broker in sorted(met)])

    def begins_anew(self, broker: str, version: int) -> bool:
        """Whether a count is of a later life of a broker than any that was heard of."""
        return version >> INCARNATION_BITS > self.versions.get(broker, -1) >> INCARNATION_BITS

    def is_unknown_self(self, version: int, opened_before: int) -> bool:
        """Whether a count is of a life of this broker that its disk does not know, between its last two.

        Then the disk came back older than it was.
        """
        own = self.versions[self._broker] >> INCARNATION_BITS
        return opened_before < version >> INCARNATION_BITS < own

    def forget(self, broker: str, version: int) -> bool:
        """Forget a broker that is gone for good, up to a version. Returns whether that is news."""
        if version <= self.forgotten.get(broker, -1) or (broker == self._broker and self.left):
            return False
        self.forgotten[broker] = version
        known = self.versions.get(broker, version + 1)
        if known <= version:
            if broker == self._broker and not self._is_relay:  # not at all
                self._take(broker, version + 1)
            else:
                del self.versions[broker]
                self.strangers.discard(broker)
                self.epoch ^= _digest(broker, known)
        relay = self.relays.get(broker, version + 1)
        if relay <= version:
            if broker == self._broker and self._is_relay:
                self._take_relay(broker, version + 1)
            else:
                del self.relays[broker]
                self.epoch ^= _digest(broker, relay, _RELAY)
        return True

    def forget_all(self) -> None:
        """Forget what a relay has been told, as it is alone: nobody is there who has heard of it, too."""
        own = self.relays[self._broker]
        self.versions.clear()
        self.relays.clear()
        self.forgotten.clear()
        self.epoch = 0
        self._take_relay(self._broker, own)

    def leave(self) -> None:
        """Count this broker out, as all others do that forget it: its count is in no epoch any more."""
        self.left = True
        self.epoch ^= _digest(self._broker, self.versions[self._broker])

    def rejoin(self) -> None:
        """Count this broker in again; its next count is news to all who have forgotten it."""
        if self.left and not self.is_gone:
            self.left = False
            self.epoch ^= _digest(self._broker, self.versions[self._broker])

    @property
    def own(self) -> tuple[str, int]:
        """This broker and its count."""
        return self._broker, self.versions[self._broker]

    @property
    def heard_of(self) -> set[str]:
        """The brokers that have counted anything, as far as this one was told, and not by relays alone."""
        heard_of = {name for name, version in self.versions.items() if version >> INCARNATION_BITS}
        return heard_of - self.strangers

    def all(self) -> Counts:
        """All counts; not that of this broker, if it has counted itself out."""
        return tuple([one for one in self.versions.items() if not self.left or one[0] != self._broker])

    def _take(self, broker: str, version: int) -> Counts:
        if broker == self._broker and self.left:
            self.versions[broker] = version
            return ()
        if broker in self.versions:
            self.epoch ^= _digest(broker, self.versions[broker])
        self.versions[broker] = version
        self.epoch ^= _digest(broker, version)
        return ((broker, version),)

    def _take_relay(self, relay: str, count: int) -> Counts:
        if relay in self.relays:
            self.epoch ^= _digest(relay, self.relays[relay], _RELAY)
        self.relays[relay] = count
        self.epoch ^= _digest(relay, count, _RELAY)
        return ((relay, count),)


def _digest(broker: str, version: int, kind: bytes = b"") -> int:
    # Never 0, which marks what has met two epochs; and within what every wire format can say.
    return int.from_bytes(blake2b(f"{version} {broker}".encode(), digest_size=7, person=kind).digest()) | 1
