"""The `palio` program: its commands, and how it starts."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from palio.cli.program.credentials import SAID, credential_options
from palio.cli.program.dressing import dress_options
from palio.cli.program.endings import end, orderly_endings
from palio.cli.program.loading import CommandEntry, LazyGroup, Loaded
from palio.cli.program.terminal import help_epilog

EPILOG = help_epilog(
    "palio up",
    "palio pub symbol=ACME price=101.5",
    """palio explain 'price > 100 and not halted' '{"price": 101.5}'""",
    "palio match -f examples/filters.jsonl -e examples/events.jsonl",
)
# In the order of the help: commands, or groups of them, by the module that has them.
COMMANDS = {
    "up": CommandEntry("brokers.up", "Start a broker, and run it until Ctrl-C.", "broker"),
    "network": CommandEntry("network.commands", "Start several brokers on this machine, and see how they are."),
    "token": CommandEntry(
        "brokers.token", "Make, list and revoke the tokens by which clients and brokers show who they are."
    ),
    "rights": CommandEntry("brokers.rights", "List, test and change what principals may publish and see."),
    "config": CommandEntry("brokers.config", "Check and show the settings of a broker."),
    "context": CommandEntry(
        "brokers.context", "Save connections to brokers under names, and say which one is meant."
    ),
    "family": CommandEntry("documents.family", "Add, show, change and remove families of XML documents."),
    "pub": CommandEntry("events.pub", "Publish events, and wait until the broker has confirmed them."),
    "sub": CommandEntry("events.sub", "Show the events that a filter selects, one a line, as they come."),
    "advertise": CommandEntry("events.advertise", "Advertise what will be published, until Ctrl-C."),
    "request": CommandEntry(
        "events.requests", "Ask everybody who takes this event, and show their replies as JSON lines."
    ),
    "reply": CommandEntry(
        "events.requests", "Answer requests that a filter selects, always with the same reply."
    ),
    "doc": CommandEntry(
        "documents.doc", "Current documents: show them, list them, show their history, withdraw them."
    ),
    "replay": CommandEntry(
        "events.replay", "Show what was published, from the journals of all brokers in reach."
    ),
    "files": CommandEntry(
        "documents.files", "Publish files that are put into a folder, and write events as files."
    ),
    "backtest": CommandEntry(
        "events.backtest", "Say how many published events a filter selects, when they came, and show some."
    ),
    "trace": CommandEntry("events.trace", "Show who would get an event, without delivering it."),
    "explain": CommandEntry(
        "filters.explain", "Show, condition by condition, why a filter matches an event or why not."
    ),
    "match": CommandEntry("filters.match", "Say for each event which filters it satisfies, as JSON lines."),
    "patterns": CommandEntry(
        "filters.patterns", "Find patterns in events, and say of which events each consists, as JSON lines."
    ),
    "covers": CommandEntry("filters.covers", "Say whether FILTER selects every event that OTHER selects."),
    "translate": CommandEntry(
        "filters.translate", "Say in our own language what a filter in another one was understood to mean."
    ),
    "lint": CommandEntry("filters.lint", "Find filters that are wrong, useless or said twice."),
    "stats": CommandEntry(
        "network.broker_status", "Show the counts of a broker: who is connected, and what came of events."
    ),
    "peers": CommandEntry(
        "network.broker_status", "Show the links of a broker to its neighbours, and those that cannot be made."
    ),
    "overlay": CommandEntry("network.overlay", "Draw how the brokers of a network are linked."),
    "link": CommandEntry("network.link", "Add and remove links of a broker while it runs."),
    "clients": CommandEntry("network.broker_status", "Show the clients that are connected to a broker."),
    "subs": CommandEntry("network.subs", "Show subscriptions; end, pause, resume and move durable ones."),
    "top": CommandEntry(
        "network.top", "Watch a broker: rates, links, and the subscriptions for which most is waiting."
    ),
    "dlq": CommandEntry("network.dlq", "Look at dead letters, deliver them after all, or throw them away."),
    "forget": CommandEntry("network.forget", "Let a network forget a broker that will never come back."),
    "leave": CommandEntry("network.leave", "Let a broker leave its network for good, and lose nothing by it."),
    "journal": CommandEntry(
        "brokers.journal", "The journal of a broker: what it has and may let go; checks and copies of it."
    ),
    "audit": CommandEntry("brokers.audit", "Show who has asked a broker for what, when, and what came of it."),
    "demo": CommandEntry(
        "demo.commands", "Watch a made-up stock market meet a few thousand filters, then a network of brokers."
    ),
    "chaos": CommandEntry(
        "chaos.commands",
        "Break a network of brokers in many ways, and check that it keeps its promises.",
        "broker",
    ),
    "sim": CommandEntry("sim.commands", "Simulate networks of brokers, and judge what they deliver.", "sim"),
    "spark": CommandEntry("spark.commands", "Work on everything that was published, with Spark.", "spark"),
    "bench": CommandEntry("bench.commands", "Measure, each time beside a yardstick of the same run.", "bench"),
    "doctor": CommandEntry(
        "brokers.doctor", "Check Java, the compiled index, packages, the store, ports, and Spark's executors."
    ),
}


class Commands(Loaded):
    """The commands of the program, by their names."""

    def __init__(self) -> None:
        super().__init__(COMMANDS)


class OrderlyGroup(LazyGroup):
    """Commands that end in an orderly way, whatever goes wrong: in the options as well as in the work."""

    entries = COMMANDS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.params.extend(credential_options())

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        dress_options(self)
        SAID.set({})  # by this call; a test makes several in one process
        with orderly_endings():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        with orderly_endings():
            return super().invoke(ctx)


app = typer.Typer(
    name="palio",
    cls=OrderlyGroup,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 (it takes longer to load than most commands)

        typer.echo(f"palio {version('palio')}")
        raise typer.Exit


@app.callback()
def palio(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Content-based publish/subscribe: say what you want with a filter over the content.

    A filter looks like: symbol = "ACME" and price > 100 and not halted
    """


def main() -> None:
    # A shell's `>&-` leaves no stream at all; whoever says that wants nothing written.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # JSON may name characters that no encoding has; showing them escaped beats stopping there.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    end(_code_of_app())


def _code_of_app() -> Any:
    try:
        app(prog_name="palio")
    except SystemExit as ending:
        return ending.code


if __name__ == "__main__":
    main()
