"""`palio forget`: a broker is gone for good, and nobody shall wait for it any more."""

from __future__ import annotations

from typing import Annotated

import typer

from palio.cli.connecting import Server, connected, run
from palio.cli.terminal import ExitCode, error_console, help_epilog

EPILOG = help_epilog("palio forget siena-3")


def forget(
    broker: Annotated[str, typer.Argument(metavar="BROKER", help="The name of the broker that is gone.")],
    *,
    server: Server = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it: it cannot be taken back.")] = False,
) -> None:
    """Let a network forget a broker that will never come back.

    Nobody waits for it any more: new durable subscriptions become ready, and
    journals keep nothing for its subscriptions. What was published there and not
    yet fetched is given up, and so are the durable subscriptions that had their
    home there, with all that they had not delivered.
    """
    if not yes:
        sentence = f"What only {broker} has is given up for good. If that is what you want, add --yes."
        error_console().print(sentence, style="yellow", soft_wrap=True)
        raise typer.Exit(ExitCode.NO)
    run(_forget(server, broker))
    error_console().print(f"{broker} is forgotten, everywhere in reach.", style="dim", soft_wrap=True)


async def _forget(server: str | None, broker: str) -> None:
    async with connected(server) as client:
        await client.forget_broker(broker)
