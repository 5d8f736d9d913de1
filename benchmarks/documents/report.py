"""Rows of `palio bench xml`: each figure beside its yardstick, the bar, and what the source says of itself."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palio.cli.bench.measuring import duration
from palio.sim.experiments.plots import STYLE

AXES = {
    "sizes": "KB of a document",
    "native": "KB of a document",
    "subscribers": "durable subscribers",
    "overload": "of what can be taken",
    "conditions": "conditions",
    "subscriptions": "subscriptions",
    "has": "elements of a list",
    "bindings": "KB of a document",
    "processor": "KB of a document",
    "tables": "subscriptions",
}


class XmlRow(msgspec.Struct, frozen=True):
    """One line: our figure, the yardstick's, and how they compare.

    Of rates more is better, of times and memory less. `ratio` is always such that more is better, unless
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
    unit: str = "/s"  # or `s`, or `MB` of bytes, or `rows`
    source: str = ""  # what the source measured, on a machine of 2005
    x: float = 0.0  # for plots: what is changed from row to row
    line: str = ""  # and what is not

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
            Text(_figure(row.ours, row.unit), style="bold green"),
            _figure(row.yardstick, row.unit),
            f"{row.ratio:,.2f}" if row.ratio < 10 else f"{row.ratio:,.0f}",
            "" if row.bar is None else f"{'≤' if row.at_most else '≥'} {row.bar:g}",
            {True: Text("met", "green"), False: Text("missed", "red"), None: ""}[met],
            Text(row.yardstick_is),
            Text(row.source),
        )
    console.print(table)


def _figure(figure: float, unit: str) -> str:
    if unit == "s":
        return duration(figure)
    if unit == "MB":
        return f"{figure / 1e6:,.0f} MB"
    if unit == "rows":
        return f"{figure:,.0f}"
    return f"{figure:,.0f}/s" if figure >= 10 else f"{figure:.2g}/s"


def document(setup: dict[str, object], rows: list[XmlRow]) -> dict[str, object]:
    """All of it, for machines."""
    return {
        "setup": setup,
        "rows": [msgspec.structs.asdict(row) | {"met": row.is_met} for row in rows],
    }


def plot(rows: list[XmlRow], folder: Path) -> list[Path]:
    """A picture of each subject in which something is changed from row to row, ours and the yardstick's."""
    import matplotlib  # noqa: PLC0415 (an extra)

    matplotlib.use("agg")
    matplotlib.rcParams.update(STYLE)
    from matplotlib import pyplot  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for subject in dict.fromkeys(row.subject for row in rows):
        lines: dict[str, list[XmlRow]] = {}
        for row in rows:
            if row.subject == subject and row.unit != "MB":
                lines.setdefault(f"{row.line}{row.yardstick_is}", []).append(row)
        figure, axes = pyplot.subplots(figsize=(7, 4))
        drawn: list[list[float]] = []  # yardsticks, of which several lines may have the same
        for label, several in lines.items():
            places = [row.x for row in several]
            axes.plot(
                places, [row.ours for row in several], marker="o", label=f"Palio ({several[0].line or subject})"
            )
            yardstick = [row.yardstick for row in several]
            if yardstick not in drawn:
                drawn.append(yardstick)
                axes.plot(places, yardstick, marker="x", linestyle="--", label=label)
        unit = next(row.unit for several in lines.values() for row in several)
        axes.set_ylabel({"/s": "a second", "rows": "rows of all tables"}.get(unit, "seconds"))
        axes.set_xlabel(AXES.get(subject, ""))
        axes.set_yscale("log")
        axes.legend(fontsize="small")
        figure.tight_layout()
        written.append(folder / f"{subject}.svg")
        figure.savefig(written[-1])
        pyplot.close(figure)
    return written
