"""Plots as HTML with SVG in it: they follow the theme, fit every width, and need nothing from elsewhere.

Columns are SVG that is stretched to the width there is; everything with letters is HTML beside it, so that
letters stay as large as they are on a phone. Every plot has a sentence for those who cannot see it, and the
numbers behind it in a table that opens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from palio.pages import wording

_WIDTH, _HEIGHT = 1000, 300
_LANE = 18
COLOURS = 8


class ColumnLayer(NamedTuple):
    """One layer of columns: its name and its heights. Colours are numbered; 0 is that of the others."""

    name: str
    heights: Sequence[float]
    colour: int = 1


class Row(NamedTuple):
    """A bar of a list: its label and its number, both ready to be shown; and how long it is, from 0 to 1."""

    label: str
    shown: str
    length: float
    note: str = ""


def columns(
    series: Sequence[ColumnLayer],
    ticks: Sequence[tuple[float, str]],
    titles: Sequence[str],
    described: str,
    *,
    low: bool = False,
) -> str:
    """Columns side by side, layers on top of each other; ticks are at places from 0 to 1 of the width."""
    number = len(titles)
    totals = [sum(one.heights[place] for one in series) for place in range(number)]
    top = _top(max(totals, default=0))
    width = _WIDTH / max(1, number)
    gap = min(width * 0.16, 3.0)
    bars = []
    for place in range(number):
        base = 0.0
        parts = []
        for one in series:
            height = one.heights[place] / top * _HEIGHT
            if height <= 0:
                continue
            height = max(height, 1.5)  # what is there can be seen
            parts.append(
                f'<rect class="c{one.colour}" x="{place * width + gap / 2:.2f}" '
                f'y="{_HEIGHT - base - height:.2f}" width="{width - gap:.2f}" height="{height:.2f}"/>'
            )
            base += height
        reach = f'<rect class="reach" x="{place * width:.2f}" y="0" width="{width:.2f}" height="{_HEIGHT}"/>'
        bars.append(f"<g>{''.join(parts)}{reach}<title>{titles[place]}</title></g>")
    lines = "".join(f'<line x1="0" x2="{_WIDTH}" y1="{y}" y2="{y}"/>' for y in (0.5, _HEIGHT / 2))
    return (
        f'<div class="columns{" low" if low else ""}" role="img" aria-label="{described}">'
        f'<div class="scale" aria-hidden="true"><span>{wording.short(top)}</span>'
        f"<span>{wording.short(top / 2)}</span><span>0</span></div>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<g class="grid">{lines}</g>{"".join(bars)}</svg>'
        f"{_ticks(ticks)}</div>"
    )


def _ticks(ticks: Sequence[tuple[float, str]]) -> str:
    marks = "".join(
        f'<span style="left:{place * 100:.2f}%"{_side(place)}>{label}</span>' for place, label in ticks
    )
    return f'<div class="ticks" aria-hidden="true">{marks}</div>'


def _side(place: float) -> str:
    """Labels at the ends stay within."""
    return ' class="first"' if place < 0.06 else ' class="last"' if place > 0.94 else ""


def _top(most: float) -> float:
    """The upper end of an axis: a number that halves well."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * power >= most)


def bars(rows: Sequence[Row], described: str, *, colour: int = 1) -> str:
    """Bars below each other, each with its label above or beside it."""
    items = "".join(
        f'<li><span class="label">{one.label}</span>'
        f'<span class="track"><span class="c{colour}" style="width:{_per_cent(one.length)}%"></span></span>'
        f'<span class="shown">{one.shown}{f"<small>{one.note}</small>" if one.note else ""}</span></li>'
        for one in rows
    )
    return f'<ul class="bars" aria-label="{described}">{items}</ul>'


def _per_cent(length: float) -> str:
    return f"{max(min(length, 1.0) * 100, 0.4 if length > 0 else 0):.2f}"


def meter(length: float, described: str) -> str:
    """A thin bar: a part of all."""
    return (
        f'<span class="meter" role="img" aria-label="{described}">'
        f'<span style="width:{_per_cent(length)}%"></span></span>'
    )


def legend(series: Sequence[ColumnLayer]) -> str:
    """Which colour is what."""
    items = "".join(f'<span><i class="c{one.colour}"></i>{one.name}</span>' for one in series)
    return f'<p class="legend">{items}</p>'


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """The numbers behind a plot; so many columns from the left are texts."""
    return (
        f'<details><summary>{title}</summary><div class="wide" tabindex="0" role="region" aria-label="{title}">'
        f"{open_table(headings, rows, texts)}</div></details>"
    )


def open_table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """A table that is shown as it is."""
    head = "".join(f'<th scope="col"{_align(n, texts)}>{one}</th>' for n, one in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(f"<td{_align(n, texts)}>{one}</td>" for n, one in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class LaneMark(NamedTuple):
    """Something on a lane, from one place to another (0 to 1 of the width), with a colour and a title.

    A mark that goes on to another lane stands for something between both.
    """

    lane: int
    begin: float
    end: float
    colour: int
    title: str
    to: int | None = None


def lanes(
    names: Sequence[str], marks: Sequence[LaneMark], ticks: Sequence[tuple[float, str]], described: str
) -> str:
    """One lane below the other, with what was on each and when. What is short can be seen, too."""
    shapes = []
    for mark in marks:
        width = max((mark.end - mark.begin) * _WIDTH, 3.0)
        x, y = mark.begin * _WIDTH, mark.lane * _LANE
        if mark.to is None:
            rest = f'y="{y + 3}" width="{width:.2f}" height="{_LANE - 6}"'
        else:
            rest = f'y="{y + _LANE / 2}" width="{width:.2f}" height="{(mark.to - mark.lane) * _LANE}"'
        between = ' class="between"' if mark.to is not None else ""
        shapes.append(
            f'<g{between}><rect class="c{mark.colour}" x="{x:.2f}" {rest}/><title>{mark.title}</title></g>'
        )
    height = len(names) * _LANE
    tracks = "".join(
        f'<line x1="0" x2="{_WIDTH}" y1="{(n + 0.5) * _LANE}" y2="{(n + 0.5) * _LANE}"/>'
        for n in range(len(names))
    )
    uprights = "".join(
        f'<line x1="{at * _WIDTH:.2f}" x2="{at * _WIDTH:.2f}" y1="0" y2="{height}"/>' for at, _ in ticks
    )
    labels = "".join(f"<span>{name}</span>" for name in names)
    return (
        f'<div class="columns lanes" style="grid-template-rows:{height}px auto" role="img" '
        f'aria-label="{described}">'
        f'<div class="names" aria-hidden="true">{labels}</div>'
        f'<svg viewBox="0 0 {_WIDTH} {height}" preserveAspectRatio="none" aria-hidden="true">'
        f'<g class="grid">{tracks}{uprights}</g>{"".join(shapes)}</svg>{_ticks(ticks)}</div>'
    )


def _align(column: int, texts: int) -> str:
    return "" if column < texts else ' class="n"'
