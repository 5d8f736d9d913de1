"""ONVIF's device and event services, as far as a client needs them to find and use subscriptions.

A client asks the device which services it has and what time it is there, and then subscribes at the event
service. Everything else that a camera does is unknown here, and told as such.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from palio.broker.soap.elements import Element, make
from palio.broker.soap.names import (
    CONTENT_ITEMS,
    CONTENT_PALIO,
    TDS,
    TEV,
    TOPIC_DIALECTS,
    TT,
    WSNT,
    WSTOP,
)
from palio.broker.soap.service import SoapCall, SoapOperation
from palio.broker.soap.subscribing import SoapSubscribing

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

DEVICE, EVENTS, SUBSCRIPTION = "/onvif/device_service", "/onvif/event_service", "/onvif/subscriptions/{id}"
# The version of the event service that is spoken: the first that has pull points as they are today.
_MAJOR, _MINOR = "2", "60"
_DEVICE_PORT = f"{TDS}/Device"
_EVENT_PORT = f"{TEV}/EventPortType"
_POINT_PORT = f"{TEV}/PullPointSubscription"
_PRODUCER_PORT = "http://docs.oasis-open.org/wsn/bw-2/NotificationProducer"
_MANAGER_PORT = "http://docs.oasis-open.org/wsn/bw-2/SubscriptionManager"
_PAUSABLE_PORT = "http://docs.oasis-open.org/wsn/bw-2/PausableSubscriptionManager"
_PULL_PORT = "http://docs.oasis-open.org/wsn/bw-2/PullPoint"
_DEVICE_SCHEMA = "http://www.onvif.org/onvif/ver10/schema/onvif.xsd"


class Onvif:
    """The services of a broker that is asked as if it were a camera."""

    def __init__(self, broker: BrokerServer, subscribing: SoapSubscribing) -> None:
        self._broker = broker
        self._subscribing = subscribing

    def device(self) -> tuple[SoapOperation, ...]:
        return (
            # Clients whose clocks are apart ask for the time first, and show who they are afterwards.
            SoapOperation(TDS, "GetSystemDateAndTime", _DEVICE_PORT, self._time, open=True),
            SoapOperation(TDS, "GetServices", _DEVICE_PORT, self._services),
            SoapOperation(TDS, "GetCapabilities", _DEVICE_PORT, self._capabilities),
            SoapOperation(TDS, "GetDeviceInformation", _DEVICE_PORT, self._information),
        )

    def events(self) -> tuple[SoapOperation, ...]:
        subscribing = self._subscribing
        return (
            SoapOperation(TEV, "GetServiceCapabilities", _EVENT_PORT, self._event_capabilities),
            SoapOperation(TEV, "GetEventProperties", _EVENT_PORT, self._event_properties),
            SoapOperation(TEV, "CreatePullPointSubscription", _EVENT_PORT, subscribing.create_pull_point),
            SoapOperation(WSNT, "Subscribe", _PRODUCER_PORT, subscribing.subscribe),
        )

    def subscription(self) -> tuple[SoapOperation, ...]:
        subscribing = self._subscribing
        return (
            SoapOperation(TEV, "PullMessages", _POINT_PORT, subscribing.pull),
            SoapOperation(TEV, "Seek", _POINT_PORT, subscribing.seek),
            SoapOperation(TEV, "SetSynchronizationPoint", _POINT_PORT, subscribing.synchronize),
            SoapOperation(WSNT, "Renew", _MANAGER_PORT, subscribing.renew),
            SoapOperation(WSNT, "Unsubscribe", _MANAGER_PORT, subscribing.unsubscribe),
            SoapOperation(WSNT, "PauseSubscription", _PAUSABLE_PORT, subscribing.pause),
            SoapOperation(WSNT, "ResumeSubscription", _PAUSABLE_PORT, subscribing.resume),
            SoapOperation(WSNT, "GetMessages", _PULL_PORT, subscribing.get_messages),
        )

    async def _time(self, call: SoapCall) -> Element:
        now = datetime.fromtimestamp(self._broker.now(), UTC)
        time = _numbers("Time", Hour=now.hour, Minute=now.minute, Second=now.second)
        date = _numbers("Date", Year=now.year, Month=now.month, Day=now.day)
        answer = make(
            TDS,
            "SystemDateAndTime",
            make(TT, "DateTimeType", "NTP"),
            make(TT, "DaylightSavings", "false"),
            make(TT, "TimeZone", make(TT, "TZ", "UTC0")),
            make(TT, "UTCDateTime", time, date),
        )
        return make(TDS, "GetSystemDateAndTimeResponse", answer)

    async def _services(self, call: SoapCall) -> Element:
        return make(
            TDS,
            "GetServicesResponse",
            _service(TDS, f"{call.base}{DEVICE}"),
            _service(TEV, f"{call.base}{EVENTS}"),
        )

    async def _capabilities(self, call: SoapCall) -> Element:
        events = make(
            TT,
            "Events",
            make(TT, "XAddr", f"{call.base}{EVENTS}"),
            make(TT, "WSSubscriptionPolicySupport", "true"),
            make(TT, "WSPullPointSupport", "true"),
            make(TT, "WSPausableSubscriptionManagerInterfaceSupport", "true"),
        )
        device = make(TT, "Device", make(TT, "XAddr", f"{call.base}{DEVICE}"))
        return make(TDS, "GetCapabilitiesResponse", make(TDS, "Capabilities", device, events))

    async def _information(self, call: SoapCall) -> Element:
        return make(
            TDS,
            "GetDeviceInformationResponse",
            make(TDS, "Manufacturer", "Palio"),
            make(TDS, "Model", "Palio broker"),
            make(TDS, "FirmwareVersion", version("palio")),
            make(TDS, "SerialNumber", self._broker.settings.name),
            make(TDS, "HardwareId", "palio"),
        )

    async def _event_capabilities(self, call: SoapCall) -> Element:
        limit = str(self._broker.settings.gateway.subscriptions)
        capabilities = make(
            TEV,
            "Capabilities",
            WSSubscriptionPolicySupport="true",
            WSPausableSubscriptionManagerInterfaceSupport="true",
            MaxNotificationProducers=limit,
            MaxPullPoints=limit,
            PersistentNotificationStorage="true" if self._broker.settings.journal else "false",
        )
        return make(TEV, "GetServiceCapabilitiesResponse", capabilities)

    async def _event_properties(self, call: SoapCall) -> Element:
        return make(
            TEV,
            "GetEventPropertiesResponse",
            make(TEV, "TopicNamespaceLocation", f"{call.base}/docs"),
            make(WSNT, "FixedTopicSet", "false"),
            make(WSTOP, "TopicSet"),
            *[make(WSNT, "TopicExpressionDialect", one) for one in TOPIC_DIALECTS],
            make(TEV, "MessageContentFilterDialect", CONTENT_ITEMS),
            make(TEV, "MessageContentFilterDialect", CONTENT_PALIO),
            make(TEV, "MessageContentSchemaLocation", _DEVICE_SCHEMA),
        )


def _numbers(name: str, **numbers: int) -> Element:
    return make(TT, name, *[make(TT, key, str(number)) for key, number in numbers.items()])


def _service(namespace: str, address: str) -> Element:
    spoken = make(TDS, "Version", make(TT, "Major", _MAJOR), make(TT, "Minor", _MINOR))
    return make(TDS, "Service", make(TDS, "Namespace", namespace), make(TDS, "XAddr", address), spoken)
