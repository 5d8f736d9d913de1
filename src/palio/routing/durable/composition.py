"""The parts of durable delivery at one broker, each handed those that it needs and that exist before it.

What a part tells others in a direction against this order goes by a table: letters by the kind of their content
(`LetterHandlers`, filled by `service`), and a change of the network by those who want to hear of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.routing.durable.alarm import SYNC, TICK, Alarm
from palio.routing.durable.desk import Desk, DurableSettings
from palio.routing.durable.effects import Recovered
from palio.routing.durable.forks import JournalForks
from palio.routing.durable.home.catch_up import CatchingUp
from palio.routing.durable.home.dead_letters import DeadLetterDesk
from palio.routing.durable.home.endings import Endings
from palio.routing.durable.home.filter_change import FilterChanges
from palio.routing.durable.home.going_live import GoingLive, WaveEnded
from palio.routing.durable.home.handing import HandingOut
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.lifecycle import Lifecycle
from palio.routing.durable.home.namesakes import Namesakes
from palio.routing.durable.home.reading import JournalReads
from palio.routing.durable.home.relocation import Relocation
from palio.routing.durable.home.room import Room
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.steering import Steering
from palio.routing.durable.home.takers import Takers
from palio.routing.durable.home.wishes import Wishes
from palio.routing.durable.home.writing import Writing
from palio.routing.durable.network.absence import Absentees
from palio.routing.durable.network.answering import Answering
from palio.routing.durable.network.journal_history import JournalHistory
from palio.routing.durable.network.membership import CountingLinks, Membership
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.progress import PassingReports, ProgressReports
from palio.routing.durable.network.strangers import Strangers
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.network.unicast import LetterHandlers, Unicast
from palio.routing.durable.origin.appending import Appending
from palio.routing.durable.origin.introduced import Introduced
from palio.routing.durable.origin.introductions import Introductions
from palio.routing.durable.origin.journal import OriginJournal
from palio.routing.durable.origin.journal_holds import JournalHolds
from palio.routing.durable.origin.retention import Retention
from palio.routing.durable.origin.serving import Serving
from palio.routing.scopes import Scopes
from palio.routing.tables import Side


class Surroundings(Protocol):
    """What durable delivery needs of the router around it."""

    @property
    def incarnation(self) -> int:
        """How often the broker has begun anew."""

    @property
    def filters(self) -> Side[Filter]:
        """The table of filters."""

    @property
    def scopes(self) -> Scopes:
        """What owners may see."""

    def neighbours(self) -> Mapping[str, Any]:
        """The brokers to which there is a link in use."""

    def mark_ways(self, entry: str, source: str | None) -> list[tuple[str, str]]:
        """Where a mark goes on, and under which entry: the ways that the events before it could take."""

    def began_anew(self, broker: str) -> None:
        """Handles that another broker has begun another life: it may give sequences that it gave before."""

    def begin_wave(self, ended: WaveEnded) -> None:
        """Give this back once everyone in reach knows all that this broker has told."""

    def send_on(self, envelopes: tuple[Envelope, ...]) -> None:
        """Let what is on disk start its way."""


class DurableParts:
    """What durable delivery at one broker consists of."""

    def __init__(
        self, broker: str, settings: DurableSettings, recovered: Recovered, around: Surroundings
    ) -> None:
        incarnation, facts = around.incarnation, recovered.facts
        first = incarnation << 30  # questions of one life of a broker are not taken for those of another
        self.handlers: LetterHandlers = {}
        # What all have
        self.desk = desk = Desk(broker, settings, incarnation, around.scopes, recovered.opened_before)
        self.tick = tick = Alarm(desk, TICK, settings.tick)
        settling = Alarm(desk, SYNC, settings.settle_within)
        self.forks = forks = JournalForks(desk)
        self.topology = topology = Topology.recovered(broker, incarnation, facts)
        # The network
        self.links = links = CountingLinks(around.neighbours)
        self.polling = polling = Polling(desk, links.brokers, topology, first)
        self.letters = letters = Unicast(desk, polling, tick, self.handlers)
        # The origin
        self.journal = journal = OriginJournal(broker, recovered, settings)
        self.introduced = introduced = Introduced(desk, topology, tick, facts)
        self.retention = retention = Retention(desk, journal, introduced, forks)
        self.holding = JournalHolds(desk, journal, retention, introduced)
        self.serving = Serving(desk, journal, letters)
        self.appending = Appending(desk, journal, tick, around.send_on)
        # The home
        self.homes = homes = Homes()
        room, writing = Room(settings), Writing(desk)
        home = desk, homes, writing
        self.endings = endings = Endings(desk, homes, facts)
        self.wishes = wishes = Wishes(desk, homes)
        self.handing = handing = HandingOut(desk, writing, room, settling)
        self.takers = takers = Takers(*home, handing)
        self.dead_letters = DeadLetterDesk(*home, handing)
        self.steering = Steering(*home, takers, settling)
        self.spooling = spooling = Spooling(*home, handing, room, settling)
        self.changes = changes = FilterChanges(*home, around.filters, handing, spooling, settling)
        self.reading = reading = JournalReads(
            *home, spooling, changes, takers, room, letters, forks, topology, tick, first
        )
        self.catching_up = catching_up = CatchingUp(desk, homes, room, reading, forks, settling)
        self.lifecycle = lifecycle = Lifecycle(
            *home, spooling, changes, takers, endings, retention, letters, settling, tick
        )
        self.namesakes = namesakes = Namesakes(desk, homes, lifecycle, letters, endings)
        # What asks and answers
        self.answering = answering = Answering(
            *(desk, journal, topology, polling, retention, introduced),
            *(homes, endings, namesakes, wishes, settling, tick),
        )
        asking = topology, polling, answering
        self.introductions = Introductions(desk, journal, introduced, *asking, retention, endings)
        self.relocation = Relocation(
            desk, homes, wishes, lifecycle, takers, endings, namesakes, *asking, letters, tick
        )
        self.history = JournalHistory(desk, *asking, letters, tick, first)
        self.going_live = going_live = GoingLive(
            desk, *asking, homes, namesakes, catching_up, changes, settling, tick, around.begin_wave
        )
        passing = PassingReports(desk, topology, polling, around.mark_ways, tick)
        self.telling = telling = ProgressReports(
            desk, journal, topology, retention, homes, spooling, passing, tick
        )
        self.absence = Absentees(desk, *asking, tick, self._away)
        self.strangers = Strangers(desk, *asking, tick, self._met)
        listeners = (
            telling.epoch_changed,
            letters.epoch_changed,
            polling.forget_ways,
            wishes.epoch_changed,
            going_live.epoch_changed,
            self.absence.epoch_changed,
            self.strangers.epoch_changed,
        )
        self.membership = Membership(
            *(desk, topology, links, retention, introduced),
            *(listeners, around.began_anew, recovered.opened_before),
        )

    def _met(self, strangers: Iterable[str]) -> None:
        self.membership.met(strangers)

    def _away(self, broker: str) -> None:
        self.membership.give_up(broker, "away")
