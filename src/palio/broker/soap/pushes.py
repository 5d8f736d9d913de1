"""Content modes of webhooks that speak SOAP: `notify` and `notify-1.1`, and the bare `document`."""

from __future__ import annotations

from functools import partial

from palio.broker.gateway.definitions import Definition
from palio.broker.gateway.modes import PushModes
from palio.broker.soap.envelope import SoapVersion, write_envelope
from palio.broker.soap.messages import bare_document, notify
from palio.model.formats import Message
from palio.protocol.envelope import Envelope

_ACTION = "http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify"


def _notify(version: SoapVersion, definition: Definition, envelope: Envelope) -> Message:
    content = write_envelope(version, notify([envelope]), action=_ACTION, to=definition.sink or "")
    media_type = version.media_type
    if version is SoapVersion.V11:
        return Message((("Content-Type", media_type), ("SOAPAction", f'"{_ACTION}"')), content)
    return Message((("Content-Type", f'{media_type}; action="{_ACTION}"'),), content)


def _document(definition: Definition, envelope: Envelope) -> Message:
    return Message((("Content-Type", "application/xml"),), bare_document(envelope))


MODES: PushModes = {
    "notify": partial(_notify, SoapVersion.V12),
    "notify-1.1": partial(_notify, SoapVersion.V11),
    "document": _document,
}
