"""`palio rights`: what principals may do, as filters."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from palio.broker.access.rights import NOTHING, Allowance, Rights, parse_rights, read_rights, write_rights
from palio.cli.brokers.access import Config, Data, Folder, access_folder
from palio.cli.input.events import EventText, LineNumber, read_event
from palio.cli.input.inputs import Dialect
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.loading import command_group
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, printable, say, write_json
from palio.language import PALIO
from palio.model.filter import Filter
from palio.model.notification import Notification

_SET = "palio rights set desk-7 --publish true --subscribe 'price > 100'"
_DIALECT = "palio rights set shop --subscribe 'shop/+/books/#' --dialect mqtt"
_BROKERS = "palio rights set brokers --publish true --subscribe true --allow peer"
_TEST = "palio rights test desk-7 examples/event.json"
_ALLOW = ", ".join(one.value for one in Allowance)
app = command_group(_SET, _TEST, "palio rights list")
Principal = Annotated[str, argument("PRINCIPAL", "Whose rights.")]


@app.callback()
def rights() -> None:
    """List, test and change what principals may publish and see.

    Rights are filters: what is published must satisfy one, and what is
    delivered the other. They are in rights.toml beside the broker's data; a
    running broker sees changes by itself, within a second.
    """


@app.command("list", epilog=help_epilog("palio rights list", "palio rights list --json"))
def list_rights(
    as_json: Annotated[bool, flag("--json", "JSON lines.")] = False,
    folder: Folder = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show what each principal may do."""
    known = read_rights(access_folder(folder, data, config))
    if as_json:
        for name, one in sorted(known.items()):
            write_json({"principal": name, **one.plain()})
        return
    if not known:
        say("Nobody has rights; palio rights set gives some.")
        return
    headings = ("principal", "may publish", "may see", "and")
    table = Table(*[Column(one, overflow="fold") for one in headings], box=None, pad_edge=False)
    for name, one in sorted(known.items()):
        plain = one.plain()
        publish, subscribe = (printable(plain[key] or "nothing") for key in ("publish", "subscribe"))
        table.add_row(name, publish, subscribe, ", ".join(plain["allow"]))
    output_console().print(table)


@app.command("set", epilog=help_epilog(_SET, _BROKERS, _DIALECT))
def set_rights(
    principal: Principal,
    *,
    publish: Annotated[str | None, option("FILTER", "What it may publish.")] = None,
    subscribe: Annotated[str | None, option("FILTER", "What it may see.")] = None,
    dialect: Dialect = PALIO,
    no_publish: Annotated[bool, flag("--no-publish", "It may publish nothing.")] = False,
    no_subscribe: Annotated[bool, flag("--no-subscribe", "It may see nothing.")] = False,
    allow: Annotated[list[str] | None, option("RIGHT", f"A further right: {_ALLOW}. Repeatable.")] = None,
    disallow: Annotated[list[str] | None, option("RIGHT", "Take a further right away. Repeatable.")] = None,
    folder: Folder = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Give or change rights. What is not mentioned stays as it is; true is everything.

    What --dialect says is the language of the filters that are given now. They are
    kept and shown in our own.
    """
    where = access_folder(folder, data, config)
    before = read_rights(where).get(principal, NOTHING)
    given = parse_rights(publish, subscribe, tuple(allow or ()), principal, dialect)
    taken = parse_rights(None, None, tuple(disallow or ()), principal).allow
    after = Rights(
        None if no_publish else given.publish or before.publish,
        None if no_subscribe else given.subscribe or before.subscribe,
        (before.allow | given.allow) - taken,
    )
    write_rights(where, principal, after)
    plain = after.plain()
    may = ", ".join(plain["allow"])
    said = f"{principal} may publish {_what(plain['publish'])} and see {_what(plain['subscribe'])}"
    say(f"{said}{f'; and {may}' if may else ''}.")


@app.command("remove", epilog=help_epilog("palio rights remove desk-7"))
def remove(principal: Principal, folder: Folder = None, data: Data = None, config: Config = None) -> None:
    """Take all rights away; it may still say hello."""
    where = access_folder(folder, data, config)
    if principal not in read_rights(where):
        say(f"{principal} has no rights.")
        raise typer.Exit(ExitCode.NO)
    write_rights(where, principal, None)
    say(f"{principal} may do nothing any more.")


@app.command("test", epilog=help_epilog(_SET, _TEST))
def try_event(
    principal: Principal,
    event: EventText,
    *,
    line: LineNumber = None,
    as_json: Annotated[bool, flag("--json", "As a JSON object.")] = False,
    folder: Folder = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show whether a principal may publish and see an event, and the conditions that decide.

    Exits with 0 if it may do both, else 1.
    """
    known = read_rights(access_folder(folder, data, config)).get(principal, NOTHING)
    notification = read_event(event, line)
    answers = {"publish": allows(known.publish, notification), "see": allows(known.subscribe, notification)}
    if as_json:
        write_json({"principal": principal} | answers)
    else:
        show_rights(output_console(), principal, known, notification)
    if not all(answers.values()):
        raise typer.Exit(ExitCode.NO)


def allows(right: Filter | None, notification: Notification) -> bool:
    """Whether a right covers an event."""
    return right is not None and right.matches(notification)


def show_rights(console: Console, principal: str, known: Rights, notification: Notification) -> None:
    """Condition by condition, whether somebody may publish and see an event."""
    for verb, right in (("publish", known.publish), ("see", known.subscribe)):
        may = allows(right, notification)
        text = Text("✓ " if may else "✗ ", style="green" if may else "red")
        text.append(f"{principal or 'everybody'} may {'' if may else 'not '}{verb} it")
        console.print(text, soft_wrap=True)
        if right is None:
            console.print(f"    {principal} may {verb} nothing at all", style="dim", soft_wrap=True)
            continue
        for part_line in str(right.explain(notification)).splitlines():
            console.print(f"    {printable(part_line)}", soft_wrap=True)


def rights_of(row: dict[str, Any]) -> Rights:
    """What a broker says about somebody's rights."""
    return parse_rights(row["publish"], row["subscribe"], tuple(row["allow"]), row["principal"])


def _what(text: str | None) -> str:
    return (
        "nothing" if text is None else "everything" if text == "true" else f"what satisfies {printable(text)}"
    )
