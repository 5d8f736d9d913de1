"""The sections of the report about events: traffic and attributes. What has nothing to say is an empty text."""

from __future__ import annotations

from collections.abc import Sequence

from palio.pages import plots, wording
from palio.pages.plots import ColumnLayer, Row
from palio.spark.stats.axes import bin_ticks, time_ticks
from palio.spark.stats.content import BOOL, LIST, NUMBER, STRING, TIME
from palio.spark.stats.figures import Attribute, Figures, Traffic

_SHOWN_VALUES = 8


def traffic(traffic: Traffic, *, has_subscriptions: bool) -> str:
    """Events over time, told apart by what they are and by whether somebody wanted them; and who publishes."""
    parts = []
    if traffic.moments and traffic.groups:
        parts.append(_by_group(traffic))
    if traffic.moments and has_subscriptions:
        parts.append(_by_interest(traffic))
    if traffic.moments and not parts:
        everything = ColumnLayer("events", [one.events for one in traffic.moments])
        parts.append(_over_time(traffic, "", [everything], ""))
    if len(traffic.publishers) > 1:
        parts.append(_publishers(traffic))
    return "<p>What was published, and when.</p>" + "".join(parts) if parts else ""


def _by_group(traffic: Traffic) -> str:
    moments = traffic.moments
    series = [
        ColumnLayer(wording.text(name, 40), [one.groups.get(name, 0) for one in moments], 1 + place)
        for place, name in enumerate(traffic.groups)
    ]
    others = [one.events - sum(one.groups.values()) for one in moments]
    if any(others):
        series.append(ColumnLayer("others", others, 0))
    return _over_time(traffic, f", by {wording.text(traffic.by, 40)}", series, "")


def _by_interest(traffic: Traffic) -> str:
    wanted = [one.wanted or 0 for one in traffic.moments]
    left = [one.events - (one.wanted or 0) for one in traffic.moments]
    unwanted = wording.share(sum(left) / max(1, traffic.events))
    told = f"{unwanted} of the events interest nobody, and need not leave the broker where they were published."
    series = [ColumnLayer("wanted by somebody", wanted, 3), ColumnLayer("wanted by nobody", left, 0)]
    return _over_time(traffic, ", wanted and not", series, told)


def _over_time(traffic: Traffic, by: str, series: Sequence[ColumnLayer], told: str) -> str:
    moments, step = traffic.moments, wording.step(traffic.step or 1.0)
    most = max(moments, key=lambda one: one.events)
    described = f"At most {wording.count(most.events)} per {step}, from {wording.full_moment(most.time)} on."
    titles = [f"{wording.full_moment(one.time)}: {wording.count(one.events)} events" for one in moments]
    several = len(series) > 1
    headings = ["from (UTC)", "events", *(one.name for one in series if several)]
    rows = []
    for place, one in enumerate(moments):
        counts = [one.events, *(line.heights[place] for line in series if several)]
        rows.append([wording.full_moment(one.time), *map(wording.count, counts)])
    start = moments[0].time
    ticks = time_ticks(start, start + (traffic.step or 1.0) * len(moments))
    return (
        f'<div class="card"><h3>Events per {step}{by}</h3><p>{told or described}</p>'
        + (plots.legend(series) if several else "")
        + plots.columns(series, ticks, titles, told or described)
        + plots.table("The numbers", headings, rows)
        + "</div>"
    )


def _publishers(traffic: Traffic) -> str:
    most = traffic.publishers[0].events
    known = [(wording.text(one.value), one.events) for one in traffic.publishers]
    rows = [Row(name, wording.count(n), n / most, wording.share(n / traffic.events)) for name, n in known]
    return (
        f'<div class="card"><h3>Publishers</h3><p>{wording.count(traffic.publishers_distinct)} published '
        f'something.</p><div class="two">{plots.bars(rows, "Events by publisher")}</div></div>'
    )


def attributes(figures: Figures) -> str:
    """A card for each attribute: how often it is there, and what its values are."""
    if not figures.attributes:
        return ""
    left_out = figures.attributes_left_out
    note = f" {wording.count(left_out)} rarer ones are left out." if left_out else ""
    cards = "".join(_attribute(one) for one in figures.attributes)
    rows = [
        [
            wording.text(one.name),
            one.family,
            wording.share(one.share),
            _distinct(one),
            *([wording.number(one.least), wording.number(_quantile(one, 50)), wording.number(one.most)]
              if one.family == NUMBER else ["", "", ""]),
        ]
        for one in figures.attributes
    ]  # fmt: skip
    headings = ["attribute", "values", "present", "different", "least", "median", "greatest"]
    return (
        f"<p>What events say: how often each attribute is there, and how its values are distributed.{note}</p>"
        f'<div class="cards">{cards}</div><div class="card"><h3>All attributes</h3>'
        f"{plots.table('The numbers', headings, rows, texts=2)}</div>"
    )


def _distinct(one: Attribute) -> str:
    if one.family == LIST:
        return ""
    return wording.count(one.distinct) if one.distinct_exact else f"≈ {wording.short(one.distinct)}"


def _quantile(one: Attribute, per_cent: int) -> float | None:
    """A quantile; there are those of every hundredth, or none."""
    return one.quantiles[per_cent] if len(one.quantiles) > per_cent else None


def _attribute(one: Attribute) -> str:
    kinds = " and ".join(sorted(one.kinds)) or one.family
    if one.logarithmic:
        kinds += ", log scale"
    there = wording.share(one.share)
    return (
        f'<article class="card attribute"><div class="head"><h3>{wording.text(one.name)}</h3>'
        f'<span class="kind">{kinds}</span></div>'
        f'<div class="presence">{plots.meter(one.share, f"present in {there} of all events")}'
        f"<span>in {there} of events</span></div>{_distribution(one)}</article>"
    )


def _distribution(one: Attribute) -> str:
    if one.bins:
        return _histogram(one)
    if one.family in (STRING, BOOL, NUMBER):
        return _values(one)
    facts = [] if one.family == LIST else [("different", _distinct(one))]
    if one.family == TIME and one.least is not None and one.most is not None:
        facts = [("first", wording.full_moment(one.least)), ("last", wording.full_moment(one.most)), *facts]
    return _facts(facts)


def _histogram(one: Attribute) -> str:
    bins = one.bins
    spans = [(wording.number(bin.low), wording.number(bin.high), wording.count(bin.events)) for bin in bins]
    titles = [f"{low} to {high}: {events} events" for low, high, events in spans]
    low, high, _ = spans[max(range(len(bins)), key=lambda place: bins[place].events)]
    described = f"Histogram of {wording.plain(one.name)}: most of them from {low} to {high}."
    series = [ColumnLayer("events", [bin.events for bin in bins])]
    ticks = bin_ticks(bins, logarithmic=one.logarithmic)
    numbers = [
        *(("least", one.least), ("median", _quantile(one, 50)), ("mean", one.mean)),
        *(("99 %", _quantile(one, 99)), ("greatest", one.most)),
    ]
    facts = [*((name, wording.fitting(number)) for name, number in numbers), ("different", _distinct(one))]
    table = plots.table("The numbers", ["from", "to", "events"], spans, texts=0)
    return plots.columns(series, ticks, titles, described, low=True) + _facts(facts) + table


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{name}</dt><dd>{said}</dd></div>" for name, said in facts)
    return f'<dl class="facts">{items}</dl>'


def _values(one: Attribute) -> str:
    certain = [value for value in one.values if value.events > 2 * one.values_missed]
    if not certain:
        return f'<p class="quiet">No value stands out among {_distinct(one)} different ones.</p>'
    most = certain[0].events
    listed = [(wording.value(value.value), value.events) for value in certain]
    rows = [Row(value, wording.share(n / one.events), n / most) for value, n in listed[:_SHOWN_VALUES]]
    more = f"<p><small>{_distinct(one)} different values.</small></p>" if one.distinct > len(rows) else ""
    numbers = [[value, wording.count(n), wording.share(n / one.events)] for value, n in listed]
    bars = plots.bars(rows, f"Most frequent values of {wording.plain(one.name)}")
    return bars + more + plots.table("The numbers", ["value", "events", "share"], numbers)
