"""How a client behaves, and what can be seen of it."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import msgspec

from palio.client.dialling import Backoff
from palio.client.publishing import PublishStatistics
from palio.client.states import State
from palio.client.subscription import SubscriptionStatistics
from palio.protocol.heartbeat import HEARTBEAT

# Bytes that may wait to be sent: some seconds of a fast publisher while a broker is away.
UNSENT_LIMIT = 64 * 1024 * 1024
# How much older than the newest an event may be where patterns are looked for, in seconds.
DELAY = 2.0

# Seconds that a broker takes at the most to find out whether it can have a link, and a little for the way.
LINK_WITHIN = 15.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `connect`, which explains them. Times are in seconds."""

    token: str | None = None
    name: str = ""
    publisher: str = ""
    tls: ssl.SSLContext | None = None
    connect_timeout: float = 5.0
    connect_within: float = 0.0
    request_timeout: float = 10.0
    heartbeat: float = HEARTBEAT
    reconnect: bool = True
    give_up_after: float | None = None
    backoff: Backoff = Backoff()
    unsent_limit: int = UNSENT_LIMIT
    other_brokers: bool = True
    on_state: Callable[[State, str], None] | None = None

    def __repr__(self) -> str:  # the token is a secret
        return f"Options(name={self.name!r})"


class ClientStatistics(msgspec.Struct, frozen=True):
    """A client, as data. `dropped` counts by reason what came and was for nobody."""

    state: str
    broker: str
    connections: int
    publishing: PublishStatistics
    subscriptions: dict[str, SubscriptionStatistics]
    dropped: dict[str, int]
