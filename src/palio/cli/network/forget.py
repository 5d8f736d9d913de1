"""`palio forget`: a broker is gone for good, and nobody shall wait for it any more."""

from __future__ import annotations

from typing import Annotated

from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import argument
from palio.cli.program.terminal import help_epilog, say

EPILOG = help_epilog("palio forget siena-3")


def forget(
    broker: Annotated[str, argument("BROKER", "The name of the broker that is gone.")],
    *,
    server: Server = None,
    yes: Yes = False,
) -> None:
    """Let a network forget a broker that will never come back.

    Nobody waits for it any more: new durable subscriptions become ready, and
    journals keep nothing for its subscriptions. What was published there and not
    yet fetched is given up, and so are the durable subscriptions that had their
    home there, with all that they had not delivered.
    """
    if not yes:
        want_yes(f"What only {broker} has is given up for good.")
    with_client(server, lambda client: client.forget_broker(broker))
    say(f"{broker} is forgotten, everywhere in reach.")
