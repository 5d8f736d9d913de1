"""`palio spark backtest`: what a filter would have delivered of all history, and how another one differs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from palio.cli.input.inputs import Dialect
from palio.cli.output.bars import squeezed, standing
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import ExitCode, help_epilog, output_console, plural, printable, say, write_json
from palio.cli.spark.archive import DEFAULT_LAKE
from palio.cli.spark.backtest_picture import NAMES, check_picture, draw
from palio.cli.spark.checkpoint import Checkpoint, Since, moment_of, watched
from palio.cli.spark.options import Master, Remote, Settings, opened
from palio.language import PALIO, read_filter
from palio.spark import jobs
from palio.spark.jobs.backtest_result import LookedBack

EPILOG = help_epilog(
    "palio spark backtest 'price > 100'",
    "palio spark backtest 'price > 100' --against 'price > 120' --picture d.png",
    "palio spark backtest 'price > 9' --journals sqlite:///palio-data/palio.db",
    "palio spark backtest true examples/trades.jsonl --time time --every 1m",
    "palio spark backtest 'price > 100' --checkpoint backtest-state/",
    """palio spark backtest '{"price": [{"exists": true}]}' --dialect eventbridge""",
    notes="`palio backtest` asks the brokers, without Spark; with their setting `lake` as far back as this.",
)
_COLOURS = {"only_first": "blue", "both": "green", "only_second": "dark_orange3"}
_LABEL = 20


def backtest(
    filter_text: Annotated[str, argument("FILTER", "The filter to try.")],
    source: Annotated[
        str, argument("[EVENTS]", "A lake, sqlite:///…, palio://…, Parquet or JSON lines.")
    ] = DEFAULT_LAKE,
    *,
    against: Annotated[str | None, option("FILTER", "Another filter, to see the difference.")] = None,
    dialect: Dialect = PALIO,
    journals: Annotated[str | None, option("URL", "And what these journals have after the lake.")] = None,
    since: Since = None,
    until: Annotated[str | None, option("WHEN", "Before this time.")] = None,
    every: Annotated[str | None, option("SPAN", "Count in parts of 15m, 1h, 1d, 1w, 1mo, 1y.")] = None,
    time: Annotated[str | None, option("ATTRIBUTE", "When it was; else when it was published.")] = None,
    samples: Annotated[int, typer.Option(min=0, max=100, help="How many events to show of each side.")] = 3,
    picture: Annotated[Path | None, option("FILE", "Draw it: a .png or an .svg.")] = None,
    output: Annotated[str | None, option("FOLDER", "Write the counts as Parquet.", "--output", "-o")] = None,
    as_json: Annotated[bool, flag("--json", "One JSON object.")] = False,
    checkpoint: Checkpoint = None,
    master: Master = None,
    remote: Remote = None,
    conf: Settings = None,
) -> None:
    """Say what a filter would have delivered of all that was published, and when.

    Times are in UTC, and parts of them are chosen to fit if --every does not say
    how long they are. With --against, what is selected falls into three: by the
    first filter (A) only, by the second (B) only, and by both. An attribute that
    --time names is a time, or a text such as 2026-11-16 or 2026-11-16T09:30:00Z.

    With --checkpoint it is counted in parts, which are kept in the folder, and the
    same command goes on after an interrupt, with the events that there were when
    it began. Asked again when all is done, it answers at once.

    Exits with 1 if nothing is selected.
    """
    for text in (filter_text, against):
        if text is not None:
            read_filter(text, dialect).require_satisfiable()
    for text in (since, until):
        moment_of(text)
    if picture is not None:
        check_picture(picture)
    with (
        opened(master, remote, conf, "backtest", own_bar=checkpoint is not None) as spark,
        watched(checkpoint) as progress,
    ):
        looked = jobs.backtest(
            spark,
            filter_text,
            source,
            against=against,
            dialect=dialect,
            journals=journals,
            since=since,
            until=until,
            every=every,
            time=time,
            samples=samples,
            output=output,
            checkpoint=checkpoint,
            progress=progress,
        )
    if looked.unreadable:
        say(f"{plural(looked.unreadable, 'line')} cannot be read, and left out.", "yellow")
    if picture is not None:
        draw(looked, picture)
        say(f"The picture is {picture}.")
    if as_json:
        write_json(looked.document())
    else:
        show(output_console(), looked)
    if not looked.found:
        raise typer.Exit(ExitCode.NO)


def show(console: Console, looked: LookedBack) -> None:
    """A small picture of blocks, and the samples."""
    events = looked.total("events")
    if looked.second is not None:
        console.print(Text("A  ", style="bold").append(printable(looked.first), style="cyan"), soft_wrap=True)
        console.print(Text("B  ", style="bold").append(printable(looked.second), style="cyan"), soft_wrap=True)
    said = f"{looked.found:,} of {plural(events, 'event')}"
    if looked.parts and looked.end is not None:
        said += f", {_day(looked.parts[0].begin)} to {_day(looked.end)} (UTC), each {looked.every}"
    console.print(said, style="bold", soft_wrap=True)
    if not events:
        console.print("Nothing was published in that time.", style="yellow", soft_wrap=True)
        return
    cells = max(20, console.width - _LABEL - 2)
    columns = {side: squeezed([part.side(side) for part in looked.parts], cells) for side in looked.sides}
    most = max([1, *[count for counts in columns.values() for count in counts]])
    for side, name in NAMES.items():
        if side in columns:
            label = name if looked.second is not None else "selected"
            total = looked.total(side)
            lines = standing(columns[side], most, 2 if looked.second is not None else 4)
            labels = [f"{label}  {total:,}", f"{total / events:.1%}", "", ""]
            for said, line in zip(labels, lines, strict=False):
                console.print(Text(f"{said:<{_LABEL}}", style="dim").append(line, style=_COLOURS[side]))
    if looked.untimed is not None:
        said = f"{plural(looked.untimed.events, 'event')} without a time are in the sums only."
        console.print(said, style="yellow", soft_wrap=True)
    for one in looked.samples:
        side = f"{NAMES[one.side]:<8}" if looked.second is not None else ""
        when = "-" if one.time is None else one.time.strftime("%Y-%m-%d %H:%M:%S")
        text = f"  {side}{when} {one.origin}  {printable(one.event.to_json())}"
        console.print(text, style="dim", soft_wrap=True)


def _day(moment: object) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00").removesuffix(" 00:00")
