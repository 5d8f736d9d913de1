"""What the parts of a router share, and how what they change is told to the neighbours.

What a message changes is collected in the tables, and when it has been dealt with, `settle` tells each port
what has changed there, in one update. So however much a message causes, a neighbour never sees half of it.
"""

from __future__ import annotations

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Component, LinkKind, Update
from palio.protocol.requests import Ready
from palio.routing.announcements import Announcements
from palio.routing.configuration import Configuration
from palio.routing.deferred import DeferredWork
from palio.routing.durable.effects import Recovered
from palio.routing.durable.home.going_live import WaveEnded
from palio.routing.durable.relay import Relay
from palio.routing.durable.service import Service
from palio.routing.effects import Effect, Reply, Send
from palio.routing.facts import Facts
from palio.routing.forwarding import Forwarding
from palio.routing.links import Naming, NeighbourLink
from palio.routing.scopes import Scopes
from palio.routing.sessions import Sessions
from palio.routing.sharing import Sharing
from palio.routing.table import GRAPH, NO_CHANGES, Changes
from palio.routing.tables import Tables
from palio.routing.waves import Waves


class Core:
    """The state of a router. Effects are put into `effects`, which is a new list for each message."""

    def __init__(self, configuration: Configuration, facts: Facts, recovered: Recovered) -> None:
        self.configuration = configuration
        self.broker = configuration.broker
        self.effects: list[Effect] = []
        self.behind_rows: list[Effect] = []  # what is to follow the rows that there are to tell
        self.now = 0.0
        self.overlap = facts.overlap
        self.tables = Tables(configuration, facts)
        self.filters = self.tables.filters
        self.incarnation = configuration.incarnation
        self.scopes = Scopes(on=configuration.scoped)
        self.deferred = DeferredWork(patient=configuration.patient)
        self.sessions = Sessions(self.tables, self.scopes, self.deferred)
        self.links: dict[str, NeighbourLink] = {}
        self.graph_links: dict[str, NeighbourLink] = {}
        self.naming = Naming(self.broker, configuration.incarnation, self._passed_on)
        self.waves = Waves()
        self.announcements = Announcements(
            self.broker, configuration.incarnation, self.tables, self.waves, self.graph_links
        )
        self.forwarding = Forwarding(configuration, self.tables, self.links, self.announcements, self.scopes)
        self.sharing = Sharing(self, recovered.shared)
        self.durable: Service | None = None
        self.relay = Relay(self.broker, self) if configuration.relay else None
        if configuration.durable is not None:
            self.durable = service = Service(self.broker, configuration.durable, recovered, self)
            self.forwarding.take_durable = service.take
        # What durable delivery needs of every broker on the way.
        self.between: Service | Relay | None = self.durable or self.relay
        if (between := self.between) is not None:
            self.forwarding.epoch = lambda: between.epoch

    def begin(self, now: float) -> list[Effect]:
        """Begin to handle a message or a timer. Returns where its effects will be."""
        effects: list[Effect] = []
        self.effects = effects
        self.now = now
        if self.between is not None:
            self.between.begin(effects, now)
        return effects

    def _passed_on(self, broker: str, component: Component) -> bool:
        link = self.links.get(broker)
        return link is not None and link.was_told(component)

    def neighbours(self) -> dict[str, LinkKind]:
        """The brokers to which there is a link in use, and what they are to this one."""
        return {name: link.kind for name, link in self.links.items() if link.established}

    # What follows

    def settle(self) -> None:
        """Tell each port what has changed, ask it to confirm where somebody waits for that, start the waves."""
        self._settle_rows()
        if self.behind_rows:
            self.effects += self.behind_rows
            self.behind_rows = []

    def _settle_rows(self) -> None:
        waves = self.waves
        starting = bool(waves.beginning)
        if not starting and self.tables.is_settled():
            return  # as after most messages
        wanted, advertised = self.tables.settle()
        for port, rows in wanted.items():
            self._update(port, rows, advertised.get(port, NO_CHANGES), starting and waves.asks(port))
        for port, advertisements in advertised.items():
            if port not in wanted:
                self._update(port, NO_CHANGES, advertisements, starting and waves.asks(port))
        if not starting:
            return
        for port, progress in waves.ports.items():
            if progress.sent > progress.asked and waves.asks(port):
                self._update(port, NO_CHANGES, NO_CHANGES, True)
        self.end_waves(waves.launch())

    def _update(
        self, port: str, rows: Changes[Filter], advertisements: Changes[Advertisement], confirm: bool
    ) -> None:
        progress = self.waves.ports[port]
        progress.sent += 1
        if confirm:
            progress.asked = progress.sent
        update = Update(
            progress.sent, rows.add, rows.remove, advertisements.add, advertisements.remove, confirm
        )
        if port == GRAPH:
            self.end_waves(self.announcements.announce(update))
        else:
            self.effects.append(Send(port, update))

    def end_waves(self, effects: list[Effect]) -> None:
        """Carries out the effects of waves that have ended, without answers that nobody waits for any more."""
        for effect in effects:
            match effect:
                case Reply(session, Ready(handle)) if not self.sessions.has(session, handle):
                    continue
                case Send(broker) if broker not in self.links:
                    continue
                case WaveEnded() if self.durable is not None:
                    self.durable.wave_ended(effect)
                    continue
            self.effects.append(effect)

    # For durable delivery

    def began_anew(self, broker: str) -> None:
        """Handles another life of a broker: it may give sequences that it gave before."""
        self.forwarding.began_anew(broker)

    def begin_wave(self, ended: WaveEnded) -> None:
        """Give this back to durable delivery once everyone in reach knows all that this broker has told."""
        self.waves.begin(ended, None)

    def send_on(self, envelopes: tuple[Envelope, ...]) -> None:
        """Forwards events that are on disk, in the epoch of now."""
        epoch = self.forwarding.epoch()
        stamped = [msgspec.structs.replace(envelope, epoch=epoch) for envelope in envelopes]
        self.effects += self.forwarding.take(tuple(stamped), None)

    def mark_ways(self, entry: str, source: str | None) -> list[tuple[str, str]]:
        """Where a mark goes on, and under which entry: the ways that the events before it could take."""
        from_graph = source is not None and source in self.graph_links
        entry = entry if from_graph else self.broker
        ways = [name for name in self.neighbours() if name not in self.graph_links]
        if self.graph_links:
            ways += sorted(set(self.announcements.graph.branches(entry).values()))
        return [(name, entry) for name in ways if name != source]
