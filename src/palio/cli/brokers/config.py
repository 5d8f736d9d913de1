"""`palio config`: what is in force, where it was said, and what is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from palio.broker.memory import memory_bound
from palio.broker.settings import (
    DEFAULT_FILE,
    PREFIX,
    UNKNOWN,
    Gathered,
    Settings,
    WrongSetting,
    checked,
    gather,
    require_files,
    require_safe,
)
from palio.cli.brokers.config_example import EXAMPLE
from palio.cli.program.credentials import OPTIONS, TOKEN_VARIABLE
from palio.cli.program.dressing import argument, flag
from palio.cli.program.loading import command_group
from palio.cli.program.saved_contexts import VARIABLE
from palio.cli.program.terminal import (
    ExitCode,
    error_console,
    help_epilog,
    output_console,
    plural,
    printable,
    write_json,
)
from palio.model.amounts import size_text

_CHECK = "palio config check examples/palio.toml"
app = command_group(_CHECK, "palio config show", "palio config example")
File = Annotated[str | None, argument("[FILE]", f"A settings file; {DEFAULT_FILE} is read if there.")]
_DEFAULT = "default"


@app.callback()
def config() -> None:
    """Check and show the settings of a broker.

    A file is overridden by environment variables, and those by the flags of
    palio up.
    """


@app.command("check", epilog=help_epilog(_CHECK))
def check(file: File = None) -> None:
    """Say what is wrong in the settings, and where; else what is in force.

    Exits with 0 if a broker can use them, and with 3 if not.
    """
    gathered = gather(file)
    found = problems(gathered)
    console = error_console()
    for problem in found:
        console.print(_complaint(problem, gathered), soft_wrap=True)
    for name in _unknown_variables():
        console.print(f"The environment variable {name} is no setting; it is ignored.", style="yellow")
    if found:
        console.print(f"{plural(len(found), 'wrong setting')}.", style="bold red")
        raise typer.Exit(ExitCode.BAD_INPUT)
    _show(output_console(), gathered)
    _show_memory(output_console(), checked(gathered.values, gathered.origins, gathered.file))
    console.print("These settings can be used.", style="green")


@app.command("show", epilog=help_epilog("palio config show", "palio config show examples/palio.toml --json"))
def show(
    file: File = None, as_json: Annotated[bool, flag("--json", "As a JSON object, with the origins.")] = False
) -> None:
    """Show the settings in force, and where each comes from."""
    gathered = gather(file)
    settings = _plain(gathered)
    if as_json:
        origins = {name: gathered.origins.get(name, _DEFAULT) for name in settings}
        write_json({"settings": settings, "origins": origins})
    else:
        _show(output_console(), gathered)


@app.command("example", epilog=help_epilog("palio config example"))
def show_example() -> None:
    """Show a settings file with every setting, its default and what it means."""
    typer.echo(EXAMPLE, nl=False)


def _show_memory(console: Console, settings: Settings) -> None:
    """What a broker with these settings needs at the most, and why."""
    parts = memory_bound(settings)
    table = Table(
        Column("memory, at the most"), Column("", justify="right"), Column("by"), box=None, pad_edge=False
    )
    for part in parts:
        table.add_row(part.what, size_text(part.bytes), Text(part.settings, style="dim"))
    table.add_row("in all", size_text(sum(part.bytes for part in parts)), "", style="bold")
    console.print(table)
    console.print(
        "Durable subscriptions are those of one principal, and each link to a neighbour adds up to "
        f"{size_text(settings.limits.link)} (limits.link)."
    )


def problems(gathered: Gathered) -> list[WrongSetting]:
    """All that is wrong: each setting is looked at by itself, so that one mistake does not hide another."""
    found = []
    for one in _one_by_one(gathered.values, Settings):
        try:
            checked(one, gathered.origins, gathered.file)
        except WrongSetting as problem:
            found.append(problem)
    if not found:  # what goes together
        settings = checked(gathered.values, gathered.origins, gathered.file)
        try:
            require_safe(settings)
            require_files(settings)
        except WrongSetting as problem:
            top = problem.path.removeprefix("$.").split(".")[0]
            found.append(WrongSetting(problem.path, gathered.origins.get(top, gathered.file), problem.reason))
    return found


def _one_by_one(given: dict[str, Any], kind: Any) -> Iterator[dict[str, Any]]:
    """Settings that say one thing each, and together what is given."""
    fields = {one.name: one.type for one in msgspec.structs.fields(kind)}
    tables = {name: one for name, one in fields.items() if hasattr(one, "__struct_fields__")}
    for name, value in given.items():
        if name in tables and isinstance(value, dict) and value:
            yield from ({name: one} for one in _one_by_one(value, tables[name]))
        else:
            yield {name: value}


def _complaint(problem: WrongSetting, gathered: Gathered) -> Text:
    place = problem.origin
    if place == gathered.file and (line := line_of(problem, Path(gathered.file).read_text(encoding="utf-8"))):
        place = f"{place}:{line}"
    text = Text(f"{place}: ", style="bold")
    path = problem.path.removeprefix("$").removeprefix(".")
    text.append(printable(f"{path}: " if path else ""), style="not bold")
    return text.append(printable(problem.reason + _hint(problem)), style="not bold red")


def _hint(problem: WrongSetting) -> str:
    unknown = _unknown(problem)
    if unknown is None:
        return ""
    kind: Any = Settings
    for key in re.findall(r"[^.\[\]$]+", problem.path):
        kind = {one.name: one.type for one in msgspec.structs.fields(kind)}.get(key)
        if not hasattr(kind, "__struct_fields__"):  # within a list
            return ""
    close = get_close_matches(unknown, kind.__struct_fields__, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _unknown(problem: WrongSetting) -> str | None:
    found = UNKNOWN.fullmatch(problem.reason)
    return found[1] if found else None


def line_of(problem: WrongSetting, text: str) -> int | None:
    """The line of a settings file that a problem is about, as far as its path leads; None if not found."""
    keys = re.findall(r"[^.\[\]$]+", problem.path)
    if (unknown := _unknown(problem)) is not None:
        keys.append(unknown)
    best, depth, section = None, 0, list[str]()
    tables: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if header := re.match(r"\[\[?\s*([^\]]+?)\s*\]\]?", bare):
            section = header[1].split(".")
            if bare.startswith("[["):
                section.append(str(tables.setdefault(header[1], -1) + 1))
                tables[header[1]] += 1
            here = section
        elif named := re.match(r"([\w.-]+)\s*=", bare):
            here = section + named[1].split(".")
        else:
            continue
        if len(here) > depth and keys[: len(here)] == here:
            best, depth = number, len(here)
    return best


def _unknown_variables() -> list[str]:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.__struct_fields__}
    known |= {VARIABLE, TOKEN_VARIABLE} | {f"{PREFIX}{name.upper()}" for name in OPTIONS}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)


def _plain(gathered: Gathered) -> dict[str, Any]:
    settings = checked(gathered.values, gathered.origins, gathered.file)
    plain: dict[str, Any] = msgspec.to_builtins(settings, str_keys=True)
    return plain


def _show(console: Console, gathered: Gathered) -> None:
    columns = [Column(heading, overflow="fold") for heading in ("setting", "value", "from")]
    table = Table(*columns, box=None, pad_edge=False)
    for name, value in _plain(gathered).items():
        origin = gathered.origins.get(name, _DEFAULT)
        style = "dim" if origin == _DEFAULT else ""
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for key, part in parts:
            shown = f"{name}.{key}" if key else name
            said = gathered.origins.get(shown, origin)
            table.add_row(shown, printable(_text(part)), said.removeprefix("The "), style=style)
    console.print(table)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
