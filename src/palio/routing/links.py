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

Neighbours may be mistaken, or lie. A path says that a name has come through this broker only if this broker has
passed that name on to the next one of the path, which is a neighbour; so nobody can part two others by a path
that he has made up. Paths are cut, and names are told at a pace: of many that come fast, the last one counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.protocol.peers import Component, LinkKind
from palio.routing.pace import Pace
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
# Of a path so many brokers are kept, the nearest ones (a guess: more than a network has from end to end).
MOST_HOPS = 1_024
# So many names are told to a neighbour at once, and then one in so many seconds (guesses: a change of the
# network needs one or two). Of those that it was told before so many are remembered.
NAMES_AT_ONCE = 8
NAME_EVERY = 0.25
_NAMES_REMEMBERED = 32


def made_by_loss(component: Component) -> bool:
    """Whether a name was made as a link was lost, and not when a broker began."""
    return component.count % _NAMES_IN_A_LIFE > 0


class NeighbourLink(msgspec.Struct, eq=False):
    """A link, and the rows that came on it, by number."""

    broker: str
    kind: LinkKind
    cost: float
    established: bool = False
    is_relay: bool = False  # whether the other end keeps nothing
    # Whether this end has asked for it, and where the other end is (`overlay`).
    asks: bool = False
    host: str = ""
    # Whether the other end knows what is said of reconfigurations.
    knows_reconfiguration: bool = False
    # The name of our part, and its path, that the neighbour knows; None before it was said hello.
    told: tuple[Component, tuple[str, ...]] | None = None
    names: deque[Component] = msgspec.field(default_factory=lambda: deque(maxlen=_NAMES_REMEMBERED))
    pace: Pace = msgspec.field(default_factory=lambda: Pace(NAMES_AT_ONCE, NAME_EVERY))
    rows: dict[int, TableEntry[Filter]] = {}
    advertisements: dict[int, TableEntry[Advertisement]] = {}

    def tell(self, component: Component, path: tuple[str, ...]) -> None:
        """The neighbour is being told this name."""
        self.told = component, path
        if not self.names or self.names[-1] != component:
            self.names.append(component)

    def was_told(self, component: Component) -> bool:
        """Whether the neighbour may have this name from us."""
        return self.established and component in self.names


class Naming:
    """The name of the part of the acyclic network that this broker is in, and the path by which it came."""

    def __init__(
        self, broker: str, incarnation: int = 0, passed_on: Callable[[str, Component], bool] | None = None
    ) -> None:
        self._broker = broker
        # Whether a broker is a neighbour that was told this name by us.
        self._passed_on = passed_on or (lambda broker, component: True)
        # Names of former lives may still be around.
        self._count = min(incarnation, _MOST_LIVES) * _NAMES_IN_A_LIFE
        self.component = Component(broker, self._count)
        self.path: tuple[str, ...] = (broker,)
        self.toward: str | None = None
        self._directions: dict[Component, str] = {}  # in which names came before this one, the latest of them

    def hear(self, component: Component, path: tuple[str, ...], neighbour: str) -> str:
        """A neighbour says the name of its part. Returns what follows: `adopted`, `ours` or `cycle`."""
        if component == self.component and neighbour != self.toward:
            return "cycle"
        if self.came_through_us(component, path):
            return "cycle"
        if component > self.component and neighbour != self.toward:
            return "ours"
        self.adopt(component, path, neighbour)
        return "adopted"

    def came_through_us(self, component: Component, path: tuple[str, ...]) -> bool:
        """Whether a name that is told has come by this broker, as far as that can be so."""
        steps = pairwise(path[-MOST_HOPS:])
        return any(one == self._broker and self._passed_on(after, component) for one, after in steps)

    def adopt(self, component: Component, path: tuple[str, ...], neighbour: str) -> None:
        """Take the name of a neighbour's part."""
        self._remember()
        self.component = component
        self.path = (*path[1 - MOST_HOPS :], self._broker)
        self.toward = neighbour

    def lose(self, neighbour: str) -> bool:
        """Handles a lost link to a neighbour. Returns whether this side has a new name by that."""
        if neighbour != self.toward:
            return False
        self._remember()
        self._count += 1
        self.component = Component(self._broker, self._count)
        self.path = (self._broker,)
        self.toward = None
        return True

    def direction(self, component: Component) -> str | None:
        """The neighbour from which a name came, this one or one of those before it."""
        return self.toward if component == self.component else self._directions.get(component)

    def _remember(self) -> None:
        self._directions.pop(self.component, None)
        if self.toward is not None:
            self._directions[self.component] = self.toward
        if len(self._directions) > _NAMES_REMEMBERED:
            del self._directions[next(iter(self._directions))]
