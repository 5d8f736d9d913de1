"""Links to neighbours, and the names by which an acyclic network notices a cycle before it closes.

Every connected part of an acyclic network has a name, a `Component`: some broker in it and a count of that
broker's. Two brokers that find the same name at both ends of a new link are connected already, and the link
is refused. When a link joins two parts, the smaller name wins and spreads through the other part. Each broker
remembers from which neighbour its name came (`toward`); if the link to that one goes, it makes a new name for
what is left on its side, which spreads away from it. A name is taken

- from the neighbour towards the name's origin always: that one knows better;
- from any other neighbour if it is smaller; if it is larger, that neighbour is told ours;
- if it is the same name, from another neighbour than where ours came from, there are two ways to the same
  broker: two links that were made at the same moment have closed a cycle, and this one is given up.
"""

from __future__ import annotations

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.routing.messages import Component, LinkKind
from palio.routing.table import Entry

COUNTERPART = {
    LinkKind.PEER: LinkKind.PEER,
    LinkKind.MASTER: LinkKind.BELOW,
    LinkKind.BELOW: LinkKind.MASTER,
    LinkKind.GRAPH: LinkKind.GRAPH,
}


class Link:
    """A link, and the rows that came on it, by number."""

    __slots__ = ("advertisements", "broker", "cost", "established", "kind", "rows", "told")

    def __init__(self, broker: str, kind: LinkKind, cost: float) -> None:
        self.broker = broker
        self.kind = kind
        self.cost = cost
        self.established = False
        self.told: Component | None = None  # the name of our part that the neighbour heard last
        self.rows: dict[int, Entry[Filter]] = {}
        self.advertisements: dict[int, Entry[Advertisement]] = {}


class Naming:
    """The name of the part of the acyclic network that this broker is in."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._count = 0
        self.component = Component(broker)
        self.toward: str | None = None

    def hear(self, component: Component, neighbour: str) -> str:
        """A neighbour says the name of its part. Returns what follows: `adopted`, `ours`, `same` or `cycle`."""
        if neighbour == self.toward:
            if component == self.component:
                return "same"
            self.component = component
            return "adopted"
        if component == self.component:
            return "cycle"
        if component > self.component:
            return "ours"
        self.component = component
        self.toward = neighbour
        return "adopted"

    def lose(self, neighbour: str) -> bool:
        """The link to a neighbour is gone. Returns whether this side has a new name by that."""
        if neighbour != self.toward:
            return False
        self._count += 1
        self.component = Component(self._broker, self._count)
        self.toward = None
        return True
