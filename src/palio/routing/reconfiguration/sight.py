"""`Sight`: what a port sees of a routing table while the network is being reconfigured.

A row of a lost link is *parked*: it counts as one that came on a port of its own, which leads nowhere. Whoever
was told of it before goes on seeing it, so nothing is taken back. A port that is opened later does not see it:
what nobody but the lost link wanted is not told to a new neighbour.

1. A port sees a source iff that is not parked, or was parked after the port was opened.
2. A port does not see an entry that is held back from it (`hold_back`), until that gets another source (`show`)
   beside the port itself.
3. `limited` has exactly the ports that do not see everything; without them, tables work as if there were no
   such thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Sight:
    """Moments are counted: at each a port is opened, or one is parked."""

    __slots__ = ("_moment", "_parked", "held_back", "limited")

    def __init__(self) -> None:
        self._moment = 0
        self._parked: dict[str, int] = {}  # ports of which rows are parked, and since when
        self.limited: dict[str, int] = {}  # ports, and since when they are open
        self.held_back: dict[str, dict[Any, None]] = {}  # places of entries, by port

    def park(self, port: str) -> None:
        """What comes on this port from now on are parked rows."""
        self._moment += 1
        self._parked[port] = self._moment

    def unpark(self, port: str) -> None:
        """No rows are parked there any more."""
        self._parked.pop(port, None)
        for name in [name for name in self.limited if self._sees_everything(name)]:
            del self.limited[name]

    def open(self, port: str) -> None:
        self._moment += 1
        if self._parked or port in self.held_back:
            self.limited[port] = self._moment

    def close(self, port: str) -> None:
        self.limited.pop(port, None)
        self.held_back.pop(port, None)

    def hold_back(self, port: str, places: Iterable[Any]) -> None:
        """A port that is about to be opened does not see these."""
        held = dict.fromkeys(places)
        if held:
            self.held_back[port] = held

    def release(self, port: str) -> None:
        """Nothing is held back from the port any more."""
        if self.held_back.pop(port, None) is not None and self._sees_everything(port):
            self.limited.pop(port, None)

    def show(self, place: Any, source: str | None) -> bool:
        """An entry has another source: it is not held back from others any more. Returns whether it was."""
        ports = [port for port, held in self.held_back.items() if place in held and port != source]
        for port in ports:
            del self.held_back[port][place]
        return bool(ports)

    def sees(self, port: str, place: Any, holders: Iterable[Any], sources: Iterable[str]) -> bool:
        """Whether a limited port sees an entry that is held by somebody, or came on one of these ports."""
        if place in self.held_back.get(port, ()):
            return False
        if holders:
            return True
        since = self.limited[port]
        return any(source != port and self._parked.get(source, since + 1) > since for source in sources)

    def _sees_everything(self, port: str) -> bool:
        since = self.limited.get(port, 0)
        return not self.held_back.get(port) and all(moment > since for moment in self._parked.values())
