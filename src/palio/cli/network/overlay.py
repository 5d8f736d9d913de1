"""`palio overlay`: how the brokers of a network are linked, as each of them says."""

from __future__ import annotations

import asyncio
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from palio.cli.network.broker_status import AsJson
from palio.cli.program.connecting import Server, ask, run
from palio.cli.program.terminal import help_epilog, output_console, plural, printable, write_json
from palio.model.errors import PalioError

EPILOG = help_epilog("palio overlay", "palio overlay --json")
# Brokers that are asked, and at the same time; a larger network is drawn in part.
_MOST, _AT_ONCE = 1_000, 16
_WITHIN = 5.0


def overlay(server: Server = None, as_json: AsJson = False) -> None:
    """Draw how the brokers of a network are linked.

    The chosen broker is asked for its neighbours, these for theirs, and so on;
    whoever asks needs the right to inspect at each of them. A mesh is a table of
    who is linked with whom, and how far away it is. Brokers whose links
    are fixed by their settings are shown as neighbours of others, and do not
    tell of their own.
    """
    rows = run(_walk(server))
    if as_json:
        for row in rows.values():
            write_json(row)
        return
    first = next(iter(rows.values()))
    root = first["component"] if first["component"] in rows else first["name"]
    drawn = _table(rows) if any(row.get("kind") == "mesh" for row in rows.values()) else _drawn(rows, root)
    output_console().print(drawn, soft_wrap=True)
    sentence = f"{plural(len(rows), 'broker')}."
    looking = [row["name"] for row in rows.values() if row["looking"]]
    if looking:
        sentence += f" Looking for others: {printable(', '.join(looking))}."
    output_console().print(sentence, style="dim")


async def _walk(server: str | None) -> dict[str, dict[str, Any]]:
    """What each broker says of itself, by its name; those that do not answer say why."""
    [[first]] = await ask(server, "overlay", timeout=_WITHIN)
    rows = {first["name"]: first}
    left = [one for one in first["neighbours"] if one["address"]]
    while left and len(rows) < _MOST:
        some, left = left[:_AT_ONCE], left[_AT_ONCE:]
        some = [one for one in {one["broker"]: one for one in some}.values() if one["broker"] not in rows]
        for row in await asyncio.gather(*[_ask(one) for one in some]):
            rows[row["name"]] = row
            left += [one for one in row["neighbours"] if one["broker"] not in rows and one["address"]]
    return rows


async def _ask(contact: dict[str, Any]) -> dict[str, Any]:
    name, address = contact["broker"], contact["address"]
    try:
        [[row]] = await ask(address, "overlay", timeout=_WITHIN)
    except PalioError as problem:
        silent = {"component": "", "neighbours": [], "links": [], "looking": False}
        return {"name": name, "address": address, "problem": str(problem)} | silent
    return {**row, "name": name, "address": address}


def _drawn(rows: dict[str, dict[str, Any]], root: str) -> Tree:
    """The tree below a broker. Each is drawn once, whatever they say of each other."""
    seen = {root}
    drawing = Tree(_label(rows.get(root), root))
    left = [(drawing, root)]
    while left:
        branch, name = left.pop(0)
        for other in sorted(rows.get(name, {}).get("links", ())):
            if other not in seen:
                seen.add(other)
                left.append((branch.add(_label(rows.get(other), other)), other))
    return drawing


def _table(rows: dict[str, dict[str, Any]]) -> Table:
    """A mesh: each broker with its neighbours, the nearest first."""
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    for title in ("broker", "address", "neighbours"):
        table.add_column(title, no_wrap=title != "neighbours")
    for name, row in sorted(rows.items()):
        distances = {one["broker"]: one["distance"] for one in row["neighbours"]}
        links = sorted(row["links"], key=lambda other: (distances.get(other, 0.0), other))
        said = [
            f"{printable(other)} {1000 * away:.1f} ms" if (away := distances.get(other)) else printable(other)
            for other in links
        ]
        told = Text(printable(row["problem"]), style="red") if "problem" in row else Text(", ".join(said))
        table.add_row(Text(printable(name), style="bold"), Text(printable(row["address"]), style="dim"), told)
    return table


def _label(row: dict[str, Any] | None, name: str) -> Text:
    text = Text(printable(name), style="bold")
    if row is None:
        return text.append("  not asked", style="dim")
    text.append(f"  {printable(row['address'])}", style="dim")
    return text.append(f"  {printable(row['problem'])}", style="red") if "problem" in row else text
