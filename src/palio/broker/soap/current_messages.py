"""`GetCurrentMessage` of WS-BaseNotification: what was published last on a topic.

The topics of which that is known are the families of documents, for whose documents there is a knowledge base
(`broker.documents`). The answer is what a subscriber would have got: the document, as it was published, or the
message of items that says that one was withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.broker.documents.requests import may_see
from palio.broker.gateway.credentials import authenticated
from palio.broker.soap.elements import Element, child, make, text_of
from palio.broker.soap.faults import SoapProblem
from palio.broker.soap.messages import document_of, items_of
from palio.broker.soap.names import TOPIC_CONCRETE, WSNT
from palio.broker.soap.service import SoapCall
from palio.broker.soap.topics import single_topic

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


class CurrentMessages:
    """Answers who asks for the last message of a topic."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker

    async def get(self, call: SoapCall) -> Element:
        """Raises `SoapProblem`, `NotAllowed`, `NoJournal`, `TooManyDocuments`."""
        asked = child(call.asked, WSNT, "Topic")
        if asked is None:
            raise SoapProblem("InvalidTopicExpressionFault", "A Topic is needed.")
        topic = single_topic(text_of(asked), asked.get("Dialect") or TOPIC_CONCRETE, asked.nsmap)
        documents, principal = self._broker.documents, authenticated(self._broker, call.credentials)
        if not documents.families.has(topic) or not may_see(principal, topic):
            reason = f"Of the topic {topic!r} no current message is kept; families of documents have one."
            raise SoapProblem("TopicNotSupportedFault", reason)
        found = await documents.knowledge.newest(topic, principal)
        if found is None:
            reason = f"No document of the family {topic!r} is known here that you may see."
            raise SoapProblem("NoCurrentMessageOnTopicFault", reason)
        document = document_of(found.envelope.notification)
        content = items_of(found.envelope) if document is None else document
        return make(WSNT, "GetCurrentMessageResponse", content)
