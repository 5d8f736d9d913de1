"""Notification messages: an event as WS-Notification tells it.

What was published as a document of XML is the message, as it is. Everything else becomes a message of ONVIF:
each attribute is an item of its data, by name and value, and the time is the one at which it was published.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from datetime import datetime

from lxml import etree

from palio.broker.soap.elements import Element, make
from palio.broker.soap.names import TOPIC_CONCRETE, TT, WSA, WSNT
from palio.broker.soap.termination import write_moment
from palio.broker.soap.topics import ATTRIBUTES
from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.parsing import DocumentLimits, parse_document
from palio.model.moments import format_time
from palio.model.notification import Notification
from palio.model.values import Value
from palio.protocol.envelope import Envelope

_XML_START = re.compile(rb"\s*(\xef\xbb\xbf)?\s*<")


def notification_message(envelope: Envelope, reference: str = "") -> Element:
    """One event, with the address of the subscription that it is sent for."""
    notification = envelope.notification
    topic, document = topic_of(notification), document_of(notification)
    return make(
        WSNT,
        "NotificationMessage",
        make(WSNT, "SubscriptionReference", make(WSA, "Address", reference)) if reference else None,
        make(WSNT, "Topic", topic, Dialect=TOPIC_CONCRETE) if topic else None,
        make(WSNT, "Message", items_of(envelope) if document is None else document),
    )


def notify(envelopes: Iterable[Envelope], reference: str = "") -> Element:
    """A `Notify`, as it is pushed."""
    return make(WSNT, "Notify", *[notification_message(one, reference) for one in envelopes])


def topic_of(notification: Notification) -> str:
    """What an event is about, by the first attribute that says so."""
    for name in ATTRIBUTES:
        said = notification.attributes.get(name)
        if isinstance(said, str) and said:
            return said
    return ""


def document_of(notification: Notification) -> Element | None:
    """The document that an event is, if it is one."""
    payload = notification.payload
    if payload is None or notification.unindexed or _XML_START.match(payload) is None:
        return None
    try:
        return parse_document(payload, DocumentLimits()).getroot()
    except (DocumentRefused, DocumentTooLarge):
        return None


def items_of(envelope: Envelope) -> Element:
    """The attributes of an event, as a message of ONVIF."""
    notification = envelope.notification
    items = [
        make(TT, "SimpleItem", Name=name, Value=written)
        for name, value in sorted(notification.attributes.items())
        for written in _written(value)
    ]
    moment = notification.time.timestamp() if notification.time is not None else envelope.time
    return make(TT, "Message", make(TT, "Data", *items), UtcTime=write_moment(moment))


def _written(value: Value) -> list[str]:
    """A value as XML Schema writes it; a list is several."""
    match value:
        case bool():
            return ["true" if value else "false"]
        case int() | float():
            return [repr(value)]
        case str():
            return [value]
        case bytes():
            return [base64.b64encode(value).decode()]
        case datetime():
            return [format_time(value)]
        case _:
            return [written for one in value for written in _written(one)]


def bare_document(envelope: Envelope) -> bytes:
    """An event without anything around it (`UseRaw`): the document itself, or the message that tells it."""
    document = document_of(envelope.notification)
    if document is not None and envelope.notification.payload is not None:
        return envelope.notification.payload
    written: bytes = etree.tostring(items_of(envelope), encoding="utf-8", xml_declaration=True)
    return written
