"""WS-BaseNotification as the standard has it: a producer, its subscriptions, and pull points.

A pull point is an address of its own, which a client makes first and names as the consumer of a subscription.
The subscription has the pull point's name then, so there is one for each pull point, and nothing is kept of one
that nobody has subscribed for.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from starlette.responses import Response

from palio.broker.soap.current_messages import CurrentMessages
from palio.broker.soap.elements import Element, make
from palio.broker.soap.names import WSA, WSNT
from palio.broker.soap.publishing import SoapPublishing
from palio.broker.soap.service import SoapCall, SoapOperation
from palio.broker.soap.subscribing import SoapSubscribing
from palio.broker.soap.wsdl import wsdl

if TYPE_CHECKING:
    from palio.broker.gateway.call import Call

PRODUCER, SUBSCRIPTIONS, PULL_POINTS = "/wsn", "/wsn/subscriptions/{id}", "/wsn/pullpoints/{id}"
_PORTS = "http://docs.oasis-open.org/wsn/bw-2"
_PULL_POINT = re.compile(r"pullpoint-[0-9a-f]{16}")


class WsNotification:
    """The endpoints of WS-BaseNotification."""

    def __init__(
        self, subscribing: SoapSubscribing, publishing: SoapPublishing, current: CurrentMessages
    ) -> None:
        self._subscribing = subscribing
        self._publishing = publishing
        self._current = current

    def producer(self) -> tuple[SoapOperation, ...]:
        port = f"{_PORTS}/NotificationProducer"
        return (
            SoapOperation(WSNT, "Subscribe", port, self._subscribe),
            SoapOperation(WSNT, "GetCurrentMessage", port, self._current.get),
            SoapOperation(WSNT, "CreatePullPoint", f"{_PORTS}/CreatePullPoint", self._create_pull_point),
        )

    def consumer(self) -> tuple[SoapOperation, ...]:
        """What publishers call: to them, a broker is a consumer."""
        port = f"{_PORTS}/NotificationConsumer"
        return (SoapOperation(WSNT, "Notify", port, self._publishing.notify, one_way=True),)

    def subscription(self) -> tuple[SoapOperation, ...]:
        subscribing, pausable = self._subscribing, f"{_PORTS}/PausableSubscriptionManager"
        return (
            SoapOperation(WSNT, "Renew", f"{_PORTS}/SubscriptionManager", subscribing.renew),
            SoapOperation(WSNT, "Unsubscribe", f"{_PORTS}/SubscriptionManager", subscribing.unsubscribe),
            SoapOperation(WSNT, "PauseSubscription", pausable, subscribing.pause),
            SoapOperation(WSNT, "ResumeSubscription", pausable, subscribing.resume),
        )

    def pull_point(self) -> tuple[SoapOperation, ...]:
        return (
            SoapOperation(WSNT, "GetMessages", f"{_PORTS}/PullPoint", self._subscribing.get_messages),
            SoapOperation(WSNT, "DestroyPullPoint", f"{_PORTS}/PullPoint", self._destroy_pull_point),
        )

    async def describe(self, call: Call) -> Response:
        """The WSDL of all of this, with the address by which the broker was called."""
        ports = {
            "NotificationProducer": self.producer(),
            "NotificationConsumer": self.consumer(),
            "SubscriptionManager": self.subscription(),
            "PullPoint": self.pull_point(),
        }
        address = f"{call.base}{PRODUCER}"
        content = wsdl(ports, {"NotificationProducer": address, "NotificationConsumer": address})
        return Response(content, media_type="text/xml")

    async def _subscribe(self, call: SoapCall) -> Element:
        consumer = self._subscribing.consumer_of(call)
        place = consumer.removeprefix(f"{call.base}/wsn/pullpoints/")
        return await self._subscribing.subscribe(call, place if _PULL_POINT.fullmatch(place) else None)

    async def _create_pull_point(self, call: SoapCall) -> Element:
        address = f"{call.base}/wsn/pullpoints/pullpoint-{secrets.token_hex(8)}"
        return make(WSNT, "CreatePullPointResponse", make(WSNT, "PullPoint", make(WSA, "Address", address)))

    async def _destroy_pull_point(self, call: SoapCall) -> Element:
        await self._subscribing.unsubscribe(call)
        return make(WSNT, "DestroyPullPointResponse")
