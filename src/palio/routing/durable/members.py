"""Members: the brokers that were ever heard of, and were not forgotten; who they are is on disk.

Everyone in the network waits for all of them where a promise is made, so nobody may slip anyone's mind by a
crash. See `topology` for how they are counted, and for what it means to be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from palio.routing.durable.desk import Desk, UnknownBroker
from palio.routing.durable.effects import SaveCursor
from palio.routing.durable.messages import Forget, Forgot, TopologyChanged
from palio.routing.durable.topology import Topology
from palio.routing.effects import Send

# Cursors of the store under this prefix are brokers that were heard of and their versions, not readers.
KNOWN = "known: "
# And those under this one are brokers that were forgotten, and up to which version.
FORGOTTEN = "forgotten: "


class Members:
    """Who is known. `links` are the neighbours; `save` writes a cursor for which others may wait.

    `forgetting` hears that a broker will be forgotten, `gone` that it has been; `changed` that the epoch is
    another one.
    """

    def __init__(
        self,
        desk: Desk,
        incarnation: int,
        cursors: dict[str, int],
        *,
        links: Callable[[], Iterable[str]],
        save: Callable[[str, str, int], None],
        forgetting: Callable[[str], None],
        gone: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self._desk = desk
        self._links = links
        self._save = save
        self._forgetting = forgetting
        self._gone = gone
        self._changed = changed
        forgotten = under(FORGOTTEN, cursors)
        # Also those that a former incarnation had heard of: what they published may be missing.
        heard_of = {
            name: version
            for name, version in under(KNOWN, cursors).items()
            if version > forgotten.get(name, -1)
        }
        self.known = {*heard_of, desk.broker}
        self.topology = Topology(desk.broker, incarnation, heard_of, forgotten)

    def links_changed(self, gained: str | None = None) -> None:
        """A link of this broker came or went."""
        topology, broker = self.topology, self._desk.broker
        topology.change()
        if gained is not None:
            self._tell(gained, topology.all(), tuple(topology.forgotten.items()))
        for name in self._links():
            if name != gained:
                self._tell(name, ((broker, topology.versions[broker]),))
        self._changed()

    def hear(self, source: str, message: TopologyChanged) -> None:
        """A neighbour tells of changes."""
        forgotten = tuple([one for one in message.forgotten if self._forget(*one)])
        news = self.topology.hear(message.versions)
        own = self._desk.broker
        if any(broker == own for broker, _ in forgotten) and not any(broker == own for broker, _ in news):
            news += ((own, self.topology.versions[own]),)  # this broker is there after all
        for broker, version in news:
            if broker not in self.known:
                self.known.add(broker)
                self._save(KNOWN + broker, KNOWN + broker, version)
        if news or forgotten:
            for name in self._links():
                if name != source or any(broker == own for broker, _ in news):
                    self._tell(name, news, forgotten)
            self._changed()

    def forget(self, session: str, message: Forget) -> None:
        """An operator says that a broker is gone for good. Raises `UnknownBroker`."""
        broker = message.broker
        if broker == self._desk.broker or not (broker in self.known or broker in self.topology.forgotten):
            raise UnknownBroker(broker)
        version = self.topology.versions.get(broker, 0)
        if self._forget(broker, version, lambda: self._desk.answer(session, Forgot(broker))):
            for name in self._links():
                self._tell(name, (), ((broker, version),))
            self._changed()
        else:
            self._desk.answer(session, Forgot(broker))

    def _forget(self, broker: str, version: int, then: Callable[[], None] | None = None) -> bool:
        """Wait no more for a broker, and keep nothing for its subscriptions. False if that is no news."""
        if not self.topology.forget(broker, version):
            return False
        self._forgetting(broker)  # first on disk: it will be no news again after a crash
        self._desk.effects.append(SaveCursor(self._desk.token(then), FORGOTTEN + broker, version))
        if broker in self.known and broker not in self.topology.versions:
            self.known.discard(broker)
            self._desk.effects.append(SaveCursor(self._desk.token(), KNOWN + broker, -1))
            self._gone(broker)
        return True

    def _tell(
        self, broker: str, versions: tuple[tuple[str, int], ...], forgotten: tuple[tuple[str, int], ...] = ()
    ) -> None:
        self._desk.effects.append(Send(broker, TopologyChanged(versions, forgotten)))


def under(prefix: str, cursors: dict[str, int]) -> dict[str, int]:
    """The cursors under a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in cursors.items() if name.startswith(prefix)}
