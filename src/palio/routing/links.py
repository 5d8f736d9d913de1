"""Links to neighbours, and the names by which an acyclic network notices a cycle before it closes.

Every connected part of an acyclic network has a name, a `Component`: some broker in it and a count of that
broker's. Two brokers that find the same name at both ends of a new link are connected already, and the link
is refused. When a link joins two parts, the smaller name wins and spreads through the other part; the names
that count are those in the two hellos, which both ends know.

A name spreads with the path that it took, from the broker that made it. Each broker remembers from which
neighbour its name came (`toward`); if the link to that one goes, it makes a new name for what is left on its
side, which spreads away from it. Later, a name is taken

- from the neighbour towards the name's origin always: that one knows better;
- from any other neighbour if it is smaller; if it is larger, that neighbour is told ours.

Two links that are made at the same moment may close a cycle that neither hello could show. Then some broker
hears its own name from a second neighbour, or one whose path it is on itself, and gives up that link. (While
links go and names change, that can be a mistake. It costs a link, which can be made again, where a cycle
would cost duplicates; and names cannot chase each other around a cycle for ever.)
"""

from __future__ import annotations

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.protocol.peers import Component, LinkKind
from palio.routing.table import TableEntry

COUNTERPART = {
    LinkKind.PEER: LinkKind.PEER,
    LinkKind.MASTER: LinkKind.BELOW,
    LinkKind.BELOW: LinkKind.MASTER,
    LinkKind.GRAPH: LinkKind.GRAPH,
}


# How often a broker may make a name without beginning anew; both together fit into a number of the wire.
_NAMES_IN_A_LIFE = 2**24
_MOST_LIVES = 2**36


class NeighbourLink(msgspec.Struct, eq=False):
    """A link, and the rows that came on it, by number."""

    broker: str
    kind: LinkKind
    cost: float
    established: bool = False
    # Whether this end has asked for it, and where the other end is (`overlay`).
    asks: bool = False
    host: str = ""
    # The name of our part, and its path, that the neighbour knows; None before it was said hello.
    told: tuple[Component, tuple[str, ...]] | None = None
    rows: dict[int, TableEntry[Filter]] = {}
    advertisements: dict[int, TableEntry[Advertisement]] = {}


class Naming:
    """The name of the part of the acyclic network that this broker is in, and the path by which it came."""

    def __init__(self, broker: str, incarnation: int = 0) -> None:
        self._broker = broker
        # Names of former lives may still be around.
        self._count = min(incarnation, _MOST_LIVES) * _NAMES_IN_A_LIFE
        self.component = Component(broker, self._count)
        self.path: tuple[str, ...] = (broker,)
        self.toward: str | None = None

    def hear(self, component: Component, path: tuple[str, ...], neighbour: str) -> str:
        """A neighbour says the name of its part. Returns what follows: `adopted`, `ours` or `cycle`."""
        if self._broker in path or (component == self.component and neighbour != self.toward):
            return "cycle"
        if component > self.component and neighbour != self.toward:
            return "ours"
        self.adopt(component, path, neighbour)
        return "adopted"

    def adopt(self, component: Component, path: tuple[str, ...], neighbour: str) -> None:
        """Take the name of a neighbour's part."""
        self.component = component
        self.path = (*path, self._broker)
        self.toward = neighbour

    def lose(self, neighbour: str) -> bool:
        """Handles a lost link to a neighbour. Returns whether this side has a new name by that."""
        if neighbour != self.toward:
            return False
        self._count += 1
        self.component = Component(self._broker, self._count)
        self.path = (self._broker,)
        self.toward = None
        return True
