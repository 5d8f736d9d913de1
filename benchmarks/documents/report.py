"""Rows of `palio bench xml`: each figure beside its yardstick, the bar, and what the source says of itself."""

from __future__ import annotations

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palio.cli.bench.measuring import duration


class XmlRow(msgspec.Struct, frozen=True):
    """One line: our figure, the yardstick's, and how they compare.

    Of rates more is better (`per_second`), of times less. `ratio` is always such that more is better, unless
    the bar is one of `at_most`.
    """

    subject: str
    what: str
    ours: float
    yardstick: float
    yardstick_is: str
    ratio: float
    bar: float | None = None
    at_most: bool = False
    per_second: bool = True
    source: str = ""  # what the source measured, on a machine of 2005
    x: float = 0.0  # for plots: what is changed from row to row

    @property
    def is_met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.ratio <= self.bar if self.at_most else self.ratio >= self.bar


def show_rows(console: Console, rows: list[XmlRow], *, judged: bool) -> None:
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("what")
    for title in ("Palio", "yardstick", "ratio", "bar", ""):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("the yardstick", style="dim")
    table.add_column("source", style="dim", no_wrap=True)
    for row in rows:
        met = row.is_met if judged else None
        table.add_row(
            Text(row.what),
            Text(_figure(row.ours, per_second=row.per_second), style="bold green"),
            _figure(row.yardstick, per_second=row.per_second),
            f"{row.ratio:,.2f}" if row.ratio < 10 else f"{row.ratio:,.0f}",
            "" if row.bar is None else f"{'≤' if row.at_most else '≥'} {row.bar:g}",
            {True: Text("met", "green"), False: Text("missed", "red"), None: ""}[met],
            Text(row.yardstick_is),
            Text(row.source),
        )
    console.print(table)


def _figure(figure: float, *, per_second: bool) -> str:
    if not per_second:
        return duration(figure)
    return f"{figure:,.0f}/s" if figure >= 10 else f"{figure:.2g}/s"


def document(setup: dict[str, object], rows: list[XmlRow]) -> dict[str, object]:
    """All of it, for machines."""
    return {
        "setup": setup,
        "rows": [msgspec.structs.asdict(row) | {"met": row.is_met} for row in rows],
    }
