"""Publishing by `Notify`: each message becomes an event, and what is one document of XML is read as such.

1. A message of ONVIF is the event that its items say, as texts; any other element is a document, and so is an
   attachment. An attachment is published as it is; an element as it stands in the envelope, with the namespaces
   that hold there.
2. The messages of a request are published in their order. Those of one kind that stand together are published
   all or none; `Notify` has no answer, so what is refused is told by a fault.
3. A `MessageID` makes a request that is sent again the same events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TypeAlias

from lxml import etree

from palio.broker.gateway.credentials import HttpCredentials
from palio.broker.gateway.publishing import Confirmed
from palio.broker.soap.attachments import referred
from palio.broker.soap.elements import Element, child, children, text_of
from palio.broker.soap.faults import SoapProblem
from palio.broker.soap.names import TT, WSNT, qualified
from palio.broker.soap.service import SoapCall
from palio.broker.soap.termination import read_moment
from palio.model.notification import Notification
from palio.protocol.requests import Publish, PublishDocuments

Say: TypeAlias = Callable[[Publish | PublishDocuments, HttpCredentials], Awaitable[Confirmed]]
MOST_MESSAGES = 1_000  # of one request


class SoapPublishing:
    """Publishes what requests bring. `say` has it published for whoever calls."""

    def __init__(self, say: Say) -> None:
        self._say = say

    async def notify(self, call: SoapCall) -> None:
        """Publish the messages of a `Notify`. Raises what is wrong with one of them."""
        messages = [one for one in children(call.asked) if one.tag == qualified(WSNT, "NotificationMessage")]
        if not messages or len(messages) > MOST_MESSAGES:
            reason = f"A Notify has 1 to {MOST_MESSAGES:,} messages; this one has {len(messages):,}."
            raise SoapProblem("InvalidMessageContentExpressionFault", reason)
        read = [self._read(one, number, call) for number, one in enumerate(messages)]
        for kind, several in groupby(read, lambda one: one[0]):
            await self._say(kind(tuple([notification for _, notification in several])), call.credentials)

    def _read(
        self, message: Element, number: int, call: SoapCall
    ) -> tuple[type[Publish] | type[PublishDocuments], Notification]:
        content, topic = child(message, WSNT, "Message"), text_of(child(message, WSNT, "Topic"))
        attributes: dict[str, Any] = {"topic": topic} if topic else {}
        more: dict[str, Any] = {"id": f"{call.message_id}/{number}"} if call.message_id else {}
        attached = None if content is None else referred(content, call.attachments)
        if attached is not None:
            return PublishDocuments, Notification(attributes, payload=attached, **more)
        inside = [] if content is None else list(children(content))
        if len(inside) != 1:
            reason = f"The message {number + 1} needs one element in its Message, or the address of a part."
            raise SoapProblem("InvalidMessageContentExpressionFault", reason)
        if inside[0].tag != qualified(TT, "Message"):
            document = etree.tostring(inside[0], with_tail=False, encoding="utf-8")
            return PublishDocuments, Notification(attributes, payload=document, **more)
        if moment := inside[0].get("UtcTime"):
            more["time"] = datetime.fromtimestamp(read_moment(moment), UTC)
        return Publish, Notification(dict(_items(inside[0])) | attributes, **more)


def _items(message: Element) -> Iterator[tuple[str, str | list[str]]]:
    """What the items of a message say: a text, or several of one name."""
    found: dict[str, list[str]] = {}
    for item in message.iter(qualified(TT, "SimpleItem")):
        found.setdefault(item.get("Name", ""), []).append(item.get("Value", ""))
    for name, values in found.items():
        yield name, values[0] if len(values) == 1 else values
