"""`Beside`: the neighbours of a broker, as its overlay knows them, and what each was told, at a pace."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from palio.protocol.overlay import MOST_CONTACTS, Contact, Nearby, Standing
from palio.routing.effects import Effect, Send
from palio.routing.links import NeighbourLink
from palio.routing.overlay.contacts import ContactBook
from palio.routing.overlay.manager import TERMS, Refusal
from palio.routing.overlay.settings import completed
from palio.routing.pace import Pace

# So many news, and so many suggestions, are passed on at once, and then one in so many seconds (guesses).
NEWS_AT_ONCE = 8
NEWS_EVERY = 0.5


class OverlayLink(msgspec.Struct, eq=False):
    """What the overlay knows of a link in use."""

    since: float
    address: str = ""
    distance: float = 0.0
    size: int = 1  # as the neighbour has told: its side, if it is below; otherwise about the whole part
    parent: str = ""  # of the neighbour
    contacts: tuple[Contact, ...] = ()
    told: Nearby | None = None
    knows: bool = False
    news: Pace = msgspec.field(default_factory=lambda: Pace(NEWS_AT_ONCE, NEWS_EVERY))
    suggestions: Pace = msgspec.field(default_factory=lambda: Pace(NEWS_AT_ONCE, NEWS_EVERY))


class Beside:
    """Links by the name of the neighbour."""

    def __init__(
        self, book: ContactBook, effects: Callable[[], list[Effect]], now: Callable[[], float]
    ) -> None:
        self._book = book
        self._effects = effects
        self._now = now
        self.links: dict[str, OverlayLink] = {}
        self.owed_at: float | None = None  # when somebody is to be told something

    @staticmethod
    def stranger(ours: str, link: NeighbourLink, standing: Standing, network: str) -> Refusal | None:
        """Why a broker that says hello is none of our network, if so."""
        if not standing.network or not network or standing.network == network:
            return None
        reason = f"{link.broker} is of the network {standing.network}, {ours} of {network}."
        return Refusal(TERMS, reason)

    def contacts(self, but: str, most: int = MOST_CONTACTS) -> tuple[Contact, ...]:
        """The neighbours that others can reach, but for one."""
        return tuple(
            [
                Contact(name, link.address, link.distance)
                for name, link in sorted(self.links.items())
                if name != but and link.address
            ][:most]
        )

    def contact_of(self, link: NeighbourLink, standing: Standing) -> Contact | None:
        """Where a broker can be reached that says hello, if it says something that can be used."""
        address = completed(standing.address, link.host)
        known = self._book.meet(
            link.broker, address, self._now(), told_by=link.broker, distance=standing.distance
        )
        return None if known is None else Contact(link.broker, known.address, known.distance)

    def add(self, link: NeighbourLink, standing: Standing | None) -> OverlayLink:
        """A link is in use."""
        known = self.links[link.broker] = OverlayLink(self._now())
        self._book.unbar(link.broker)
        if standing is not None:
            known.knows = True
            if (contact := self.contact_of(link, standing)) is not None:
                known.address, known.distance = contact.address, contact.distance
        return known

    def hear(self, neighbour: str, message: Nearby) -> None:
        """A neighbour tells who is beside it."""
        link, now = self.links[neighbour], self._now()
        link.contacts, link.parent = message.contacts, message.parent
        self._book.untold(neighbour, but=message.contacts)
        for contact in message.contacts:
            if contact.broker not in self.links:
                self._book.meet(
                    contact.broker, contact.address, now, told_by=neighbour, distance=contact.distance
                )

    def tell(self, news_for: Callable[[str], Nearby]) -> None:
        """Tell each neighbour that knows of overlays what is new for it; some of them later."""
        self.owed_at = None
        for name, link in self.links.items():
            if not link.knows:
                continue
            news = news_for(name)
            if news == link.told:
                continue
            if link.news.takes(self._now()):
                link.told = news
                self._effects().append(Send(name, news))
            else:
                due = link.news.next
                self.owed_at = due if self.owed_at is None else min(self.owed_at, due)
