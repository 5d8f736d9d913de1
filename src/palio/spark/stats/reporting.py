"""What becomes of figures: a page, JSON, hints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from palio.matching.hints import AttributeHints, Hints
from palio.spark.stats.constraints import equal_to
from palio.spark.stats.content import NUMBER
from palio.spark.stats.figures import Attribute, Figures, Value
from palio.spark.stats.gathering import gather
from palio.spark.stats.page import TITLE, page


def report(
    events: DataFrame,
    path: str | Path,
    subscriptions: DataFrame | None = None,
    *,
    title: str = TITLE,
    **options: Any,
) -> Figures:
    """Gather the figures of events, write the report of them, one HTML file, and return them.

    Options are those of `gather`, and so are the errors.
    """
    figures = gather(events, subscriptions, **options)
    write_report(figures, path, title=title)
    return figures


def write_report(figures: Figures, path: str | Path, *, title: str = TITLE) -> Path:
    """Write the report of figures that there are already; returns where it is."""
    return _written(path, page(figures, title=title).encode())


def write_numbers(figures: Figures, path: str | Path) -> Path:
    """Write all figures as JSON."""
    return _written(path, msgspec.json.format(msgspec.json.encode(figures), indent=1))


def _written(path: str | Path, content: bytes) -> Path:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def hints(figures: Figures) -> Hints:
    """What an index can learn from figures: how frequent attributes are, and their values.

    Among the values are those that subscriptions ask for, with their exact shares.
    """
    events = max(1, figures.traffic.events)
    by_name: dict[str, list[Attribute]] = {}
    for one in figures.attributes:
        by_name.setdefault(one.name, []).append(one)
    asked: dict[str, dict[Value, float]] = {}
    for constraint in figures.selectivities:
        wanted = equal_to(constraint.text)
        if wanted is not None:
            asked.setdefault(wanted[0], {})[wanted[1]] = constraint.share
    rarest = min((one.share for one in figures.attributes), default=0.0)
    return Hints(
        attributes={
            name: _attribute_hints(several, asked.get(name, {}), events) for name, several in by_name.items()
        },
        events=figures.traffic.events,
        others=min(1.0, rarest) if figures.attributes_left_out else 0.0,
    )


def write_hints(figures: Figures, path: str | Path) -> Path:
    """Write hints for `MatchIndex` and for the setting `hints` of a broker."""
    return _written(path, hints(figures).encode())


def _attribute_hints(several: list[Attribute], asked: dict[Value, float], events: int) -> AttributeHints:
    shares: dict[Value, float] = {}
    for one in several:
        for value in one.values:
            if value.events > one.values_missed:  # else nothing is certain
                shares[value.value] = min(1.0, value.events / events)
    shares |= asked
    kinds = {kind: count / events for one in several for kind, count in one.kinds.items()}
    numbers = next((one for one in several if one.family == NUMBER), None)
    return AttributeHints(
        present=min(1.0, sum(one.share for one in several)),
        kinds={kind: min(1.0, share) for kind, share in kinds.items()},
        distinct=sum(one.distinct for one in several),
        values=sorted(shares.items(), key=lambda item: (-item[1], str(item[0]))),
        quantiles=[] if numbers is None else numbers.quantiles,
    )
