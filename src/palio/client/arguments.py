"""What calls of a client take by name, as types: those of `palio.sync` take the same.

Each is explained where the call is, in `Client` and `QueryMethods`; a test compares them.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from palio.client.attaching import Since
from palio.client.content import Properties
from palio.client.dialling import Backoff
from palio.client.publishing import Confirmation
from palio.client.states import State
from palio.client.subscription import WhenFull
from palio.protocol.durable.lineage import Lineage

Ready: TypeAlias = Literal["broker", "network"]


class Connecting(TypedDict, total=False):
    """Of `connect`."""

    token: str | None
    name: str | None
    publisher: str
    tls: ssl.SSLContext | str | None
    connect_timeout: float
    connect_within: float
    request_timeout: float
    heartbeat: float
    reconnect: bool
    give_up_after: float | None
    backoff: Backoff
    unsent_limit: int
    other_brokers: bool
    on_state: Callable[[State, str], None] | None


class PublishArguments(Properties, total=False):
    """Of `publish`."""

    timeout: float | None


class Subscribing(TypedDict, total=False):
    """Of `subscribe`, beside `into` and `durable`, on which it depends what is returned."""

    dialect: str
    since: Since | None
    retroactive: bool
    after: Mapping[str, int] | None
    lineages: Mapping[str, Lineage] | None
    ready: Ready
    limit: int
    when_full: WhenFull
    in_flight: int | None
    anew: bool
    change: bool
    linger: float | None
    attempts: int | None
    backoff: Backoff | float | None
    timeout: float | None


class Advertising(TypedDict, total=False):
    """Of `advertise`."""

    ready: Ready
    timeout: float | None


class Detecting(TypedDict, total=False):
    """Of `detect`."""

    time: str | None
    delay: float
    ready: Ready
    limit: int
    timeout: float | None


class Requesting(Properties, total=False):
    """Of `request`."""

    timeout: float
    expect: int | None
    again: bool


class LookingAtDocuments(TypedDict, total=False):
    """Of `documents`."""

    at_least: Confirmation | None
    dialect: str
    timeout: float | None


class Surveying(TypedDict, total=False):
    """Of `survey`."""

    since: datetime | float | None
    until: datetime | float | None
    buckets: int
    samples: int
    dialect: str
    timeout: float | None


class Replaying(TypedDict, total=False):
    """Of `replay`."""

    since: datetime | float | None
    until: datetime | float | None
    page: int
    ranges: Iterable[tuple[str, int, int]]
    dialect: str
    timeout: float | None
