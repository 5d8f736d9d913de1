"""Plots of an experiment, as PNG to look at and as SVG to scale.

Every line has its own colour *and* its own marker and dash, so that it can be told from the others without
colours; the colours are those of Okabe and Ito, which most eyes can tell apart. Error bars are 95 % intervals
over the seeds. Legends stand below the panels, never over data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from palio.model.errors import MissingDependency
from palio.sim.experiments.definition import Experiment, Plot, Sweep
from palio.sim.experiments.fits import Growth
from palio.sim.experiments.results import Row
from palio.sim.experiments.series import MeasureSeries, value_of
from palio.sim.experiments.statistics import Summary, summary
from palio.sim.experiments.wording import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# These two are for all pictures that we draw.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 2)), (0, (3, 1, 1, 1)), (0, (1, 1)))
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "svg.hashsalt": "palio",  # the same numbers give the same file
}
_PANEL = (3.7, 3.3)
_ONE_PANEL = (6.2, 3.9)
_LEGEND_COLUMNS = 3
# Letters that fit below a panel; longer labels side by side would run into each other.
_LABEL_WIDTH = 36
_TITLE_LETTERS = 8.5  # an inch, in the size of titles
_BELOW_ZERO = 0.03
_PLAIN_UP_TO = 2_000_000
# A line and its error bars stand a little beside the others, so that equal values do not hide each other.
_ASIDE = 0.012


def needs_matplotlib() -> None:
    """Raise `MissingDependency` now rather than when all runs are made."""
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        raise MissingDependency("matplotlib", "sim") from None


def draw_plot(experiment: Experiment, plot: Plot, rows: Sequence[Row], folder: Path) -> str:
    """Draw one plot and give the name that its files have but for their endings."""
    import matplotlib as mpl  # noqa: PLC0415

    sweep = experiment.sweep(plot.sweep)
    vertical = MeasureSeries(sweep, rows, plot.y, plot.where)
    horizontal = MeasureSeries(sweep, rows, plot.x or plot.along, plot.where)
    groups: dict[Any, list[Any]] = {}
    for point in vertical.points:
        groups.setdefault(value_of(point, plot.panels) if plot.panels else None, []).append(point)
    with mpl.rc_context(STYLE):
        figure, panels = _figure(len(groups), share_y=True)
        for axes, (panel, points) in zip(panels, groups.items(), strict=True):
            lines = plot.variants or vertical.variants
            for number, variant in enumerate(lines):
                found = [
                    (summary(horizontal.values(point, variant)).mean, summary(vertical.values(point, variant)))
                    for point in points
                ]
                place = number - (len(lines) - 1) / 2
                look = _look(sweep, variant)
                dashes = _DASHES[look % len(_DASHES)]
                _points(axes, look, variant, _aside(found, place, plot), linestyle=dashes)
            axes.set_xlabel(
                fill(experiment.label(plot.x or plot.along), _LABEL_WIDTH if panel is not None else 80)
            )
            if panel is not None:
                axes.set_title(f"{experiment.label(plot.panels)}: {shown(panel)}")
        for axes in panels:
            _scales(axes, plot)  # only now: panels share their scale, and all lines must be on it
            spot = axes.get_subplotspec()
            if spot is not None and spot.is_first_col():
                axes.set_ylabel(_folded(experiment.label(plot.y)))
        _finish(figure, panels, plot.title)
        _save(figure, folder, plot.name)
    return plot.name


def draw_growth(experiment: Experiment, growths: Sequence[Growth], folder: Path) -> str:
    """Draw measured means, the fitted laws through them and the formulas on paper, on logarithmic axes."""
    import matplotlib as mpl  # noqa: PLC0415

    fit = growths[0].fit
    with mpl.rc_context(STYLE):
        figure, (axes,) = _figure(1)
        for growth in growths:
            number = _look(experiment.sweep(fit.sweep), growth.variant)
            found = [(x, one) for x, one in growth.measured if one.mean > 0]
            law = growth.law
            name = growth.variant if law is None else f"{growth.variant}: $\\propto$ x$^{{{law.exponent:.2f}}}$"
            _points(axes, number, name, found)
            if law is not None:
                ends = [min(x for x, _ in found), max([x for x, _ in found] + list(fit.extrapolate))]
                axes.plot(ends, [law(x) for x in ends], color=_colour(number), linewidth=1.1, linestyle="--")
            if growth.on_paper:
                xs, ys = zip(*growth.on_paper, strict=True)
                axes.plot(xs, ys, color=_colour(number), linewidth=1.1, linestyle=":")
        axes.plot([], [], color="#555555", linestyle="--", linewidth=1.1, label="fitted")
        if any(growth.on_paper for growth in growths):
            axes.plot([], [], color="#555555", linestyle=":", linewidth=1.1, label="on paper")
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain_numbers(axes)
        axes.set_xlabel(experiment.label(fit.along))
        axes.set_ylabel(_folded(experiment.label(fit.y)))
        _finish(figure, [axes], fit.title)
        _save(figure, folder, fit.name)
    return fit.name


def _figure(count: int, *, share_y: bool = False) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure  # noqa: PLC0415

    # Four panels make a square; more than three in a row would be too small to read.
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    width, height = (_PANEL[0] * columns, _PANEL[1] * rows) if count > 1 else _ONE_PANEL
    # Without pyplot: no display is looked for, and nothing is kept when the figure goes.
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    panels = [axes for row in figure.subplots(rows, columns, sharey=share_y, squeeze=False) for axes in row]
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def _aside(found: list[tuple[float, Summary]], steps: float, plot: Plot) -> list[tuple[float, Summary]]:
    numbers = [x for x, _ in found]
    if plot.log_x:
        return [(x * (1 + 2 * _ASIDE) ** steps, one) for x, one in found]
    spread = (max(numbers) - min(numbers)) if numbers else 0.0
    return [(x + _ASIDE * steps * spread / 2, one) for x, one in found]


def _look(sweep: Sweep, variant: str) -> int:
    """A variant looks the same in all plots of an experiment, whichever others are beside it."""
    return list(sweep.variants or {variant: {}}).index(variant)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _points(
    axes: Axes, number: int, name: str, found: list[tuple[float, Summary]], *, linestyle: Any = "none"
) -> None:
    kept = [(x, one) for x, one in found if not (math.isnan(x) or math.isnan(one.mean))]
    widths = [one.half_width if math.isfinite(one.half_width) else 0.0 for _, one in kept]
    axes.errorbar(
        [x for x, _ in kept],
        [one.mean for _, one in kept],
        yerr=widths,
        label=name,
        color=_colour(number),
        marker=_MARKERS[number % len(_MARKERS)],
        linestyle=linestyle,
        markersize=5,
        linewidth=1.5,
        elinewidth=1,
        capsize=2.5,
    )


def _scales(axes: Axes, plot: Plot) -> None:
    if plot.log_x:
        axes.set_xscale("log")
    if plot.log_y:
        axes.set_yscale("log")
    elif plot.from_zero:
        axes.set_ylim(bottom=-_BELOW_ZERO * axes.get_ylim()[1])  # a little below, for markers at zero
    _plain_numbers(axes)


def _plain_numbers(axes: Axes) -> None:
    """`1,000` rather than a power of ten, as long as that can be read at a glance."""
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation  # noqa: PLC0415

    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if axis.get_scale() == "linear":
            if high >= 1_000:
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        elif high <= _PLAIN_UP_TO and low >= 1 / _PLAIN_UP_TO:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
        else:
            axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(0, 0)))


def _finish(figure: Figure, panels: Sequence[Axes], title: str) -> None:
    letters = int(figure.get_figwidth() * _TITLE_LETTERS)
    figure.suptitle(fill(title, letters), fontsize=12, fontweight="bold")
    handles, labels = panels[0].get_legend_handles_labels()
    if len(labels) > 1:
        columns = min(len(labels), _LEGEND_COLUMNS if len(panels) < 3 else 2 * _LEGEND_COLUMNS)
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def _folded(label: str) -> str:
    """A long label over two lines, broken before its unit."""
    return label.replace(" (", "\n(") if len(label) > 30 else label


def _save(figure: Figure, folder: Path, name: str) -> None:
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
