"""The picture of a backtest, as PNG or SVG: what filters would have delivered over time, and what there was.

Colours are those of all our pictures, which most eyes can tell apart; the sides stand upon each other in one
order, and are named with their numbers. Below, in grey, is all that was published: whether there is little to
select, or little is selected, are two things.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from palio.sim.experiments.plots import COLOURS, STYLE, needs_matplotlib
from palio.spark.errors import WrongOption
from palio.spark.jobs.backtest_result import LookedBack

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
# Below, in the middle and on top; the same in the terminal.
NAMES = {"only_first": "only A", "both": "both", "only_second": "only B"}
ORDER = ("both", "only_first", "only_second")
COLOUR = {"only_first": COLOURS[0], "both": COLOURS[2], "only_second": COLOURS[1]}
_ALL = "#b8b8b8"
_DIM = "#555555"
_SIZE = (9.0, 5.2)
_TEXT_WIDTH = 92
_MOST_LINES = 3
# How years, months, days, hours, minutes and seconds are written, where such a part begins, and below the axis.
_FORMATS: dict[str, Any] = {
    "formats": ["%Y", "%b", "%d", "%H:%M", "%H:%M", "%H:%M:%S"],
    "zero_formats": ["", "%Y", "%b", "%b %d", "%H:%M", "%H:%M:%S"],
    "offset_formats": ["", "%Y", "%Y-%m", "%Y", "%Y-%m-%d", "%Y-%m-%d"],
}
# Beyond so many, bars are so narrow that edges between them would be all that is seen.
_MANY = 150


def check_picture(file: Path) -> None:
    """Raise `WrongOption` or `MissingDependency` now rather than when all is counted."""
    if file.suffix.lower() not in SUFFIXES:
        raise WrongOption("picture", f"{file} is neither a .png nor an .svg.")
    if not file.absolute().parent.is_dir():
        raise WrongOption("picture", f"There is no folder {file.parent}.")
    needs_matplotlib()


def draw(looked: LookedBack, file: Path) -> None:
    """Draw it."""
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    heading = _heading(looked)
    with mpl.rc_context(STYLE):
        # Without pyplot: no display is looked for, and nothing is kept when the figure goes.
        figure = Figure(figsize=(_SIZE[0], _SIZE[1] + 0.19 * len(heading)), dpi=150)
        top = 1 - (0.5 + 0.19 * len(heading)) / figure.get_figheight()
        # On the right there is room for a time at the end, which reaches beyond it.
        places = {"left": 0.085, "right": 0.96, "top": top, "bottom": 0.085, "hspace": 0.12}
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1), gridspec_kw=places)
        _title(figure, heading)
        _bars(upper, looked)
        _traffic(lower, looked)
        _times(lower, looked)
        figure.align_ylabels([upper, lower])
        figure.savefig(file, metadata=_metadata(file))


def _metadata(file: Path) -> dict[str, Any]:
    """The same numbers give the same file."""
    return {"Software": None} if file.suffix.lower() == ".png" else {"Date": None, "Creator": None}


def _heading(looked: LookedBack) -> list[tuple[str, str, str]]:
    """Lines over the picture: a label, a text, and the colour of its mark."""
    lines = []
    filters = [("", looked.first)] if looked.second is None else [("A", looked.first), ("B", looked.second)]
    for label, text in filters:
        parts = wrap(" ".join(text.split()), _TEXT_WIDTH)
        if len(parts) > _MOST_LINES:
            parts = [*parts[: _MOST_LINES - 1], f"{parts[_MOST_LINES - 1][: _TEXT_WIDTH - 2]} …"]
        lines += [(label if not number else "", part, "") for number, part in enumerate(parts)]
    events = looked.total("events")
    for side, name in NAMES.items():
        if side in looked.sides:
            count = looked.total(side)
            share = f" ({count / events:.2%})" if events else ""
            said = name if looked.second is not None else "selected"
            lines.append((said, f"{count:,} of {events:,} events{share}", COLOUR[side]))
    return lines


def _title(figure: Figure, heading: list[tuple[str, str, str]]) -> None:
    height = figure.get_figheight()
    two = any(label == "B" for label, *_ in heading)
    what = f"What {'these two filters' if two else 'this filter'} would have delivered"
    figure.text(0.02, 1 - 0.12 / height, what, fontsize=13, fontweight="bold", va="top")
    for number, (label, text, colour) in enumerate(heading):
        y = 1 - (0.47 + 0.19 * number) / height
        if colour:
            figure.text(0.02, y, "■", fontsize=11, color=colour, va="center_baseline")
            figure.text(0.042, y, label, fontsize=9.5, va="center_baseline")
            figure.text(0.115, y, text, fontsize=9.5, color=_DIM, va="center_baseline")
        else:
            figure.text(0.02, y, label, fontsize=9.5, fontweight="bold", va="center_baseline")
            figure.text(0.042 if two else 0.02, y, text, fontsize=9, family="monospace", va="center_baseline")


def _bars(axes: Axes, looked: LookedBack) -> None:
    begins, widths = _places(looked)
    edge = {"edgecolor": "white", "linewidth": 0.4} if len(begins) <= _MANY else {"linewidth": 0}
    below = [0] * len(begins)
    for side in ORDER:
        if side in looked.sides:
            counts = [part.side(side) for part in looked.parts]
            axes.bar(begins, counts, widths, bottom=below, align="edge", color=COLOUR[side], **edge)  # type: ignore[arg-type]
            below = [one + other for one, other in zip(below, counts, strict=True)]
    axes.set_ylabel(f"events per {looked.every}")
    axes.set_ylim(0, max([1, *below]) * 1.06)
    _calm(axes)


def _traffic(axes: Axes, looked: LookedBack) -> None:
    begins, widths = _places(looked)
    counts = [part.events for part in looked.parts]
    axes.bar(begins, counts, widths, align="edge", color=_ALL, linewidth=0)  # type: ignore[arg-type]
    axes.set_ylabel("all events", color=_DIM)
    axes.set_ylim(0, max([1, *counts]) * 1.1)
    axes.yaxis.set_major_locator(_few())
    _calm(axes)


def _few() -> Any:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    return MaxNLocator(2, integer=True)


def _calm(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: PLC0415

    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    if not isinstance(axes.yaxis.get_major_locator(), MaxNLocator) or axes.get_ylim()[1] < 10:
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.tick_params(length=0)


def _places(looked: LookedBack) -> tuple[list[datetime], list[timedelta]]:
    begins = [part.begin for part in looked.parts]
    return begins, [looked.every.after(begin) - begin for begin in begins]


def _times(axes: Axes, looked: LookedBack) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415

    locator = AutoDateLocator(minticks=5, maxticks=11)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, **_FORMATS))  # type: ignore[no-untyped-call]
    if looked.parts and looked.end is not None:
        axes.set_xlim(looked.parts[0].begin, looked.end)  # type: ignore[arg-type]
    axes.text(0.0, -0.3, "UTC", transform=axes.transAxes, ha="left", va="top", fontsize=8, color=_DIM)
