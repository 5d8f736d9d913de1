"""`JoinNames`: names to join at which several brokers are, such as that of a stateful set (`dns://NAME:PORT`).

1. A name is looked up where an operator has written it: all its addresses are asked for, and only these travel.
2. It is looked up when this broker begins or has lost its parent, and then, while it is the root of its part,
   again and again, with pauses that grow: brokers that come later are found like that, too. A root that knows a
   name is never silent for good.
3. An answer is bounded, and takes the place of the one before; if there is none, that one stays.
"""

from __future__ import annotations

import msgspec

from palio.protocol.addresses import SCHEME, SECURE_SCHEME, split_address
from palio.routing.occurrences import Resolved
from palio.routing.overlay.contacts import ContactBook
from palio.routing.overlay.effects import NOT_REACHED, OverlayEvent, Resolve
from palio.routing.overlay.look import OverlayShell
from palio.routing.overlay.settings import Passable

PLAIN, SECURE = "dns://", "dnss://"
# Seconds until a name is looked up once more, and how that grows, up to `look_every` (guesses, as for looks).
FIRST_PAUSE = 0.5
GROWTH = 2.0


class JoinName(msgspec.Struct, frozen=True):
    """A name to join, and the port at which its brokers are."""

    host: str
    port: int
    secure: bool

    def address(self, machine: str) -> str:
        """The address of one of its brokers."""
        where = f"[{machine}]" if ":" in machine else machine
        return f"{SECURE_SCHEME if self.secure else SCHEME}{where}:{self.port}"


def is_name(join: str) -> bool:
    """Whether all addresses of a name are meant, and not one address."""
    return join.startswith((PLAIN, SECURE))


def read_name(join: str) -> JoinName:
    """The name that is meant. Raises `ValueError`."""
    secure = join.startswith(SECURE)
    host, port = split_address(join.removeprefix(PLAIN).removeprefix(SECURE))
    if port == 0 or "/" in host:
        raise ValueError(f"{join!r} is no name and port; write dns://brokers.example:7070.")
    return JoinName(host, port, secure)


def book_and_names(around: OverlayShell) -> tuple[ContactBook, JoinNames]:
    """The book of a broker, and the names that lead to more, of what its settings say is to be joined."""
    settings = around.settings
    addresses = [one for one in settings.join if not is_name(one)]
    book = ContactBook(around.broker, addresses, Passable(settings.networks))
    return book, JoinNames(around, book)


class JoinNames:
    """The names that one broker joins. Effects go into `effects()`."""

    def __init__(self, around: OverlayShell, book: ContactBook) -> None:
        self._names = [one for one in around.settings.join if is_name(one)]
        self._book = book
        self._look_every = around.settings.look_every
        self._effects = around.effects
        self._now = around.now
        self._pause = FIRST_PAUSE
        self._waiting: set[str] = set()
        self.due: float | None = None  # when they are to be looked up

    @property
    def are_awaited(self) -> bool:
        """Whether it will be known in a moment where they lead to."""
        return bool(self._waiting) or (self.due is not None and self.due <= self._now())

    def begin_anew(self) -> None:
        """Somebody is needed now."""
        self._pause = FIRST_PAUSE
        self.due = self._now() if self._names else None

    def rest(self) -> None:
        """Nobody is needed."""
        self.due = None

    def look(self) -> None:
        """Look them up, if it is time."""
        now = self._now()
        if self.due is None or now < self.due:
            return
        self.due = now + self._pause
        self._pause = min(GROWTH * self._pause, self._look_every)
        self._waiting.update(self._names)
        self._effects().extend([Resolve(name) for name in self._names])

    def resolved(self, message: Resolved) -> bool:
        """A name leads to these addresses. Returns whether one of them was not known."""
        if message.name not in self._waiting:
            return False
        self._waiting.discard(message.name)
        if message.reason:
            self._effects().append(OverlayEvent(NOT_REACHED, message.name, "no address", message.reason))
            return False
        return self._book.lead(message.name, message.addresses)
