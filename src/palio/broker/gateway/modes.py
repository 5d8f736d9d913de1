"""Content modes: how an event is written for a webhook.

Those of CloudEvents are always there. Others are handed to the gateway by what brings them:
`palio.broker.soap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from palio.broker.gateway.definitions import Definition
from palio.model.errors import WrongParameter
from palio.model.formats import BINARY, STRUCTURED, Format, Message
from palio.protocol.envelope import Envelope

PushMode: TypeAlias = Callable[[Definition, Envelope], Message]
PushModes: TypeAlias = Mapping[str, PushMode]


def _of(format: Format) -> PushMode:
    def write(definition: Definition, envelope: Envelope) -> Message:
        [message] = format.write((envelope,))
        return message

    return write


CLOUD_EVENTS: PushModes = {"binary": _of(BINARY), "structured": _of(STRUCTURED)}


def require_mode(modes: PushModes, name: str) -> PushMode:
    """A content mode that this broker has. Raises `WrongParameter`."""
    if name not in modes:
        reason = f"The mode {name!r} needs SOAP, which the setting `soap.enabled` of the broker turns on."
        raise WrongParameter("$.config.contentmode", reason)
    return modes[name]
