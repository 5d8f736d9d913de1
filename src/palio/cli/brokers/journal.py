"""`palio journal`: what a broker keeps of what was published, how it lets go of it, and whether it is sound."""

from __future__ import annotations

from typing import Annotated

import typer

from palio.cli.brokers import keeping
from palio.cli.events.replay import tell_missing
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import option
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import help_epilog, plural, say, write_json
from palio.model.errors import PalioError
from palio.protocol.durable.journals import JournalTrimmed

_TRIM = ("palio journal trim", "palio journal trim --store sqlite:///palio-data/palio.db --yes")
app = command_group("palio journal list", *_TRIM)

StoreUrl = Annotated[
    str | None, option("URL", "The store of a broker that is stopped; else a broker is asked.", "--store")
]
BrokerName = Annotated[str | None, option("NAME", "Whose journal, where a store has several.", "--broker")]


class OneOfBoth(PalioError):
    """A store and a broker at the same time."""

    def __init__(self) -> None:
        super().__init__("Name a broker with --server or its store with --store, not both.")


@app.command("list", epilog=help_epilog("palio journal list -s palio://127.0.0.1:7070"))
def list_journals(*, server: Server = None) -> None:
    """Show the journals in reach: one JSON object a line, with first and last sequence.

    A broker that did not answer is named on standard error.
    """
    listed = with_client(server, lambda client: client.journals())
    for one in listed.journals:
        write_json({"journal": one.origin, "first": one.trimmed + 1, "last": one.head})
    tell_missing(listed.missing)


@app.command(epilog=help_epilog(_TRIM[0], "palio journal trim --upto 120000 --yes", _TRIM[1]))
def trim(
    *,
    server: Server = None,
    store: StoreUrl = None,
    broker: BrokerName = None,
    upto: Annotated[int | None, option("SEQUENCE", "Nothing after that.", min=0)] = None,
    yes: Yes = False,
) -> None:
    """Let go what nobody needs any more, however new it is.

    Without --yes, it is told how much that would be, and nothing goes: whoever
    looks back (--since, palio replay) finds it until then.

    What a lake does not have yet, what a durable subscription has not taken, and
    what a registered reader has not read stays; who they are is told. A running
    broker does it itself; the store of a stopped one is opened with --store.
    """
    if store is not None and server is not None:
        raise OneOfBoth
    if store is None:
        trimmed = with_client(server, lambda client: client.trim_journal(upto, dry=not yes))
    else:
        from palio.broker.maintenance import trim_store  # noqa: PLC0415 (not needed to ask a broker)

        trimmed = trim_store(store, broker, upto, dry=not yes)
    _tell(trimmed)
    if trimmed.gone and not yes:
        first, last = trimmed.journal.trimmed + 1, trimmed.journal.trimmed + trimmed.gone
        want_yes(
            f"{plural(trimmed.gone, 'event')} of {trimmed.journal.origin} ({first:,} to {last:,}) would go: "
            "nobody who is registered needs them, and who looks back would not find them any more."
        )


@app.command(epilog=help_epilog("palio journal release 'lake 5f0c2a9b1d3e4f60' --yes"))
def release(
    reader: Annotated[str, typer.Argument(help="The reader, as `palio journal trim` names it.")],
    *,
    server: Server = None,
    store: StoreUrl = None,
    broker: BrokerName = None,
    yes: Yes = False,
) -> None:
    """Keep nothing for a reader any more: a lake that was given up, or a query that will not come back."""
    if not yes:
        want_yes(f"What {reader} has not read may be trimmed then.")
    if store is None:
        with_client(server, lambda client: client.hold(reader, -1))
    else:
        from palio.store import journals_in  # noqa: PLC0415
        from palio.store.retention_holds import hold  # noqa: PLC0415

        for name in [broker] if broker is not None else journals_in(store):
            hold(store, name, reader, -1)
    say(f"Nothing is kept for {reader} any more.")


app.command(epilog=keeping.VERIFY)(keeping.verify)
app.command("backup", epilog=keeping.BACKUP)(keeping.back_up)
app.command(epilog=keeping.RESTORE)(keeping.restore)


def _tell(trimmed: JournalTrimmed) -> None:
    journal = trimmed.journal
    write_json({"journal": journal.origin, "first": journal.trimmed + 1, "last": journal.head})
    if trimmed.missing:
        brokers = ", ".join(trimmed.missing)
        say(f"It is not known yet what {brokers} need; nothing is trimmed until they have said so.", "yellow")
    for name, sequence in trimmed.needed_by[:10]:
        left = plural(journal.head - sequence, "event")
        say(f"{name} has read up to {sequence:,}: {left} are kept for it.")
