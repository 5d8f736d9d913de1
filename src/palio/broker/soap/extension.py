"""SOAP as an extension of the gateway: WS-Notification and ONVIF's event service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.broker.extension import Extension, Job
from palio.broker.gateway.subscriptions import Subscriptions
from palio.broker.soap.onvif import DEVICE, EVENTS, SUBSCRIPTION, Onvif
from palio.broker.soap.pull_points import PullPoints
from palio.broker.soap.service import SoapEndpoints
from palio.broker.soap.subscribing import SoapSubscribing

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

_SWEPT_EVERY = 1.0  # seconds, as often as subscriptions end


def soap(broker: BrokerServer, subscriptions: Subscriptions) -> Extension:
    """Everything that is spoken in SOAP, over the subscriptions of the gateway."""
    points = PullPoints(broker, subscriptions)
    onvif = Onvif(broker, SoapSubscribing(broker, subscriptions, points))
    endpoints = SoapEndpoints(broker)
    routes = (
        endpoints.route(DEVICE, onvif.device()),
        endpoints.route(EVENTS, onvif.events()),
        endpoints.route(SUBSCRIPTION, onvif.subscription()),
    )
    sweep = Job("pull points", _SWEPT_EVERY, points.sweep)
    return Extension(name="soap", routes=routes, jobs=(sweep,), stop=points.stop)
