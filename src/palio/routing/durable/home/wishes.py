"""Wishes: sessions here that want a durable subscription that is not here.

Of the sessions at a broker that want a subscription, only the latest has a wish, and only until it is
fulfilled, refused or withdrawn, or the session closes. Wishes are begun in open sessions, and are the only
memory of a session that waits for a subscription: so a taker is always a session that is open.

Who looks for a subscription and is told that it is not here may believe so until it is told otherwise, or the
epoch changes: what was answered in several epochs creates nothing. If it arrives here meanwhile, its former
home, which may not have answered yet, must go on saying where it is: nobody else would.
"""

from __future__ import annotations

import msgspec

from palio.protocol.durable.subscriptions import Attach
from palio.routing.durable.desk import Desk
from palio.routing.durable.home.homes import Homes

# How many ticks a session waits for a subscription that is elsewhere before it is refused.
GIVE_UP_AFTER = 5
# Who looks for a subscription answers others who do with its name and this: of several, one creates it.
LOOKING = "?"
# Names that are remembered as denied: far more than are looked for while one is on its way.
MAX_DENIED = 16_384


class AttachWish(msgspec.Struct, eq=False):
    """A session here wants a subscription that is not here: it is looked for, or asked for at its home.

    While neither is under way it is looked for again with the next tick.
    """

    session: str
    attach: Attach
    until: float  # when it is refused
    question: int | None = None  # the one that is out, by its number
    home: str | None = None  # who was asked to hand it over
    # Who else was heard to look for it since the last answer.
    rivals: set[str] = msgspec.field(default_factory=set)

    def rest(self) -> None:
        """Note that nothing is under way for it."""
        self.question = self.home = None

    @property
    def phase(self) -> str:
        """What is under way for it."""
        if self.home is not None:
            return "asked for"
        return "looked for" if self.question is not None else "wanted"


class Wishes:
    """By the name of the subscription: of several sessions the latest."""

    def __init__(self, desk: Desk, homes: Homes) -> None:
        self._desk = desk
        self._homes = homes
        self.by_name: dict[str, AttachWish] = {}
        # By name: who looked for it in this epoch, and may believe that it is not here.
        self._denied: dict[str, dict[str, None]] = {}

    def withdraw(self, session: str, name: str) -> bool:
        """Withdraw the wish of a session. Returns whether it was waiting for the subscription."""
        wish = self.by_name.get(name)
        if wish is None or wish.session != session:
            return False
        del self.by_name[name]
        return True

    def session_closed(self, session: str) -> None:
        """Withdraw all wishes of a session that is gone, so that it becomes the taker of nothing."""
        self.by_name = {name: wish for name, wish in self.by_name.items() if wish.session != session}

    def home_of(self, name: str, asker: str) -> tuple[str, ...]:
        """What this broker answers to who looks for a subscription: its home, or that it is wanted here."""
        durable = self._homes.subscriptions.get(name)
        if durable is not None:
            return (durable.moving_to or self._desk.broker,)
        if asker != self._desk.broker:
            self._deny(name, asker)
        wish = self.by_name.get(name)
        if wish is None or wish.home is not None:
            return ()
        if asker != self._desk.broker:
            wish.rivals.add(asker)
        return (self._desk.broker + LOOKING,)

    def _deny(self, name: str, asker: str) -> None:
        self._denied.setdefault(name, {})[asker] = None
        if len(self._denied) > MAX_DENIED:
            del self._denied[next(iter(self._denied))]

    def believers(self, name: str, former_home: str) -> list[str]:
        """Those who have looked for a subscription and may still believe that it is not here.

        A former home that has looked for it has found it since.
        """
        return [asker for asker in self._denied.get(name, ()) if asker != former_home]

    def believes_no_more(self, name: str, asker: str) -> None:
        """Handles that somebody knows better, or has the subscription itself."""
        denied = self._denied.get(name)
        if denied is not None:
            denied.pop(asker, None)
            if not denied:
                del self._denied[name]

    def epoch_changed(self) -> None:
        """What was answered before is not enough any more to believe that a subscription is nowhere."""
        self._denied.clear()
