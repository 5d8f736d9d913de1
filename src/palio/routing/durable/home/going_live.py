"""Going live: how the subscriptions here that are behind catch up and come to be live, all of them together.

When the network has changed, or a subscription is new, this broker waits a moment for further changes
(`settling`), lets a *wave* go out (when it ends, everyone in reach knows our filters), and *polls* everyone for
how far the journals are. If all that happened in one epoch, the subscriptions are complete: what they have
missed is fetched (`catch_up`), and the rest comes by itself. If not, it is done again. What was said in
different epochs is enough to read on (`reading`). So that it is said even if no wave ever ends, everyone is
also asked at once where one beginning takes the place of another.

Where it stands is a `LiveStage`, and `WAY` says what leads from one to the next. Whatever goes wrong on the way
leads to another beginning: the alarm is set again, and a beginning takes the place of what is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

import msgspec

from palio.protocol.durable.peers import Told
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import ANSWER_WITHIN, Desk
from palio.routing.durable.home.catch_up import CatchingUp
from palio.routing.durable.home.filter_change import FilterChanges
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.namesakes import Namesakes
from palio.routing.durable.network.answering import Answering
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology


class WaveEnded(msgspec.Struct, frozen=True):
    """Not for the shell: everyone in reach knows what this broker had told when the wave began."""

    number: int


class LiveStage(Enum):
    """The stages of going live."""

    RESTING = "resting"
    WAVE = "wave"
    POLL = "poll"


WAY: dict[LiveStage, dict[str, LiveStage]] = {
    LiveStage.RESTING: {"settled": LiveStage.WAVE, "scope changed": LiveStage.RESTING},
    LiveStage.WAVE: {
        "settled": LiveStage.WAVE,
        "wave ended": LiveStage.POLL,
        "network changed": LiveStage.WAVE,  # until it is settled, or overdue
        "overdue": LiveStage.RESTING,
        "scope changed": LiveStage.RESTING,
    },
    LiveStage.POLL: {
        "settled": LiveStage.WAVE,
        "complete": LiveStage.RESTING,
        "network changed": LiveStage.RESTING,
        "overdue": LiveStage.RESTING,
        "scope changed": LiveStage.RESTING,
    },
}
# What leads back to a beginning, after a moment.
BEGIN_AGAIN = frozenset(("network changed", "overdue", "scope changed"))


@dataclass(eq=False, repr=False)
class GoingLive:
    """Brings the subscriptions here to live. `begin_wave` gives its argument back once everyone knows."""

    _desk: Desk
    _topology: Topology
    _polling: Polling
    _answering: Answering
    _homes: Homes
    _namesakes: Namesakes
    _catching_up: CatchingUp
    _changes: FilterChanges
    _settling: Alarm
    _tick: Alarm
    _begin_wave: Callable[[WaveEnded], None]

    def __post_init__(self) -> None:
        self.stage = LiveStage.RESTING
        self._wave = 0  # the number of the latest
        self._question = 0  # the number of the latest
        self._epoch = 0  # in which it has begun
        self._names: tuple[str, ...] = ()  # of the subscriptions that are on their way
        self._until = 0.0  # when it is overdue

    def _go(self, event: str) -> None:
        self.stage = WAY[self.stage][event]
        if event in BEGIN_AGAIN:
            self._settling.set()

    def settled(self) -> None:
        """Begins: no change was heard of for a moment, or it is time all the same."""
        self._settling.rang()
        names = self._catching_up.behind()
        if not names:
            return
        in_vain = self.is_under_way and self._epoch != self._topology.epoch
        self._go("settled")
        self._wave += 1
        self._epoch, self._names = self._topology.epoch, names
        self._catching_up.begin_asking(names)
        self._until = self._desk.now + ANSWER_WITHIN * self._desk.settings.tick
        self._tick.set()
        if in_vain:  # links change faster than everyone can agree
            self._ask(names)
        self._begin_wave(WaveEnded(self._wave))

    def wave_ended(self, ended: WaveEnded) -> None:
        """Handles the end of a wave: everyone in reach knows the filters of the subscriptions here."""
        if self.stage is not LiveStage.WAVE or ended.number != self._wave:
            return
        if self._epoch != self._topology.epoch:
            self._go("network changed")
            return
        self._go("wave ended")
        self._catching_up.collect(self._names)
        self._ask(self._names)

    def _ask(self, names: tuple[str, ...]) -> None:
        """Poll everyone for how far the journals are."""
        readers, places = self._catching_up.readers(names), self._catching_up.places(names)
        ask = self._polling.ask(
            readers=tuple(readers),
            places=places,
            generations=tuple(readers.values()),
            then=partial(self._answered, tuple(readers)),
        )
        self._question = ask.number
        self._answering.answer(ask)

    def _answered(self, asked: tuple[tuple[str, str], ...], told: Told) -> None:
        """Handles the answers to a poll: everyone in reach has said how far its journal is."""
        is_present = self.stage is LiveStage.POLL and told.number == self._question
        agreed = set(told.epochs) == {self._epoch} and self._epoch == self._topology.epoch
        if not (is_present and agreed):
            self._namesakes.told_of(told.later, [name for _, name in asked], everyone=False)
            self._catching_up.heard(asked, told.heads)
        if not is_present:
            return
        if agreed:
            self._go("complete")
            everyone = self._topology.known <= {head.origin for head in told.heads}
            self._namesakes.told_of(told.later, self._names, everyone=everyone)
            self._catching_up.complete(self._names, self._epoch, told.heads, everyone=everyone)
            self._tick.set()
        else:
            self._go("network changed")

    @property
    def is_under_way(self) -> bool:
        """Whether anything is waited for."""
        return self.stage is not LiveStage.RESTING

    def again(self) -> None:
        """Retry: begin again if an answer was lost."""
        if self.is_under_way and self._until <= self._desk.now:
            self._go("overdue")

    def epoch_changed(self) -> None:
        """Handles another epoch: the network has changed, and nobody is known to be complete any more."""
        for durable in self._homes.subscriptions.values():
            durable.interrupt()
        if self._homes.subscriptions:
            self._settling.set()

    def scope_changed(self, owner: str) -> None:
        """Handles a change of rights: what is under way has told of what was wanted before."""
        if self._changes.scope_changed(owner):
            self._wave += 1
            self._go("scope changed")
