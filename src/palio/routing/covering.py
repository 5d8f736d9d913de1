"""Covering: a neighbour is told of a filter only if it was not told of a wider one.

The rule of Carzaniga, Rosenblum and Wolf is: a filter goes to all ports that it is for, except those to which
something that strictly covers it goes. An entry is for all ports but at most one (its only source). So what
lies above an entry leaves only three possibilities for the ports that are still *open* for it:

- nothing lies above it: all ports;
- everything above it came from one and the same port p, and from nowhere else: p alone, since there, and only
  there, none of those is sent;
- otherwise none.

So it is enough to count, for each entry, the entries strictly above it by their excluded port (`above`). When
an entry comes, goes, or gets or loses a source, the counts of all below it change. Which ports are counted at
all is what matters, so an entry is looked at again only where a count began or ended. This holds with
advertisements too: what overlaps an advertisement is covered only by what overlaps it as well, so a port that
attracts an entry attracts all above it.

A port that does not see all sources (`reconfiguration.sight`) is not counted: what lies above an entry there is
looked at.

Which filters cover each other comes from an order (`matching.order`) that routers of one process may share
(`facts`). Each table holds a reference to the nodes that it uses.
"""

from __future__ import annotations

from palio.matching.order import Item as Coverable
from palio.matching.order import Order, OrderNode
from palio.routing.table import Identity, Port, Ports, TableEntry


class Covering(Identity[Coverable]):
    """Sends what nothing else that is sent covers."""

    def __init__(self, order: Order[Coverable], *, by_partners: bool = False) -> None:
        super().__init__(by_partners=by_partners)
        self._order = order
        self._known = order.get

    def _place(self, item: Coverable) -> OrderNode[Coverable]:
        return self._known(item) or self._order.insert(item)

    def _entered(self, entry: TableEntry[Coverable]) -> None:
        node: OrderNode[Coverable] = entry.place
        node.value = (node.value or 0) + 1
        ancestors = node.ancestors()
        if ancestors:
            above: dict[Port | None, int] = {}
            for upper in self.entries_at(ancestors):
                excluded = upper.sources.excluded
                above[excluded] = above.get(excluded, 0) + 1
            if above:
                entry.above = above
        self._count_below(entry, entry.sources.excluded, 1)

    def _changed(self, entry: TableEntry[Coverable], before: Port | None) -> None:
        self._count_below(entry, before, -1)
        self._count_below(entry, entry.sources.excluded, 1)

    def _left(self, entry: TableEntry[Coverable], before: Port | None) -> None:
        self._count_below(entry, before, -1)
        super()._left(entry, before)
        node: OrderNode[Coverable] = entry.place
        node.value -= 1
        if not node.value:
            self._order.remove(node)

    def _count_below(self, entry: TableEntry[Coverable], excluded: Port | None, change: int) -> None:
        descendants = entry.place.descendants()
        if descendants:
            for lower in self.entries_at(descendants):
                if _count(lower, excluded, change):
                    self.unsettled[lower] = None

    def _targets(self, entry: TableEntry[Coverable]) -> Ports:
        above = entry.above
        if not above:
            return self._wanted_on(entry)
        if len(above) == 1:
            (port,) = above
            if port is not None and port in self._wanted_on(entry):
                return (port,)
        return ()

    def _reaches(self, entry: TableEntry[Coverable], port: Port) -> bool:
        if not self._wanted_in_sight(entry, port):
            return False
        above = self.entries_at(entry.place.ancestors())
        return not any(self._wanted_in_sight(upper, port) for upper in above)

    def _look_again(self, entry: TableEntry[Coverable]) -> None:
        super()._look_again(entry)
        self.unsettled.update(dict.fromkeys(self.entries_at(entry.place.descendants())))


def _count(entry: TableEntry[Coverable], excluded: Port | None, change: int) -> bool:
    """One more or less of those above is for all ports but the excluded one. Whether a count began or ended."""
    above = entry.above
    if above is None:
        above = entry.above = {}
    before = above.get(excluded, 0)
    count = before + change
    if count:
        above[excluded] = count
    else:
        del above[excluded]
    return not (before and count)
