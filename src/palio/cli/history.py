"""What the journals of a network hold, to their end: for `palio replay` and `palio backtest`.

History comes by a subscription that reaches back, from the journals of all brokers in reach. It is complete
when the subscription has caught up and nothing of the wanted time waits for it any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from palio.client import Client, Event, Subscription
from palio.client.errors import RequestTimeout
from palio.model.filter import Filter

# How often it is looked whether there is more, while nothing comes; and at the latest while much comes.
_LOOK_EVERY = 0.1
_LOOK_AT_LEAST = 1.0


async def history(
    client: Client, filter: Filter, since: float | str, until: float | None
) -> AsyncIterator[Event]:
    """Events that were published from one time on and before another, or before now."""
    end = time.time() if until is None else min(until, time.time())
    subscription = await client.subscribe(filter, since=since)
    try:
        while True:
            async for event in _for_a_while(subscription):
                if event.taken.timestamp() < end:
                    yield event
            if await _is_complete(client, subscription, end):
                return
    finally:
        with suppress(RequestTimeout):
            await subscription.unsubscribe()


async def _for_a_while(subscription: Subscription) -> AsyncIterator[Event]:
    """Events as long as they come one after another, but not for ever."""
    until = time.monotonic() + _LOOK_AT_LEAST
    while time.monotonic() < until:
        try:
            yield await subscription.next(timeout=_LOOK_EVERY)
        except RequestTimeout:
            return


async def _is_complete(client: Client, subscription: Subscription, end: float) -> bool:
    """Whether the subscription has caught up, and all of the wanted time has been handed out."""
    for row in await client.inspect("subs", durable=subscription.name):
        if row.get("durable") == subscription.name:
            if row["state"] != "live" or (row["oldest"] is not None and row["oldest"] < end):
                return False
            if row["oldest"] is None and row["pending"]:
                await asyncio.sleep(_LOOK_EVERY)  # what is on its way to the disk is seen at the next look
                return False
            return True
    return False
