"""`palio link`: links between brokers, added and removed by hand while they run."""

from __future__ import annotations

from typing import Annotated, Literal

from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import help_epilog, printable, say

_ADD = "palio link add 10.0.0.7:7070"
_REMOVE = "palio link remove siena"
app = command_group(_ADD, _REMOVE)


@app.callback()
def link() -> None:
    """Add and remove links of a broker while it runs.

    `palio peers` shows those that there are. It takes the right `links`.
    """


@app.command(
    "add", epilog=help_epilog(_ADD, "palio link add 10.0.0.7:7070 --server siena.example --if-allowed")
)
def add(
    address: Annotated[str, argument("ADDRESS", "The broker to connect to: host:port, or palios://host:port.")],
    server: Server = None,
    kind: Annotated[
        Literal["peer", "master", "below", "graph"], option("KIND", "What it is to this broker.", "--kind")
    ] = "peer",
    cost: Annotated[float, option("NUMBER", "What the link costs, in a general graph.", "--cost")] = 1.0,
    if_allowed: Annotated[
        bool, flag("--if-allowed", "Do nothing, quietly, where there is such a link or must not be one.")
    ] = False,
) -> None:
    """Let the broker connect to another one, and keep the link.

    It is kept like one of the settings (peers), but only until the broker
    restarts: write there, too, what is to last. A link that was removed by
    hand is made again by adding it where it was removed.

    Refused are an address that is none, a broker that is a neighbour already,
    one that cannot be reached, and a link that would close a cycle. For
    scripts there is --if-allowed: where the network as it is forbids the link
    (it is there, it would close a cycle, there are neighbours enough, it was
    removed by hand), nothing is done.
    """
    told = with_client(
        server, lambda client: client.add_link(address, kind=kind, cost=cost, if_allowed=if_allowed)
    )
    if told["changed"]:
        name, neighbour = printable(told["broker"]), printable(told["neighbour"])
        say(f"{name} is linked with {neighbour}, until it restarts.", "green")


@app.command("remove", epilog=help_epilog(_REMOVE, "palio link remove 10.0.0.7:7070"))
def remove(
    broker: Annotated[str, argument("ADDRESS|NAME", "The neighbour, as palio peers shows it.")],
    server: Server = None,
) -> None:
    """Let the broker end a link, and not make it again.

    Neither end connects to the other again by itself, whatever its settings
    say, until it restarts; and this broker refuses the other one until then,
    too. Take it out of the settings (peers) if that is to last. A broker that
    finds its links by itself looks for another one. If there is no such link,
    nothing is done.
    """
    told = with_client(server, lambda client: client.remove_link(broker))
    name, neighbour = printable(told["broker"]), printable(told["neighbour"] or broker)
    if told["changed"]:
        say(f"{name} has no link to {neighbour} any more.", "green")
    else:
        say(f"{name} had no link to {neighbour}: nothing was done.")
