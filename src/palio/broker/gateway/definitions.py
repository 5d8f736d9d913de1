"""Subscriptions that were made as resources: what is known of each, and how that outlives the broker.

The file is replaced as a whole, and is on disk when `save` returns. It may have the secrets of webhooks in it:
nobody but the owner of the broker's process may read it. A subscription that this version does not take any
more is put aside, in a file beside it, and the others are there.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import msgspec

from palio.broker.access.files import write_private
from palio.model.errors import PalioError
from palio.protocol.durable.retry import Retry
from palio.protocol.durable.wishes import LONGEST_WAIT, MAX_ATTEMPTS
from palio.routing.documents.beginning import RetroactivePosition
from palio.store.lake.once import sync_folder

_log = logging.getLogger("palio.broker.gateway")

FILE = "subscriptions.json"
MAX_SINK = 2_048
MAX_TEXT = 4_096

# These end by \Z: before a newline at the end, $ would have its way.
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT)]
Types = Annotated[list[Text], msgspec.Meta(min_length=1, max_length=256)]
SinkAddress = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=MAX_SINK,
        description="A webhook; without one the subscription is read from /events?durable=ID.",
        extra_json_schema={"format": "uri"},
    ),
]
HeaderName = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9!#$&^_`|~.+-]{1,100}\\Z")]
HeaderValue = Annotated[str, msgspec.Meta(pattern="^[\\x21-\\x7e]([\\x20-\\x7e]{0,2046}[\\x21-\\x7e])?\\Z")]


class UnreadableDefinitions(PalioError):
    """The file of the subscriptions is damaged."""

    file: str
    reason: str
    sentence = "The subscriptions in {file} cannot be read: {reason} Put a copy in its place, or remove it."


class NotStored(PalioError):
    """A subscription that could not be written down, and so is what it was."""

    reason: str
    sentence = "The subscription could not be written: {reason}. Try again later."


class _DefinitionPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


Pause = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)]
SubscriptionId = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,63}\\Z")]
# What `read_since` reads, as JSON Schema says it.
MOMENT = {"anyOf": [{"enum": ["now", "all"]}, {"format": "date-time"}]}
SECONDS = {"minimum": 0, "exclusiveMaximum": 1e11}


class ProtocolSettings(_DefinitionPart, frozen=True):
    """How a webhook is called: further headers."""

    method: Literal["POST"] = "POST"
    headers: Annotated[dict[HeaderName, HeaderValue], msgspec.Meta(max_length=32)] = {}


class SinkCredential(_DefinitionPart, frozen=True):
    """What a webhook wants to see as `Authorization: Bearer`. It is never shown again."""

    accesstoken: HeaderValue
    credentialtype: Literal["ACCESSTOKEN"] = "ACCESSTOKEN"
    accesstokentype: Literal["Bearer"] = "Bearer"


# `notify` is WS-Notification, in SOAP 1.2 or 1.1; `document` is a document of XML and nothing around it.
ContentMode = Literal["binary", "structured", "notify", "notify-1.1", "document"]


class Config(_DefinitionPart, frozen=True):
    """How events come: their form, how many at a time, from when on, and how they are tried again.

    `until` is when the subscription ends by itself, unless it is renewed before. With `retroactive`, the
    current XML documents come first, each once.
    """

    contentmode: ContentMode = "binary"
    in_flight: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    since: (
        Annotated[float, msgspec.Meta(ge=0, lt=1e11)]
        | Annotated[str, msgspec.Meta(max_length=64, extra_json_schema=MOMENT)]
    ) = "now"
    attempts: Annotated[int, msgspec.Meta(ge=1, le=MAX_ATTEMPTS)] | None = None
    first_pause: Pause | None = None
    longest_pause: Pause | None = None
    until: Annotated[float, msgspec.Meta(ge=0, lt=1e11, description="Seconds since 1970.")] | None = None
    retroactive: bool = False

    @property
    def retry(self) -> Retry:
        """What of that is for the subscription itself, whoever takes its events."""
        return Retry(attempts=self.attempts, first_pause=self.first_pause, longest_pause=self.longest_pause)


USUAL_SETTINGS, USUAL_CONFIG = ProtocolSettings(), Config()


class Definition(_DefinitionPart, frozen=True, kw_only=True):
    """A subscription as whoever made it has described it."""

    id: SubscriptionId
    source: Text | None = None
    types: Types | None = None
    filters: list[dict[str, Any]] | None = None
    sink: SinkAddress | None = None
    protocol: Literal["HTTP"] = "HTTP"
    protocolsettings: ProtocolSettings = USUAL_SETTINGS
    sinkcredential: SinkCredential | None = None
    config: Config = USUAL_CONFIG


class StoredDefinition(msgspec.Struct, frozen=True):
    """A definition, whose it is, and how often per minute its webhook wants to be called at the most.

    `begun` is up to where a retroactive one has sent the current documents, once it has sent all of them.
    """

    owner: str
    definition: Definition
    rate: float | None = None
    begun: RetroactivePosition | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.owner, self.definition.id


class Keeper(Protocol):
    """Where definitions are kept."""

    def load(self) -> list[StoredDefinition]:
        """All of them. Raises `UnreadableDefinitions`."""

    def save(self, kept: list[StoredDefinition]) -> None:
        """Keep these and no others. Raises OSError."""


class FileKeeper:
    """Definitions in a file of the data folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def load(self) -> list[StoredDefinition]:
        try:
            written = msgspec.json.decode(self._file.read_bytes(), type=list[msgspec.Raw])
            return [one for one in map(self._read, written) if one is not None]
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as problem:
            raise UnreadableDefinitions(str(self._file), f"{problem}.") from None

    def _read(self, written: msgspec.Raw) -> StoredDefinition | None:
        try:
            return msgspec.json.decode(written, type=StoredDefinition)
        except msgspec.ValidationError as problem:
            line = msgspec.json.format(bytes(written), indent=-1) + b"\n"
            aside = self._file.with_suffix(".aside.jsonl")
            handle = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "rb+") as file:
                if line not in file.readlines():
                    file.write(line)
            _log.error("A subscription cannot be read and was put aside in %s: %s.", aside, problem)
            return None

    def save(self, kept: list[StoredDefinition]) -> None:
        write_private(self._file, msgspec.json.format(msgspec.json.encode(kept).decode(), indent=1))
        sync_folder(self._file.parent)


class MemoryKeeper:
    """Definitions that are kept as long as this object is: for brokers that have no disk."""

    def __init__(self) -> None:
        self._kept: list[StoredDefinition] = []

    def load(self) -> list[StoredDefinition]:
        return list(self._kept)

    def save(self, kept: list[StoredDefinition]) -> None:
        self._kept = list(kept)
