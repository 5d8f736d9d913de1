"""SOAP as an extension of the gateway: WS-Notification and ONVIF's event service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.broker.extension import Extension, Job, Route
from palio.broker.gateway.subscriptions import Subscriptions
from palio.broker.soap.current_messages import CurrentMessages
from palio.broker.soap.notification import PRODUCER, PULL_POINTS, SUBSCRIPTIONS, WsNotification
from palio.broker.soap.onvif import DEVICE, EVENTS, SUBSCRIPTION, Onvif
from palio.broker.soap.publishing import Say, SoapPublishing
from palio.broker.soap.pull_points import PullPoints
from palio.broker.soap.service import SoapEndpoints
from palio.broker.soap.simple import SIMPLE, SimpleOperations
from palio.broker.soap.subscribing import SoapSubscribing

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

_SWEPT_EVERY = 1.0  # seconds, as often as subscriptions end


def soap(broker: BrokerServer, subscriptions: Subscriptions, say: Say) -> Extension:
    """Everything that is spoken in SOAP, over the subscriptions of the gateway; `say` publishes."""
    points = PullPoints(broker, subscriptions)
    subscribing = SoapSubscribing(broker, subscriptions, points)
    publishing = SoapPublishing(say)
    onvif = Onvif(broker, subscribing)
    notification = WsNotification(subscribing, publishing, CurrentMessages(broker))
    simple = SimpleOperations(broker, subscriptions, publishing)
    endpoints = SoapEndpoints(broker)
    routes = (
        endpoints.route(DEVICE, onvif.device()),
        endpoints.route(EVENTS, onvif.events()),
        endpoints.route(SUBSCRIPTION, onvif.subscription()),
        Route("GET", PRODUCER, notification.describe, open=True, reads=True),
        endpoints.route(PRODUCER, notification.producer() + notification.consumer()),
        Route("GET", SIMPLE, simple.describe, open=True, reads=True),
        endpoints.route(SIMPLE, simple.operations()),
        endpoints.route(SUBSCRIPTIONS, notification.subscription()),
        endpoints.route(PULL_POINTS, notification.pull_point()),
    )
    sweep = Job("pull points", _SWEPT_EVERY, points.sweep)
    return Extension(name="soap", routes=routes, jobs=(sweep,), stop=points.stop)
