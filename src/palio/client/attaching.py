"""Arguments of a subscription: a filter, a point in the past from which on it wants events, a retry policy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from palio.client.dialling import Backoff
from palio.model.filter import Filter
from palio.model.values import check_time
from palio.protocol.durable.lineage import Lineage
from palio.protocol.durable.retry import Retry
from palio.protocol.durable.subscriptions import Attach
from palio.protocol.durable.wishes import require_sound

# A moment, seconds since 1970, "all", "now", or a position: by origin the last sequence that is not wanted.
Since: TypeAlias = datetime | float | str | Mapping[str, int]

# Our own language; who only publishes does not wait for `palio.language`, which has this name, too.
PALIO = "palio"
# Seconds that a temporary subscription outlives a lost connection, for its client to come back.
LINGER = 60.0
# Characters of a client's name that the name of its temporary subscriptions keeps; brokers take 255 in all.
_KEPT_OF_NAME = 200

Default = TypeVar("Default", float, None)


def as_seconds(moment: datetime | float | None, default: Default) -> float | Default:
    """Seconds since 1970. Raises `InvalidNotification` for a time without a zone."""
    if moment is None:
        return default
    return check_time(moment, "since").timestamp() if isinstance(moment, datetime) else float(moment)


def as_filter(text: str | Filter, dialect: str = PALIO) -> Filter:
    """A filter, of which the text may be given.

    Raises `FilterSyntaxError`, `ContradictoryFilter`, `UnknownDialect`.
    """
    from palio.language import read_filter  # noqa: PLC0415 (who only publishes needs no language)

    return read_filter(text, dialect).require_satisfiable()


def temporary_name(client: str, number: int) -> str:
    """A name for a subscription that ends with its client, and that nobody has had."""
    if len(client) > _KEPT_OF_NAME:  # names that begin alike still differ
        client = f"{client[:_KEPT_OF_NAME]}-{hashlib.blake2b(client.encode(), digest_size=8).hexdigest()}"
    return f"{client}-{number}"


def attach_request(
    name: str,
    filter: Filter | None,
    since: Since | None,
    *,
    after: Mapping[str, int] | None = None,
    lineages: Mapping[str, Lineage] | None = None,
    in_flight: int | None,
    anew: bool,
    as_is: bool,
    temporary: bool,
    linger: float | None = None,
    attempts: int | None = None,
    backoff: Backoff | float | None = None,
) -> Attach:
    """The request for a durable subscription. Raises `WrongAttachment`."""
    more: dict[str, Any] = {}
    if isinstance(since, Mapping):
        more["after"] = dict(since)
    elif isinstance(since, str):
        more["since"] = since
    elif since is not None:
        more["since"] = as_seconds(since, 0.0)
    if after is not None:
        more["after"] = {**more.get("after", {}), **after}
    if lineages:
        more["lineages"] = dict(lineages)
    if temporary or linger is not None:
        more["linger"] = LINGER if linger is None else float(linger)
    if attempts is not None or backoff is not None:
        more["retry"] = retry_of(attempts, backoff)
    if in_flight is not None:
        more["in_flight"] = in_flight
    # A temporary one has a name that nobody has had: it need not be looked for at brokers that are away.
    attach = Attach(name, filter, anew=anew or temporary, as_is=as_is, **more)
    require_sound(attach)
    return attach


def retry_of(attempts: int | None, backoff: Backoff | float | None) -> Retry:
    """The retry policy: how often, and after which pauses, each twice the one before, or always the same."""
    if isinstance(backoff, Backoff):
        return Retry(attempts=attempts, first_pause=backoff.first, longest_pause=backoff.longest)
    pause = None if backoff is None else float(backoff)
    return Retry(attempts=attempts, first_pause=pause, longest_pause=pause)
