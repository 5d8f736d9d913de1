"""`Manager`: what decides which links a broker has, as the rest of the router sees it.

There is one for each way of organising a network. `FixedLinks` has those that its settings name, and those that
others make; `TreeOverlay` and `MeshOverlay` (see `tree`, `mesh`) find links by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from palio.protocol.overlay import Contact, Standing
from palio.protocol.peers import Goodbye, Hello
from palio.routing.links import NeighbourLink
from palio.routing.occurrences import LinkDown, NotReached, Resolved

# Why a link is refused: it would close a cycle; there are neighbours enough; the part that asks is the larger
# one, and is going to be asked; the two are not to work together at all; an operator has removed it; or just
# not now.
CYCLE, FULL, SMALLER, TERMS, REMOVED, LATER = REASONS = (
    "cycle",
    "full",
    "smaller",
    "terms",
    "removed",
    "later",
)
# Those that say how the network is, or shall be: nothing is wrong with the two brokers.
CONSTRAINTS: Final = frozenset((CYCLE, FULL, REMOVED))

TIMER = "overlay"
# Seconds until a broker looks again, and how it grows, up to the setting `look_every` (guesses: a moment in
# which others notice, too, that somebody has died).
FIRST_PAUSE = 0.5
GROWTH = 2.0
# As many times as its degree a broker has neighbours at the most, whoever insists (a guess).
MOST_BEYOND = 4
# In a first look nobody is told that the whole network knows something, for so many times the time in which
# somebody has to answer (a guess: most looks are over after one or two answers).
SEEKS_FOR = 2.0


class Refusal(msgspec.Struct, frozen=True):
    """Why a link is not taken: in a word, as a sentence, and who may take it instead."""

    why: str
    reason: str
    others: tuple[Contact, ...] = ()


def ended_how(message: LinkDown | Goodbye | None) -> str:
    """How a link has ended, in a word: `lost` and `silent` were found out, all others are in order."""
    match message:
        case None:
            return "given up"
        case Goodbye():
            return REMOVED if message.why == REMOVED else "left"
        case LinkDown(orderly=True):
            return "left"
        case _:
            return "silent" if message.silent else "lost"


class OverlayStatistics(msgspec.Struct, frozen=True):
    """How a broker is linked, and what it took to be."""

    kind: str
    address: str = ""
    component: str = ""  # who made the name of our part
    parent: str = ""
    path: tuple[str, ...] = ()
    size: int = 0  # brokers of our part, as far as it is known here
    looking: bool = False
    neighbours: tuple[Contact, ...] = ()
    known: tuple[Contact, ...] = ()
    asked: int = 0
    taken: int = 0  # links that others were granted
    linked: int = 0  # links that others have granted
    lost: int = 0
    given_up: int = 0  # links that have closed a loop
    damped: int = 0
    beyond: int = 0  # links beyond the degree
    refused: dict[str, int] = {}  # by reason: what others have refused
    repairs: int = 0
    repair_seconds: float = 0.0  # of all repairs together


class Manager(Protocol):
    """Chooses links. Effects go where those of the router go.

    `repairs` says whether it looks for a link where one is lost.
    """

    repairs: bool

    def dialled(self, link: NeighbourLink, address: str) -> bool:
        """A link has come up that was dialled at an address. Returns whether it is still to be asked for."""

    def standing(self, link: NeighbourLink) -> Standing | None:
        """What to say of itself in a hello."""

    def objection(self, link: NeighbourLink, hello: Hello) -> Refusal | None:
        """Why a link that is possible is not wanted."""

    def adopts(self, link: NeighbourLink, hello: Hello) -> bool | None:
        """Whether this end takes the name of the other; None if the smaller name counts."""

    def gained(self, link: NeighbourLink, hello: Hello) -> None:
        """A link is in use."""

    def refused(self, link: NeighbourLink, goodbye: Goodbye) -> None:
        """A link will not be in use."""

    def lost(self, link: NeighbourLink, message: LinkDown | Goodbye | None) -> None:
        """A link is gone: the connection, by the other end, or by this one."""

    def closed_a_loop(self, link: NeighbourLink) -> None:
        """A link is given up, as it has closed a loop."""

    def bar(self, broker: str) -> None:
        """An operator does not want a link to this broker: it is not asked, until there is one again."""

    def hear(self, neighbour: str, message: Any) -> None:
        """A neighbour tells something about the overlay."""

    def heard_of_links(self) -> None:
        """Some broker of the general graph has told of its links."""

    def not_reached(self, message: NotReached) -> None:
        """Somebody could not be asked."""

    def resolved(self, message: Resolved) -> None:
        """It is known where a name to join leads to."""

    def begin(self, address: str, met: Sequence[Contact]) -> None:
        """The broker runs, and can be reached at this address; those it has met in a former life."""

    def on_timer(self) -> None:
        """It is time to look again."""

    def settle(self) -> None:
        """Tell the neighbours what has changed for them, and look for a link where there should be one."""

    def is_seeking(self) -> bool:
        """Whether there is about to be a link that was not there: whoever is behind it cannot know anything."""

    def statistics(self) -> OverlayStatistics:
        """How it stands."""


class FixedLinks:
    """Links are those of the settings, and those that others make; nothing is told, and nobody is asked."""

    repairs = False

    def dialled(self, link: NeighbourLink, address: str) -> bool:
        return False

    def standing(self, link: NeighbourLink) -> Standing | None:
        return None

    def objection(self, link: NeighbourLink, hello: Hello) -> Refusal | None:
        return None

    def adopts(self, link: NeighbourLink, hello: Hello) -> bool | None:
        return None

    def gained(self, link: NeighbourLink, hello: Hello) -> None:
        pass

    def refused(self, link: NeighbourLink, goodbye: Goodbye) -> None:
        pass

    def lost(self, link: NeighbourLink, message: LinkDown | Goodbye | None) -> None:
        pass

    def closed_a_loop(self, link: NeighbourLink) -> None:
        pass

    def bar(self, broker: str) -> None:
        pass

    def hear(self, neighbour: str, message: Any) -> None:
        pass

    def heard_of_links(self) -> None:
        pass

    def not_reached(self, message: NotReached) -> None:
        pass

    def resolved(self, message: Resolved) -> None:
        pass

    def begin(self, address: str, met: Sequence[Contact]) -> None:
        pass

    def on_timer(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def is_seeking(self) -> bool:
        return False

    def statistics(self) -> OverlayStatistics:
        return OverlayStatistics("fixed")
