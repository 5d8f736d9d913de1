"""Subscriptions by WS-Notification: made, renewed, paused, pulled from and ended.

Each is a subscription of the gateway, the same as one made by `POST /subscriptions`: whoever made it sees it
there, and every durable subscription without a sink that ends by itself can be pulled from here.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from palio.broker.gateway.credentials import authenticated
from palio.broker.gateway.subscriptions import Subscriptions, UnknownSubscription
from palio.broker.soap.content import content_filter, document_filter
from palio.broker.soap.elements import Element, child, children, make, text_of
from palio.broker.soap.envelope import SoapVersion
from palio.broker.soap.faults import SoapProblem
from palio.broker.soap.messages import notification_message
from palio.broker.soap.names import CONTENT_XPATH, TEV, TOPIC_CONCRETE, WSA, WSNT, qualified
from palio.broker.soap.pull_points import AT_ONCE, LONGEST_PULL, PullPoints
from palio.broker.soap.service import SoapAnswer, SoapCall
from palio.broker.soap.termination import WrongTerm, read_duration, read_moment, read_term, write_moment
from palio.broker.soap.topics import topic_filter
from palio.model.errors import FilterError

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

# Seconds that a subscription lasts if nothing is said. Clients of cameras are used to the first; consumers of
# WS-Notification renew more seldom.
PULL_TERM, TERM = 60.0, 86_400.0
_NIL = qualified("http://www.w3.org/2001/XMLSchema-instance", "nil")


class SoapSubscribing:
    """The operations on subscriptions, for all endpoints that have them."""

    def __init__(self, broker: BrokerServer, subscriptions: Subscriptions, points: PullPoints) -> None:
        self._broker = broker
        self._subscriptions = subscriptions
        self._points = points

    # Making

    async def create_pull_point(self, call: SoapCall) -> Element:
        """One whose events wait for the client."""
        id, until = await self._create(call, {}, TEV, PULL_TERM)
        now = self._broker.now()
        return make(
            TEV,
            "CreatePullPointSubscriptionResponse",
            make(TEV, "SubscriptionReference", make(WSA, "Address", _address(call, id))),
            *_times(now, until),
        )

    def consumer_of(self, call: SoapCall) -> str:
        """Where events shall be sent. Raises `SoapProblem`."""
        consumer = text_of(child(child(call.asked, WSNT, "ConsumerReference"), WSA, "Address"))
        if not consumer:
            raise SoapProblem("SubscribeCreationFailedFault", "A ConsumerReference with an Address is needed.")
        return consumer

    async def subscribe(self, call: SoapCall, pull_point: str | None = None) -> Element:
        """One whose events are pushed to a consumer, or wait at a pull point of that name."""
        consumer = self.consumer_of(call)
        mode = "notify" if call.version is SoapVersion.V12 else "notify-1.1"
        if child(child(call.asked, WSNT, "SubscriptionPolicy"), WSNT, "UseRaw") is not None:
            mode = "document"
        wish: dict[str, Any] = {"sink": consumer, "config": {"contentmode": mode}}
        if pull_point is not None:
            wish = {"id": pull_point}
        id, until = await self._create(call, wish, WSNT, TERM)
        reference = make(WSNT, "SubscriptionReference", make(WSA, "Address", _address(call, id)))
        return make(WSNT, "SubscribeResponse", reference, *_times(self._broker.now(), until))

    async def _create(
        self, call: SoapCall, wish: dict[str, Any], namespace: str, usual: float
    ) -> tuple[str, float | None]:
        asked = call.asked
        filters = await self._filters(child(asked, namespace, "Filter"), call)
        until = self._term(child(asked, namespace, "InitialTerminationTime"), "Initial", usual)
        wish = {
            "id": f"soap-{secrets.token_hex(8)}",
            "filters": [{"palio": one} for one in filters] or None,
            **wish,
        }
        wish["config"] = {**wish.get("config", {}), "until": until}
        try:
            shown, _ = await self._subscriptions.create(wish, None, call.enter)
        except FilterError as problem:
            raise SoapProblem("InvalidFilterFault", str(problem)) from None
        return shown.id, until

    async def _filters(self, filter: Element | None, call: SoapCall) -> list[str]:
        """What shall be selected, in our own language; all of it must hold."""
        found = []
        for one in () if filter is None else children(filter):
            dialect, text = one.get("Dialect"), text_of(one)
            if one.tag == qualified(WSNT, "TopicExpression"):
                found.append(topic_filter(text, dialect or TOPIC_CONCRETE, one.nsmap))
            elif one.tag == qualified(WSNT, "MessageContent") and dialect == CONTENT_XPATH:
                principal = authenticated(self._broker, call.credentials)
                ask = partial(document_filter, text, one.nsmap)
                found.append(await self._broker.documents.selections.asked(principal, ask))
            elif one.tag == qualified(WSNT, "MessageContent"):
                found.append(content_filter(text, dialect or "", one.nsmap))
            else:
                known = "there are TopicExpression and MessageContent"
                raise SoapProblem(
                    "InvalidFilterFault", f"A filter {str(one.tag)[:200]!r} is not known here; {known}."
                )
        return found

    # One that is there

    async def renew(self, call: SoapCall) -> Element:
        """It ends later, or earlier."""
        until = self._term(child(call.asked, WSNT, "TerminationTime"), "", PULL_TERM)
        await self._subscriptions.renew(call.id, until, call.enter)
        now, end = make(WSNT, "CurrentTime", write_moment(self._broker.now())), _end(WSNT, until)
        return make(WSNT, "RenewResponse", end, now)

    async def unsubscribe(self, call: SoapCall) -> Element:
        await self._subscriptions.delete(call.id, call.enter)
        await self._points.sweep()
        return make(WSNT, "UnsubscribeResponse")

    async def pause(self, call: SoapCall) -> Element:
        self._require(call)
        await self._subscriptions.pause(call.id, call.enter)
        return make(WSNT, "PauseSubscriptionResponse")

    async def resume(self, call: SoapCall) -> Element:
        self._require(call)
        await self._subscriptions.resume(call.id, call.enter)
        return make(WSNT, "ResumeSubscriptionResponse")

    async def pull(self, call: SoapCall) -> SoapAnswer:
        """ONVIF's way to ask for events: waits for the first, and brings what is there then."""
        seconds = read_duration(text_of(child(call.asked, TEV, "Timeout")) or f"PT{LONGEST_PULL:g}S")
        most = read_limit(text_of(child(call.asked, TEV, "MessageLimit")))
        key = self._require(call)
        pulled = await self._points.pull(key, most, seconds)
        until = self._subscriptions.until(key)
        now = self._broker.now()
        content = make(
            TEV,
            "PullMessagesResponse",
            make(TEV, "CurrentTime", write_moment(now)),
            # What does not end by itself has to say some time here: it is later whenever it is asked for.
            make(TEV, "TerminationTime", write_moment(until if until is not None else now + TERM)),
            *[notification_message(one) for one in pulled.envelopes],
        )
        return SoapAnswer(content, lambda sent: self._points.settle(key, pulled, sent=sent))

    async def get_messages(self, call: SoapCall) -> SoapAnswer:
        """WS-Notification's way to ask for events: brings what is there, and does not wait."""
        most = read_limit(text_of(child(call.asked, WSNT, "MaximumNumber")))
        key = self._require(call)
        pulled = await self._points.pull(key, most, SOON)
        content = make(WSNT, "GetMessagesResponse", *[notification_message(one) for one in pulled.envelopes])
        return SoapAnswer(content, lambda sent: self._points.settle(key, pulled, sent=sent))

    async def seek(self, call: SoapCall) -> Element:
        """Goes on from a time in the past, as far as journals reach back."""
        if text_of(child(call.asked, TEV, "Reverse")) in ("true", "1"):
            raise SoapProblem(
                "UnableToGetMessagesFault", "Events come in their order here, and not in reverse."
            )
        moment = read_moment(text_of(child(call.asked, TEV, "UtcTime")))
        self._require(call)
        await self._subscriptions.seek(call.id, {"since": moment}, call.enter)
        return make(TEV, "SeekResponse")

    async def synchronize(self, call: SoapCall) -> Element:
        """There are no properties whose state would have to be told: events are all that there is."""
        self._require(call)
        return make(TEV, "SetSynchronizationPointResponse")

    def _require(self, call: SoapCall) -> tuple[str, str]:
        """The key of a subscription. Raises `UnknownSubscription`, also for what is somebody else's."""
        key = call.principal, call.id
        if self._subscriptions.config_named(*key) is None:
            raise UnknownSubscription(call.id)
        return key

    def _term(self, element: Element | None, initial: str, usual: float) -> float | None:
        if element is not None and element.get(_NIL) in ("true", "1"):
            return None
        written = text_of(element)
        now = self._broker.now()
        try:
            return read_term(written, now) if written else now + usual
        except WrongTerm as problem:
            raise SoapProblem(f"Unacceptable{initial}TerminationTimeFault", str(problem)) from None


# Seconds in which what is waiting already comes: it is in this process, or on this disk.
SOON = 0.25


def read_limit(written: str) -> int:
    """How many messages are wanted at the most. Raises `SoapProblem`."""
    if not written:
        return AT_ONCE
    if not (written.isascii() and written.isdigit() and 0 < len(written) < 10 and int(written)):
        raise SoapProblem("UnableToGetMessagesFault", f"{written[:40]!r} is no number of messages.")
    return int(written)


def _address(call: SoapCall, id: str) -> str:
    return f"{call.base}{call.family}/subscriptions/{id}"


def _times(now: float, until: float | None) -> tuple[Element, Element]:
    return make(WSNT, "CurrentTime", write_moment(now)), _end(WSNT, until)


def _end(namespace: str, until: float | None) -> Element:
    end = make(namespace, "TerminationTime", None if until is None else write_moment(until))
    if until is None:
        end.set(_NIL, "true")
    return end
