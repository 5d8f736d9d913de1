"""`palio advertise`: say what will be published, and learn whether anybody wants it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from palio.cli.program.connecting import Server, Timeout, connected, for_at_most, run
from palio.cli.program.dressing import argument, flag
from palio.cli.program.terminal import help_epilog, say, write_json
from palio.model.advertisement import Advertisement
from palio.model.moments import parse_span

EPILOG = help_epilog(
    "palio advertise 'exists(symbol), price >= 0' --timeout 1s",
    "palio advertise 'exists(symbol), price >= 0' --watch --timeout 1s",
)


def advertise(
    text: Annotated[str, argument("ADVERTISEMENT", "What will be published.")],
    *,
    server: Server = None,
    timeout: Timeout = None,
    watch: Annotated[
        bool, flag("--watch", "Tell whether anybody wants it, now and when that changes.")
    ] = False,
) -> None:
    """Advertise what will be published, until Ctrl-C.

    An advertisement lives as long as the connection that made it; the publishers
    of a network with advertisements make their own. With --watch, a line of JSON
    says whether anybody wants what is described: {"wanted": true}.
    """
    advertisement = Advertisement.parse(text)
    run(_advertise(server, advertisement, None if timeout is None else parse_span(timeout), watch=watch))


async def _advertise(
    server: str | None, advertisement: Advertisement, timeout: float | None, *, watch: bool
) -> None:
    async with connected(server, tell=True) as client:
        await client.advertise(advertisement, ready="network")
        say(f"Advertised at {client.broker}; Ctrl-C ends it.")
        watching = await client.watch(advertisement) if watch else None
        if watching is not None:
            await watching.ready()  # the first answer is told, however short the time
        async with for_at_most(timeout):
            if watching is not None:
                async for wanted in watching:
                    write_json({"wanted": wanted})
            else:
                await asyncio.Event().wait()
