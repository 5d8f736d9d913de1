"""`palio doc`: current documents, their history, and withdrawing them."""

from __future__ import annotations

import difflib
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from palio.cli.events.replay import LOOK_BACK_WITHIN, tell_missing
from palio.cli.input.inputs import Dialect
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import (
    ExitCode,
    help_epilog,
    output_console,
    plural,
    printable,
    say,
    write_json,
    write_line,
)
from palio.client import Client, Event
from palio.client.errors import RequestRefused
from palio.client.publishing import Confirmation
from palio.documents.reserved import FAMILY, KEY, REVISION, WITHDRAWN
from palio.language import PALIO, read_filter
from palio.language.selections import is_selection
from palio.model.amounts import size_text
from palio.model.cloudevents import flat_content_of
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.model.naming import event_name, read_event_name
from palio.model.notification import Notification

app = command_group("palio doc get card c1", "palio doc ls card", "palio doc history card c1 --diff")

EVERYTHING = "true"
FamilyName = Annotated[str, argument("FAMILY", "The family that it belongs to.")]
DocumentKey = Annotated[str, argument("KEY", "Its key: the values of the key paths, joined by slashes.")]
AtLeast = Annotated[
    str | None,
    option("BROKER/SEQUENCE", "Not older than what was published as this.", "--at-least"),
]
AsJson = Annotated[bool, flag("--json", "JSON lines.")]


class NoEventName(PalioError):
    """A text that names no event."""

    text: str
    sentence = "{text!r} names no event; write the broker and the sequence, such as siena/17."


@app.callback()
def doc() -> None:
    """Current documents: show them, list them, show their history, withdraw them.

    A broker has what was published there, and of other brokers what its
    settings say (documents.keep).
    """


@app.command("get", epilog=help_epilog("palio doc get card c1", "palio doc get card c1 --json"))
def get(
    family: FamilyName,
    key: DocumentKey,
    *,
    server: Server = None,
    at_least: AtLeast = None,
    as_json: Annotated[bool, flag("--json", "What is known of it, instead of the document.")] = False,
) -> None:
    """Write the current version of a document to standard output, byte for byte.

    Exits with 1 if there is none, or it was withdrawn.
    """
    event = run(_get(server, family, key, _confirmation(at_least)))
    if as_json:
        write_json(_known(event))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(event.payload or b"")
        sys.stdout.buffer.flush()


@app.command(
    "ls",
    epilog=help_epilog(
        "palio doc ls card", "palio doc ls card --filter 'card.price < 10'", "palio doc ls --json"
    ),
)
def ls(
    family: Annotated[str | None, argument("[FAMILY]", "Only those of this family.")] = None,
    *,
    server: Server = None,
    filter_text: Annotated[str, option("FILTER", "Only what it selects.", "--filter")] = EVERYTHING,
    dialect: Dialect = PALIO,
    at_least: AtLeast = None,
    as_json: AsJson = False,
) -> None:
    """List the current documents that you may see, by families and keys.

    Beside a family, --filter may say its short names and XPaths alone.
    Exits with 1 if there is none.
    """
    filter: str | Filter = filter_text
    if family is not None and dialect == PALIO and filter_text != EVERYTHING:
        filter = f"family {family} where ({filter_text})"
    elif not (dialect == PALIO and is_selection(filter_text)):
        filter = read_filter(filter_text, dialect).require_satisfiable()
        if family is not None:
            filter = filter.intersect(Filter.template({FAMILY: family})).require_satisfiable()
    shown = run(_list(server, filter, family, _confirmation(at_least), as_json=as_json))
    if not shown:
        raise typer.Exit(ExitCode.NO)


@app.command("history", epilog=help_epilog("palio doc history card c1", "palio doc history card c1 --diff"))
def history(
    family: FamilyName,
    key: DocumentKey,
    *,
    server: Server = None,
    diff: Annotated[bool, flag("--diff", "What each version changes, line by line.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show all versions of a document, oldest first, as far back as journals have them.

    Where a broker names a lake, what its journal has let go comes from there.
    The current version is shown in any case, if the broker has it. Exits with 1
    if there is none.
    """
    versions, missing = run(_history(server, family, key))
    if as_json:
        for one in versions:
            write_json(_known(one))
    elif diff:
        for line in _differences(versions):
            write_line(line)
    elif versions:
        _show(versions)
    tell_missing(missing)
    if not versions:
        say("There is no version of it.")
        raise typer.Exit(ExitCode.NO)


@app.command("withdraw", epilog=help_epilog("palio doc withdraw card c1 --yes"))
def withdraw(family: FamilyName, key: DocumentKey, *, server: Server = None, yes: Yes = False) -> None:
    """Withdraw a document: there is no current version any more, and subscribers hear of it.

    That is a version, too: it comes to whoever has subscribed to what the
    document was, with xml.withdrawn = true, and stands in its history. Exits
    with 1 if there is none.
    """
    if not yes:
        want_yes(f"The document {key} of the family {family} is withdrawn, for everybody.")
    confirmed = run(_withdraw(server, family, key))
    say(f"Withdrawn as {event_name(confirmed.origin, confirmed.sequence)}.")


@contextmanager
def _none_is_no() -> Iterator[None]:
    """That there is no such document, or family, is said, and no error."""
    try:
        yield
    except RequestRefused as refused:
        if refused.error not in ("NoSuchDocument", "DocumentWithdrawn", "UnknownFamily"):
            raise
        say(refused.reason)
        raise typer.Exit(ExitCode.NO) from None


async def _get(server: str | None, family: str, key: str, at_least: Confirmation | None) -> Event:
    async with connected(server) as client:
        with _none_is_no():
            try:
                return await client.document(family, key, at_least=at_least)
            except RequestRefused as refused:
                if refused.error == "NoSuchDocument":
                    await client.families.show(family)  # there may not even be such a family
                raise


async def _list(
    server: str | None,
    filter: str | Filter,
    family: str | None,
    at_least: Confirmation | None,
    *,
    as_json: bool,
) -> int:
    shown = 0
    found: list[Event] = []
    async with connected(server) as client:
        with _none_is_no():
            async for event in client.documents(filter, at_least=at_least):
                shown += 1
                if as_json:
                    write_json(_known(event))
                else:
                    found.append(event)
            if not shown and family is not None:
                await client.families.show(family)  # that there is none is said
    if found:
        _show(found)
    if not as_json:
        say(f"{plural(shown, 'document')}.")
    return shown


async def _history(server: str | None, family: str, key: str) -> tuple[list[Event], tuple[str, ...]]:
    wanted = Filter.template({FAMILY: family, KEY: key})
    async with connected(server) as client:
        replay = client.replay(wanted, timeout=LOOK_BACK_WITHIN)
        versions = [event async for event in replay]
        names = {(one.origin, one.sequence) for one in versions}
        versions += [
            one async for one in _current(client, family, key) if (one.origin, one.sequence) not in names
        ]
    return sorted(versions, key=lambda one: (one.taken, one.origin, one.sequence)), replay.missing


async def _current(client: Client, family: str, key: str) -> AsyncIterator[Event]:
    try:
        yield await client.document(family, key)
    except RequestRefused as refused:
        if refused.error not in ("NoSuchDocument", "DocumentWithdrawn", "NoJournal"):
            raise


async def _withdraw(server: str | None, family: str, key: str) -> Confirmation:
    async with connected(server) as client:
        with _none_is_no():
            return await client.withdraw_document(family, key)


def _confirmation(text: str | None) -> Confirmation | None:
    if text is None:
        return None
    named = read_event_name(text)
    if named is None:
        raise NoEventName(text)
    return Confirmation(*named)


class _Known(msgspec.Struct):
    """What is known of a version, beside its content."""

    family: Any
    key: Any
    revision: Any
    event: str
    time: str
    withdrawn: bool
    bytes: int
    attributes: dict[str, Any]


def _known(event: Event) -> dict[str, Any]:
    attributes = flat_content_of(Notification.of_values(dict(event.attributes)))
    known = _Known(
        attributes.pop(FAMILY, ""),
        attributes.pop(KEY, ""),
        attributes.pop(REVISION, None),
        event_name(event.origin, event.sequence),
        event.taken.isoformat(),
        bool(attributes.pop(WITHDRAWN, False)),
        len(event.payload or b""),
        attributes,
    )
    return msgspec.structs.asdict(known)


def _show(events: list[Event]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("family", "key", "version", "published", "bytes"):
        table.add_column(heading, justify="right" if heading == "bytes" else "left", overflow="fold")
    for event in events:
        known = _known(event)
        size = "withdrawn" if known["withdrawn"] else size_text(known["bytes"])
        published = event.taken.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        cells = (known["family"], known["key"], known["event"], published, size)
        table.add_row(*[printable(str(cell)) for cell in cells])
    output_console().print(table)


def _differences(versions: list[Event]) -> Iterator[str]:
    """What each version changes in the one before; the first one as a whole."""
    before: list[str] = []
    name = "/dev/null"
    for event in versions:
        lines = (event.payload or b"").decode(errors="replace").splitlines()
        following = event_name(event.origin, event.sequence)
        moment = datetime.isoformat(event.taken)
        found = difflib.unified_diff(before, lines, name, following, "", moment, lineterm="")
        yield from [printable(line.expandtabs()) for line in found]
        before, name = lines, following
