"""`Gateway`: the parts of HTTP that every broker has, as extensions, and what they count."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from palio.broker.extension import Extension, Socket
from palio.broker.gateway import websocket
from palio.broker.gateway.counts import GatewayStatistics
from palio.broker.gateway.front import Front
from palio.broker.gateway.guide import Guide
from palio.broker.gateway.health import Health
from palio.broker.gateway.modes import CLOUD_EVENTS, PushModes
from palio.broker.gateway.publishing import HttpPublishing
from palio.broker.gateway.resources import Resources
from palio.broker.gateway.sinks import Sinks
from palio.broker.gateway.streams import Streams
from palio.broker.gateway.subscriptions import Subscriptions
from palio.documents.libxml import etree_module

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


class Gateway:
    """Events, streams, subscriptions, `palio/2` over WebSocket, health and metrics, and the guide to them."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._sinks = Sinks(broker.settings.gateway, broker.settings.name)
        self._soap = broker.settings.soap.enabled
        self._subscriptions = Subscriptions(broker, broker.keeper(), self._sinks, self._modes())
        self._publishing = HttpPublishing(broker)
        self._streams = Streams(broker, self._subscriptions.filter_named)

    def _modes(self) -> PushModes:
        """Raises `MissingDependency` if SOAP is wanted and there is nothing that reads XML."""
        if not self._soap:
            return CLOUD_EVENTS
        etree_module()
        from palio.broker.soap.pushes import MODES  # noqa: PLC0415 (it needs lxml)

        return {**CLOUD_EVENTS, **MODES}

    def _more(self) -> tuple[Extension, ...]:
        """What the settings turn on."""
        if not self._soap:
            return ()
        from palio.broker.soap.extension import soap  # noqa: PLC0415 (it needs lxml)

        return (soap(self._broker, self._subscriptions, self._publishing.say),)

    def extensions(self) -> tuple[Extension, ...]:
        broker, serve = self._broker, partial(websocket.serve, self._broker)
        return (
            self._publishing.extension(),
            self._streams.extension(),
            Resources(self._subscriptions, self._sinks).extension(),
            Guide(broker).extension(),
            Health(broker).extension(),
            Extension(name="websocket", sockets=(Socket(websocket.PATH, serve, open=True),)),
            *self._more(),
        )

    def statistics(self, front: Front) -> GatewayStatistics:
        return GatewayStatistics(
            requests=dict(front.requests),
            pushes=self._subscriptions.pushes(),
            streams=self._streams.open,
            streams_cut_off=self._streams.cut_off,
            subscriptions=len(self._subscriptions),
            held_bytes=front.bodies.held,
            filed_bytes=front.bodies.filed,
        )
