"""Waves: acknowledgements by which a broker finds out that everyone behind its ports knows something.

Updates on a port are numbered, and the neighbour applies them in order. A neighbour that is asked to confirm
an update answers once all behind it know that update and every one before. So "the whole network knows all
that I know" is: on each port, the latest update is confirmed. Whoever has to find that out starts a *wave*: it
asks each port whose latest update is not confirmed yet, and waits for the answers; a neighbour does the same
with its other ports before it answers. On a tree the waiting only goes outward, so it ends. Nothing is asked
where nothing is outstanding, so what is covered by rows that are confirmed is ready at once.

Where a broker looks for a link, as it has just begun or lost one, its waves wait until that look is over:
whoever is behind the link that it finds shall know, too, before anybody is told that the whole network does.

A wave ends in an effect that was decided when it began: an answer to a client, or to a neighbour; or in news
for another part of the broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from palio.routing.effects import Effect, Send
from palio.routing.table import Port


class Wave(msgspec.Struct, eq=False):
    """Something to do once all of its answers are there."""

    effect: Any
    missing: int = 0


class PortProgress:
    """Updates of a port: the latest version sent, the latest that was asked about, the latest acknowledged."""

    __slots__ = ("asked", "confirmed", "sent", "waiting")

    def __init__(self, version: int = 0) -> None:
        self.sent = self.asked = self.confirmed = version
        self.waiting: deque[tuple[int, Wave]] = deque()

    @property
    def outstanding(self) -> bool:
        return self.sent > self.confirmed

    def wait(self, wave: Wave) -> None:
        """The wave needs the confirmation of all that was asked about."""
        wave.missing += 1
        self.waiting.append((self.asked, wave))

    def confirm(self, version: int) -> list[Wave]:
        """Handles an acknowledgement of a neighbour; returns the waves that have all their answers by that."""
        self.confirmed = max(self.confirmed, version)
        return self._ended(self.confirmed)

    def abandon(self) -> list[Wave]:
        """Handles the loss of a port; returns the waves that have all their answers by that."""
        return self._ended(self.asked)

    def _ended(self, version: int) -> list[Wave]:
        ended = []
        waiting = self.waiting
        while waiting and waiting[0][0] <= version:
            _, wave = waiting.popleft()
            wave.missing -= 1
            if not wave.missing:
                ended.append(wave)
        return ended


class Waves:
    """All ports' progress, and the waves that begin with the update that is being put together."""

    def __init__(self) -> None:
        self.ports: dict[Port, PortProgress] = {}
        self.beginning: list[tuple[Wave, Port | None]] = []
        self._holding = False
        self._held: list[tuple[Wave, Port | None]] = []

    def begin(self, effect: Any, source: Port | None) -> Wave:
        """A wave over all ports but the source, as soon as the ports have been told what there is to tell."""
        wave = Wave(effect)
        self.beginning.append((wave, source))
        return wave

    def asks(self, port: Port) -> bool:
        """Whether the port has to be asked to confirm the update that it gets now, or without one."""
        return any(source != port for _, source in self.beginning)

    def begin_anew(self, waves: Iterable[Wave]) -> None:
        """Waves that waited for a link that is lost: they end, unless another one is looked for."""
        for wave in waves:
            self.beginning.append((wave, wave.effect.broker if isinstance(wave.effect, Send) else None))

    def hold(self, holding: bool) -> None:
        """Whether a link is looked for; those that have waited for it begin anew when it is not any more."""
        if self._holding and not holding:
            for wave, _ in self._held:
                wave.missing -= 1
            self.beginning += self._held
            self._held.clear()
        self._holding = holding

    def launch(self) -> list[Effect]:
        """All ports have been told and asked. Returns the effects of the waves that need not wait."""
        effects: list[Effect] = []
        for wave, source in self.beginning:
            if self._holding:
                wave.missing += 1
                self._held.append((wave, source))
            for port, progress in self.ports.items():
                if port != source and progress.outstanding:
                    progress.wait(wave)
            if not wave.missing:
                effects.append(wave.effect)
        self.beginning.clear()
        return effects
