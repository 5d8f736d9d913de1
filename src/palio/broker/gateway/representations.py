"""Subscriptions as callers write and read them; what is kept of them is in `definitions`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from palio.broker.gateway import definitions
from palio.broker.gateway.parameters import POSITION_PATTERN
from palio.broker.gateway.pushing import PushStatistics
from palio.language import DIALECTS, MEMBERS

_Compared = Annotated[dict[str, Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]
_Several = Annotated[list[dict[str, Any]], Meta(min_length=1)]


class FilterExpression(msgspec.Struct, forbid_unknown_fields=True, rename={"negated": "not"}):
    """A filter: one member, named after its dialect."""

    exact: _Compared | UnsetType = UNSET
    prefix: _Compared | UnsetType = UNSET
    suffix: _Compared | UnsetType = UNSET
    all: _Several | UnsetType = UNSET
    any: _Several | UnsetType = UNSET
    negated: Annotated[dict[str, Any], Meta(min_length=1, max_length=1)] | UnsetType = UNSET
    palio: Annotated[str, Meta(examples=["price > 100"])] | UnsetType = UNSET
    sql: Annotated[str, Meta(examples=["type LIKE 'shop.%'"])] | UnsetType = UNSET


_Filters = Annotated[
    list[Annotated[FilterExpression, Meta(extra_json_schema={"minProperties": 1, "maxProperties": 1})]],
    Meta(description=f"All must hold. Each has one member, its dialect: {', '.join(MEMBERS)}."),
]


_InDialect = Annotated[
    str | dict[str, Any] | list[Any],
    Meta(description="With `dialect`: one more filter, a text or the JSON of its dialect. Else it is ignored."),
]


class Wish(definitions.Definition, frozen=True, kw_only=True):
    """A subscription as it is asked for. Without an id it is given one."""

    id: definitions.SubscriptionId | UnsetType = UNSET  # type: ignore[assignment]
    filters: _Filters | None = None  # type: ignore[assignment]
    filter: _InDialect | UnsetType = UNSET
    dialect: Annotated[str, Meta(extra_json_schema={"enum": list(DIALECTS)})] | UnsetType = UNSET


class ShownSubscription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subscription as whoever made it sees it: without secrets, and with how it is doing."""

    id: Annotated[str, Meta(min_length=1)]  # one that was made in another way may have any name
    source: definitions.Text | None = None
    types: definitions.Types | None = None
    filters: _Filters | None = None
    sink: definitions.SinkAddress | None = None
    protocolsettings: definitions.ProtocolSettings = definitions.USUAL_SETTINGS
    config: definitions.Config = definitions.USUAL_CONFIG
    protocol: Literal["HTTP"]
    filter: Annotated[str, Meta(description="All of it, in the language of this network.")]
    paused: bool | UnsetType = UNSET
    status: PushStatistics | UnsetType = UNSET


class PausedSubscription(msgspec.Struct, frozen=True):
    """Whether a subscription is paused now."""

    id: str
    paused: bool


_AS_AN_ID = Meta(
    description="As the id of an event in a stream.", extra_json_schema={"pattern": POSITION_PATTERN}
)


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a subscription shall go on: after a position as streams name it, or since a time."""

    since: (
        Annotated[float, Meta(extra_json_schema=definitions.SECONDS)]
        | Annotated[str, Meta(extra_json_schema=definitions.MOMENT)]
        | None
    ) = None
    position: Annotated[str, _AS_AN_ID] | None = None
    dry: bool = False


_EITHER = {"oneOf": [{"required": ["since"]}, {"required": ["position"]}]}
OnePlace = Annotated[Place, Meta(extra_json_schema=_EITHER)]


class SoughtSubscription(msgspec.Struct, frozen=True):
    """What became of deliveries when a subscription was moved."""

    id: str
    dropped: int
    unread: Annotated[bool, Meta(description="Whether what was not read may be passed over.")]
