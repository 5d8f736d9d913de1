"""The protocols as their authors wrote them down, with the mistakes mended, and nothing of the product.

A broker knows its neighbours and a set of pairs (who, pattern). Messages take a moment and keep their order on
a link. Two counts are kept of what is said: `SUB` and `UNSUB` are all of it; `added` and `removed` leave out
what the receiver of a link has been told already, or has never been told. A broker that remembers what it has
told sends only these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import heappop, heappush
from itertools import count

STRAWMAN, DEFERRED, NOTIFIED, INFORMED = "strawman", "deferred", "notified", "informed"
HOP = 0.01


class Net:
    """Brokers that run a protocol, as a tree of links."""

    def __init__(self, names, protocol, *, defer=3.0, hold=6.0):
        self.protocol = protocol
        self.defer = defer
        self.hold = hold
        self.now = 0.0
        self.said = Counter()
        self.brokers = {name: Broker(name, self) for name in names}
        self._queue = []
        self._number = count()
        self._life = {}  # of links that are up
        self._reconfigurations = count(1)

    def after(self, seconds, do, *arguments):
        heappush(self._queue, (self.now + seconds, next(self._number), do, arguments))

    def run(self, until=float("inf")):
        while self._queue and self._queue[0][0] <= until:
            self.now, _, do, arguments = heappop(self._queue)
            do(*arguments)
        if until < float("inf"):
            self.now = until

    def send(self, source, target, kind, *content):
        """Over a link."""
        self.said[kind] += 1
        life = self._life.get(frozenset((source, target)))
        if life is not None:
            self.after(HOP, self._arrive, source, target, life, kind, content)

    def _arrive(self, source, target, life, kind, content):
        if self._life.get(frozenset((source, target))) == life:
            self.brokers[target].hear(source, kind, *content)

    # What happens to the tree

    def _up(self, one, other):
        self._life[frozenset((one, other))] = next(self._number)

    def link(self, one, other):
        self._up(one, other)
        self.brokers[one].link_added(other)
        self.brokers[other].link_added(one)

    def cut(self, one, other):
        del self._life[frozenset((one, other))]
        self.brokers[one].link_removed(other)
        self.brokers[other].link_removed(one)

    def replace(self, old, new, wait):
        """The link between A and B goes; a moment later there is one between C, on A's side, and D."""
        (a, b), (c, d) = old, new
        name = next(self._reconfigurations)
        if self.protocol in (STRAWMAN, DEFERRED):
            self.cut(a, b)
            self.after(wait, self.link, c, d)
            return
        del self._life[frozenset(old)]
        patterns = {one: self.brokers[one].lost(other, name) for one, other in ((a, b), (b, a))}
        self.after(wait, self._replaced, c, d, name, patterns[a], patterns[b])

    def _replaced(self, c, d, name, of_a, of_b):
        if self.protocol == NOTIFIED:
            of_a = of_b = frozenset()
        self._up(c, d)
        self.said["ACTIVATE"] += 2
        self.brokers[c].activate(name, of_a, d)
        self.brokers[d].activate(name, of_b, c)

    def die(self, dead, links, wait):
        """A broker dies; each child finds a link: pairs of who takes it, and the child."""
        neighbours = self.brokers[dead].neighbours
        del self.brokers[dead]
        names = {}
        for one in neighbours:
            self._life.pop(frozenset((one, dead)), None)
            if self.protocol in (STRAWMAN, DEFERRED):
                self.brokers[one].link_removed(dead)
            else:
                name = next(self._reconfigurations)
                # The child knows both: what only the dead broker wanted of it, and what only it wanted there.
                # The link to the parent is simply lost: what came on it is deferred.
                names[one] = name, *self.brokers[one].two_lists(dead)
                self.brokers[one].lost(dead, name, hides=one not in [child for _, child in links])
        for parent, child in links:
            if self.protocol in (STRAWMAN, DEFERRED):
                self.after(wait, self.link, parent, child)
            else:
                name, ours, theirs = names[child]
                self.after(wait, self._replaced, parent, child, name, theirs, ours)

    def tables(self):
        return {name: frozenset(broker.table) for name, broker in self.brokers.items()}


class Broker:
    def __init__(self, name, net):
        self.name = name
        self.net = net
        self.neighbours = []
        self.table = set()  # (who, pattern)
        self.told = defaultdict(set)  # what each neighbour was told, to count what is said again
        self.waiting = {}  # parked, by reconfiguration
        self.tagged = {}  # held back, by reconfiguration

    # Saying

    def say(self, target, kind, pattern):
        if target not in self.neighbours:
            return  # a client
        told = self.told[target]
        if kind == "SUB" and pattern not in told:
            told.add(pattern)
            self.net.said["added"] += 1
        elif kind == "UNSUB" and pattern in told:
            told.discard(pattern)
            self.net.said["removed"] += 1
        self.net.send(self.name, target, kind, pattern)

    def say_all(self, but, kind, pattern):
        for one in list(self.neighbours):
            if one != but:
                self.say(one, kind, pattern)

    def hear(self, source, kind, *content):
        {"SUB": self.sub, "UNSUB": self.unsub, "FLUSH": self.flush}[kind](source, *content)

    # Subscription forwarding

    def of(self, pattern):
        return [who for who, what in self.table if what == pattern]

    def patterns(self):
        return sorted({what for _, what in self.table})

    def sub(self, who, pattern):
        if (who, pattern) in self.table:
            return
        before = self.of(pattern)
        self.table.add((who, pattern))
        if not before:
            self.say_all(who, "SUB", pattern)
        elif len(before) == 1:
            self.say(before[0], "SUB", pattern)

    def unsub(self, who, pattern):
        if (who, pattern) in self.table:
            self.table.discard((who, pattern))
            self.dropped(who, pattern)

    def dropped(self, who, pattern):
        left = self.of(pattern)
        if not left:
            self.say_all(who, "UNSUB", pattern)
        elif len(left) == 1:
            self.say(left[0], "UNSUB", pattern)

    # Strawman and deferral

    def link_added(self, other):
        self.neighbours.append(other)
        self.told[other] = set()
        for pattern in self.patterns():
            self.say(other, "SUB", pattern)

    def link_removed(self, other):
        self.lost(other, object())

    def lost(self, other, name, hides=False):
        """The link to another broker is gone. Returns the patterns that only this one wanted."""
        only = frozenset(what for _, what in self.table if self.of(what) == [other])
        self.neighbours.remove(other)
        lost = sorted(what for who, what in self.table if who == other)
        defers = self.net.protocol != STRAWMAN and self.net.defer
        if not defers or not self.neighbours:
            for pattern in lost:
                self.unsub(other, pattern)
            return only
        if hides or self.net.protocol != INFORMED:  # where they stay, and are not told to the new neighbour
            self.table -= {(other, what) for what in lost}
        self.waiting[name] = other, lost
        self.net.after(self.net.defer, self.unwait, name)
        return only

    def unwait(self, name):
        other, lost = self.waiting.pop(name, (None, ()))
        for pattern in lost:
            if other not in self.neighbours:  # otherwise the same link is back, and has told anew
                self.table.discard((other, pattern))
            if (other, pattern) not in self.table:
                self.dropped(other, pattern)

    # Informed activation

    def two_lists(self, dead):
        """P1, what only the dead broker wanted here; and P2, what it wanted nobody else to know of."""
        heard = {what for who, what in self.table if who == dead}
        ours = frozenset(what for what in heard if self.of(what) == [dead])
        return ours, frozenset(self.told[dead] - heard)

    def activate(self, name, held, other):
        self.neighbours.append(other)
        self.told[other] = set()
        self.tagged[name] = other, [what for what in self.patterns() if what in held]
        for pattern in self.patterns():
            if pattern not in held:
                self.say(other, "SUB", pattern)
        self.net.after(self.net.hold, self.untag, name)
        self.net.send(self.name, other, "FLUSH", name)

    def untag(self, name):
        other, held = self.tagged.pop(name)
        for pattern in held:
            if other in self.neighbours and set(self.of(pattern)) - {other}:
                self.say(other, "SUB", pattern)

    def flush(self, source, name):
        if name in self.waiting:
            self.unwait(name)
        else:
            for one in self.neighbours:
                if one != source:
                    self.net.send(self.name, one, "FLUSH", name)
