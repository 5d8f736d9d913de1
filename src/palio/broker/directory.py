"""`Directory`: clients are told at which addresses other brokers of the network are.

So a client that was given a single address goes on elsewhere when its broker dies. Told is what the overlay
knows: the neighbours, and others that were met; only addresses of machines in networks that it may dial
(`overlay.networks`), never names, and to a client on another machine none of this one. A client has shown who
it is before it is told anything, where that is asked. Whenever there is something else to tell, it is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from palio.protocol.addresses import is_loopback, is_protected
from palio.protocol.overlay import MOST_TOLD, OtherBrokers
from palio.routing.overlay.settings import Passable

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.connection import BrokerConnection

_KIND = OtherBrokers.__name__.lower()


class Directory:
    """What the clients of one broker are told of others."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._passable = Passable(broker.settings.overlay.networks)
        self._addresses: tuple[str, ...] = ()

    def look(self) -> None:
        """Look whether there is something else to tell, and tell all clients if there is."""
        finds_links = self._broker.settings.overlay.most is not None
        addresses = self._known() if finds_links else ()
        if addresses != self._addresses:
            self._addresses = addresses
            for connection in self._broker.sessions.values():
                self._say(connection, addresses)

    def welcomed(self, connection: BrokerConnection) -> None:
        """Handles that a client has come in."""
        if self._addresses:
            self._say(connection, self._addresses)

    def _known(self) -> tuple[str, ...]:
        router = self._broker.router
        overlay = router.overlay()
        met = sorted([one for one in overlay.known if one.broker], key=lambda one: one.distance)
        found: Iterable[str] = dict.fromkeys(
            [one.address for one in (*overlay.neighbours, *met) if not router.is_relay(one.broker)]
        )
        secure = self._broker.tls is not None
        alike = [one for one in found if is_protected(one) == secure and self._passable(one)]
        return tuple(sorted(alike[:MOST_TOLD]))

    def _say(self, connection: BrokerConnection, addresses: tuple[str, ...]) -> None:
        if connection.binding != "palio" or _KIND not in connection.knows:
            return
        if not is_loopback(f"[{connection.host}]"):
            addresses = tuple([one for one in addresses if not is_loopback(one)])
        connection.say(OtherBrokers(addresses))
