"""`palio audit`: the operation log of a broker, for people and programs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from palio.cli.brokers.journal import BrokerName, OneOfBoth, StoreUrl
from palio.cli.program.connecting import Server, connected, run
from palio.cli.program.dressing import flag, option
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
from palio.model.amounts import size_text
from palio.model.errors import PalioError
from palio.model.moments import parse_since

EPILOG = help_epilog(
    "palio audit",
    "palio audit --result refused --since 1d",
    "palio audit --who desk-7",
    "palio audit --kind publish --kind attach --json",
    "palio audit --follow",
    "palio audit --store sqlite:///palio-data/palio.db --since all --json",
)
_PAGE = 1_000
_WAITS = 10.0  # seconds, for what comes next


class CannotFollow(PalioError):
    """A store cannot be followed."""

    sentence = "A store is read as it is; name a running broker with --server to follow its log."

    def __init__(self) -> None:
        super().__init__(self.sentence)


def audit(
    *,
    server: Server = None,
    store: StoreUrl = None,
    broker: BrokerName = None,
    who: Annotated[str | None, option("PRINCIPAL", "Only what this principal has asked for.")] = None,
    kind: Annotated[list[str] | None, option("KIND", "Only these, such as publish; repeat it.")] = None,
    result: Annotated[
        list[str] | None, option("RESULT", "Only these: done, refused, unanswered; repeat it.")
    ] = None,
    binding: Annotated[
        list[str] | None, option("BINDING", "Only by these: palio, websocket, http; repeat it.")
    ] = None,
    since: Annotated[str | None, option("WHEN", "All from then on: 1h, 7d, a date, a time, all.")] = None,
    until: Annotated[str | None, option("WHEN", "Only what is older.")] = None,
    last: Annotated[int, option("COUNT", "So many, without --since.", min=1, max=_PAGE)] = 50,
    follow: Annotated[bool, flag("--follow", "Go on with what comes, until Ctrl-C.")] = False,
    as_json: Annotated[bool, flag("--json", "JSON lines.")] = False,
) -> None:
    """Show who has asked a broker for what, when, and what came of it.

    Each request leaves a row, whatever it came by, also one that was refused.
    Of a publish it says which sequences were given; `palio replay` shows what
    was published. Exits with 1 if there is nothing.
    """
    if store is not None and server is not None:
        raise OneOfBoth
    if store is not None and follow:
        raise CannotFollow
    now = time.time()
    begin = None if since is None else parse_since(since, now=now)
    wanted = {
        "principal": who,
        "kinds": tuple(kind or ()),
        "results": tuple(result or ()),
        "bindings": tuple(binding or ()),
        "since": None if begin in (None, "all") else begin,
        "until": None if until is None else parse_since(until, now=now),
    }
    show = _Shown(as_json=as_json, at_once=follow)
    if store is not None:
        for row in _of_store(store, broker, wanted, None if begin is not None else last):
            show(row)
    else:
        run(_of_broker(server, wanted, None if begin is not None else last, show, follow=follow))
    show.end()
    if not show.count:
        raise typer.Exit(ExitCode.NO)


class _Shown:
    """Shows rows: as JSON lines, as they come, or as a table in the end."""

    def __init__(self, *, as_json: bool, at_once: bool) -> None:
        self.count = 0
        self._json, self._at_once = as_json, at_once
        self._table = Table(box=None, pad_edge=False)
        for heading in ("number", "time", "who", "by", "kind", "about", "bytes", "result"):
            right = heading in ("number", "bytes")
            self._table.add_column(heading, justify="right" if right else "left", overflow="fold")

    def __call__(self, row: dict[str, Any]) -> None:
        self.count += 1
        if self._json:
            write_json(row)
            return
        cells = _cells(row)
        if self._at_once:
            write_line("  ".join(cell for cell in cells if cell))
        else:
            self._table.add_row(*cells)

    def end(self) -> None:
        if not self._json and not self._at_once and self.count:
            output_console().print(self._table)
        if not self._json:
            say(plural(self.count, "request") + ".")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    moment = datetime.fromtimestamp(row["time"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    about = row["subject"]
    if row["kind"] == "publish" and row["sequence"]:
        last = row["sequence"] + row["events"] - 1
        about = f"{row['sequence']:,}" + (f" to {last:,}" if row["events"] > 1 else "")
    result = row["result"] + (f": {row['reason']}" if row["reason"] else "")
    who = printable(row["principal"] or row["session"])
    number, size = f"{row['number']:,}", size_text(row["bytes"])
    return (
        number,
        moment,
        who,
        row["binding"],
        printable(row["kind"]),
        printable(about),
        size,
        printable(result),
    )


async def _of_broker(
    server: str | None, wanted: dict[str, Any], last: int | None, show: _Shown, *, follow: bool
) -> None:
    async with connected(server) as client:

        async def read(**more: Any) -> dict[str, Any]:
            return await client.operations(**(wanted | more), timeout=_WAITS + 30.0)

        after = 0
        if last is not None:
            page = await read(limit=last)
            for row in page["operations"]:
                show(row)
            newest = page["operations"][-1:] or (await read(limit=1, principal=None))["operations"]
            after = newest[0]["number"] if newest else 0
        else:
            async for page in _pages(read):
                for row in page["operations"]:
                    show(row)
                    after = row["number"]
        while follow:
            page = await read(after=after, limit=_PAGE, wait=_WAITS)
            for row in page["operations"]:
                show(row)
                after = row["number"]
            after = max(after, page["onward"] or 0)
            await asyncio.sleep(0)


async def _pages(read: Any) -> AsyncIterator[dict[str, Any]]:
    after: int | None = 0
    while after is not None:
        page = await read(after=after, limit=_PAGE)
        yield page
        after = page["onward"]


def _of_store(
    url: str, broker: str | None, wanted: dict[str, Any], last: int | None
) -> Iterator[dict[str, Any]]:
    from palio.store.operation_reading import OperationQuery, OperationReader  # noqa: PLC0415 (only for a store)

    reader, query = OperationReader(url, broker), OperationQuery(**wanted)
    if last is not None:
        rows: list[Any] = []
        before: int | None = None
        while len(rows) < last:
            page = reader.page_back(query, before, last - len(rows))
            rows[:0] = page.rows
            before = page.onward
            if before is None:
                break
        yield from map(msgspec.structs.asdict, rows)
        return
    after: int | None = 0
    while after is not None:
        page = reader.page(query, after, _PAGE)
        yield from map(msgspec.structs.asdict, page.rows)
        after = page.onward
