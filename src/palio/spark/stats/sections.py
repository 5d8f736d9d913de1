"""The sections of the report, each from its part of the figures. What has nothing to say is an empty text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from palio.spark.stats import plots, wording
from palio.spark.stats.content import BOOL, NUMBER, STRING, TIME
from palio.spark.stats.figures import Attribute, Figures, Hits, Savings, Subscription, Traffic
from palio.spark.stats.plots import Row, Series

_SHOWN_VALUES = 8
_SHOWN_SUBSCRIPTIONS = 10
_SHOWN_CONSTRAINTS = 16
_MARKS = (0, 0.25, 0.5, 0.75, 1)


def traffic(traffic: Traffic, *, has_subscriptions: bool) -> str:
    """Events over time, told apart by what they are; and who publishes."""
    parts = [_over_time(traffic)]
    if has_subscriptions and traffic.moments:
        parts.append(_wanted_over_time(traffic))
    if len(traffic.publishers) > 1:
        parts.append(_publishers(traffic))
    shown = [one for one in parts if one]
    return "<p>What was published, and when.</p>" + "".join(shown) if shown else ""


def _over_time(traffic: Traffic) -> str:
    moments, step = traffic.moments, traffic.step
    if not moments or step is None:
        return ""
    series = [
        Series(wording.text(name, 40), [one.groups.get(name, 0) for one in moments], 1 + place)
        for place, name in enumerate(traffic.groups)
    ]
    others = [one.events - sum(one.groups.values()) for one in moments]
    if any(others) or not series:
        series.append(Series("others" if series else "events", others, 0 if series else 1))
    titles = [f"{wording.full_moment(one.time)}: {wording.count(one.events)} events" for one in moments]
    most = max(moments, key=lambda one: one.events)
    described = f"Events a {wording.step(step)}, at most {wording.count(most.events)} from {wording.full_moment(most.time)} on."
    by = f", by {wording.text(traffic.by, 40)}" if traffic.by and len(series) > 1 else ""
    headings = ["from (UTC)", "events", *[one.name for one in series if len(series) > 1]]
    rows = [
        [
            wording.full_moment(one.time),
            wording.count(one.events),
            *[wording.count(line.heights[place]) for line in series if len(series) > 1],
        ]
        for place, one in enumerate(moments)
    ]
    return (
        f'<div class="card"><h3>Events a {wording.step(step)}{by}</h3><p>{described}</p>'
        + (plots.legend(series) if len(series) > 1 else "")
        + plots.columns(series, _time_ticks(traffic), titles, described)
        + plots.table("The numbers", headings, rows)
        + "</div>"
    )


def _time_ticks(traffic: Traffic) -> list[tuple[float, str]]:
    start, step = traffic.moments[0].time, traffic.step or 1.0
    length = step * len(traffic.moments)
    return [(place, wording.moment(start + place * length, length)) for place in _MARKS[:-1]]


def _wanted_over_time(traffic: Traffic) -> str:
    moments = traffic.moments
    wanted = [one.wanted or 0 for one in moments]
    left = [one.events - (one.wanted or 0) for one in moments]
    series = [Series("wanted by somebody", wanted, 3), Series("wanted by nobody", left, 0)]
    titles = [
        f"{wording.full_moment(one.time)}: {wording.count(here)} of {wording.count(one.events)} wanted"
        for one, here in zip(moments, wanted, strict=True)
    ]
    total = max(1, traffic.events)
    described = (
        f"{wording.share(sum(left) / total)} of the events interest nobody, and need not leave their broker."
    )
    rows = [
        [wording.full_moment(one.time), wording.count(here), wording.count(one.events - here)]
        for one, here in zip(moments, wanted, strict=True)
    ]
    return (
        f'<div class="card"><h3>Wanted, and not</h3><p>{described}</p>{plots.legend(series)}'
        + plots.columns(series, _time_ticks(traffic), titles, described)
        + plots.table("The numbers", ["from (UTC)", "wanted", "not wanted"], rows)
        + "</div>"
    )


def _publishers(traffic: Traffic) -> str:
    most = traffic.publishers[0].events
    rows = [
        Row(
            wording.text(one.value),
            wording.count(one.events),
            one.events / most,
            wording.share(one.events / traffic.events),
        )
        for one in traffic.publishers
    ]
    return (
        f'<div class="card"><h3>Publishers</h3><p>{wording.count(traffic.publishers_distinct)} published something.</p>'
        f"{plots.bars(rows, 'Events by publisher')}</div>"
    )


# Attributes


def attributes(figures: Figures) -> str:
    """A card for each attribute: how often it is there, and what its values are."""
    if not figures.attributes:
        return ""
    left_out = figures.attributes_left_out
    note = f" {wording.count(left_out)} rarer ones are left out." if left_out else ""
    cards = "".join(_attribute(one, figures.traffic.events) for one in figures.attributes)
    rows = [
        [
            wording.text(one.name),
            one.family,
            wording.share(one.share),
            _distinct(one),
            wording.number(one.least) if one.family == NUMBER else "",
            wording.number(one.quantiles[50]) if one.family == NUMBER and len(one.quantiles) > 50 else "",
            wording.number(one.most) if one.family == NUMBER else "",
        ]
        for one in figures.attributes
    ]
    headings = ["attribute", "values", "present", "different", "least", "median", "greatest"]
    return (
        f"<p>What events say: how often each attribute is there, and how its values are distributed.{note}</p>"
        f'<div class="cards">{cards}</div><div class="card"><h3>All attributes</h3>'
        f"{plots.table('The numbers', headings, rows, texts=2)}</div>"
    )


def _distinct(one: Attribute) -> str:
    if one.family == "list":
        return ""
    return wording.count(one.distinct) if one.distinct_exact else f"≈ {wording.short(one.distinct)}"


def _attribute(one: Attribute, events: int) -> str:
    kinds = " and ".join(one.kinds) if len(one.kinds) > 1 else next(iter(one.kinds), one.family)
    there = wording.share(one.share)
    presence = (
        f'<div class="presence">{plots.meter(one.share, f"present in {there} of all events")}'
        f"<span>in {there} of events</span></div>"
    )
    return (
        f'<article class="card attribute"><div class="head"><h3>{wording.text(one.name)}</h3>'
        f'<span class="kind">{kinds}</span></div>{presence}{_distribution(one)}</article>'
    )


def _distribution(one: Attribute) -> str:
    if one.bins:
        return _histogram(one) + _number_facts(one)
    if one.family in (STRING, BOOL, NUMBER):
        return _values(one)
    if one.family == TIME and one.least is not None and one.most is not None:
        return _facts(
            [
                ("first", wording.full_moment(one.least)),
                ("last", wording.full_moment(one.most)),
                ("different", _distinct(one)),
            ]
        )
    return _facts(
        [("different", _distinct(one))] if one.family != "list" else [("values", wording.count(one.events))]
    )


def _histogram(one: Attribute) -> str:
    heights = [bin.events for bin in one.bins]
    titles = [
        f"{wording.number(bin.low)} to {wording.number(bin.high)}: {wording.count(bin.events)} events"
        for bin in one.bins
    ]
    number = len(one.bins)
    places = sorted({round(mark * number) for mark in (0, 0.33, 0.66, 1)})
    edges = [one.bins[0].low, *[bin.high for bin in one.bins]]
    ticks = [(place / number, wording.short(edges[place])) for place in places]
    peak = one.bins[heights.index(max(heights))]
    described = f"Histogram of {wording.plain(one.name)}: most frequent from {wording.number(peak.low)} to {wording.number(peak.high)}."
    rows = [[wording.number(bin.low), wording.number(bin.high), wording.count(bin.events)] for bin in one.bins]
    table = plots.table("The numbers", ["from", "to", "events"], rows, texts=0)
    return (
        plots.columns([Series("events", heights, 1)], ticks, titles, described, low=True)
        + (
            '<p class="quiet"><small>Widths of columns grow with the values.</small></p>'
            if one.logarithmic
            else ""
        )
        + table
    )


def _number_facts(one: Attribute) -> str:
    quantile = one.quantiles
    return _facts(
        [
            ("least", wording.number(one.least)),
            ("median", wording.number(quantile[50])),
            ("mean", wording.number(one.mean)),
            ("99 %", wording.number(quantile[99])),
            ("greatest", wording.number(one.most)),
            ("different", _distinct(one)),
        ]
    )


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{name}</dt><dd>{said}</dd></div>" for name, said in facts)
        + "</dl>"
    )


def _values(one: Attribute) -> str:
    certain = [value for value in one.values if value.events > 2 * one.values_missed]
    if not certain:
        return f'<p class="quiet">No value stands out: there are {_distinct(one)} different ones.</p>'
    shown = certain[:_SHOWN_VALUES]
    most = shown[0].events
    rows = [
        Row(wording.value(value.value), wording.share(value.events / one.events), value.events / most)
        for value in shown
    ]
    rest = one.distinct - len(shown)
    more = f"<p><small>{_distinct(one)} different values.</small></p>" if rest > 0 else ""
    headings = ["value", "events", "share"]
    table = plots.table(
        "The numbers",
        headings,
        [
            [wording.value(value.value), wording.count(value.events), wording.share(value.events / one.events)]
            for value in certain
        ],
    )
    return plots.bars(rows, f"Most frequent values of {wording.plain(one.name)}") + more + table


# Subscriptions


def subscriptions(figures: Figures) -> str:
    """How much subscriptions find, and which never do."""
    hits = figures.hits
    if hits is None:
        return ""
    events = max(1, figures.traffic.events)
    mean = hits.pairs / events
    return (
        f"<p>{wording.count(hits.subscriptions)} subscriptions, matched against every event: "
        f"{wording.count(hits.pairs)} matches, {wording.number(round(mean, 2))} an event on average.</p>"
        f'<div class="halves">{_reach(hits, events)}{_shares(hits)}</div>'
        f'<div class="halves">{_most(hits)}{_never(hits)}</div>'
    )


def _reach(hits: Hits, events: int) -> str:
    places = range(max(hits.by_reach, default=0) + 1)
    labels = ["0", *[_range(2 ** (place - 1), 2**place - 1) for place in places if place]]
    counts = [hits.by_reach.get(place, 0) for place in places]
    titles = [f"{label}: {wording.count(number)} events" for label, number in zip(labels, counts, strict=True)]
    ticks = _centres(labels)
    described = f"{wording.share(hits.by_reach.get(0, 0) / events)} of events reach nobody."
    rows = [
        [label, wording.count(n), wording.share(n / events)] for label, n in zip(labels, counts, strict=True)
    ]
    return (
        f'<div class="card"><h3>How many subscriptions an event reaches</h3><p>{described}</p>'
        + plots.columns([Series("events", counts, 3)], ticks, titles, described)
        + plots.table("The numbers", ["subscriptions", "events", "share"], rows)
        + "</div>"
    )


def _centres(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Labels below the middle of columns, so many as there is room for."""
    every = math.ceil(len(labels) / 6)
    return [((place + 0.5) / len(labels), label) for place, label in enumerate(labels) if place % every == 0]


def _range(low: int, high: int) -> str:
    return wording.short(low) if low == high else f"{wording.short(low)}–{wording.short(high)}"


def _shares(hits: Hits) -> str:
    steps = range(max([*hits.by_share, 0]) + 1)
    labels = [_one_in(step) for step in steps]
    counts = [hits.by_share.get(step, 0) for step in steps]
    if hits.never:
        labels.append("never")
        counts.append(hits.never)
    titles = [
        f"{label}: {wording.count(number)} subscriptions" for label, number in zip(labels, counts, strict=True)
    ]
    series = [Series("subscriptions", [*counts[: len(steps)], *[0] * (len(counts) - len(steps))], 1)]
    if hits.never:
        series.append(Series("never", [*[0] * len(steps), hits.never], 2))
    described = f"{wording.count(hits.never)} of {wording.count(hits.subscriptions)} subscriptions never match."
    rows = [[label, wording.count(number)] for label, number in zip(labels, counts, strict=True)]
    return (
        f'<div class="card"><h3>How often subscriptions match</h3><p>{described}</p>'
        + plots.columns(series, _centres(labels), titles, described)
        + plots.table("The numbers", ["one event in", "subscriptions"], rows)
        + "</div>"
    )


def _one_in(step: int) -> str:
    return f"1 in {wording.short(10**step)}+" if step else "1 in < 10"


def _most(hits: Hits) -> str:
    if not hits.most:
        return ""
    most = hits.most[0].events
    rows = [
        Row(f"<code>{wording.text(one.filter, 120)}</code>", wording.share(one.share), one.events / most)
        for one in hits.most[:_SHOWN_SUBSCRIPTIONS]
    ]
    return (
        '<div class="card"><h3>Those that match most</h3><p>By the share of events.</p>'
        + plots.bars(rows, "Subscriptions by the share of events that they match")
        + _subscription_table(hits.most)
        + "</div>"
    )


def _subscription_table(some: Sequence[Subscription]) -> str:
    rows = [
        [
            wording.text(one.id, 60),
            f"<code>{wording.text(one.filter, 300)}</code>",
            wording.count(one.events),
            wording.share(one.share),
        ]
        for one in some
    ]
    return plots.table("The numbers", ["subscription", "filter", "events", "share"], rows, texts=2)


def _never(hits: Hits) -> str:
    if not hits.never:
        return '<div class="card"><h3>Those that never match</h3><p>There are none: each found something.</p></div>'
    items = "".join(
        f"<li><code>{wording.text(one.filter, 160)}</code><small>{wording.text(one.id, 60)}</small></li>"
        for one in hits.never_some[:_SHOWN_SUBSCRIPTIONS]
    )
    more = hits.never - min(len(hits.never_some), _SHOWN_SUBSCRIPTIONS)
    tail = f"<p><small>and {wording.count(more)} more</small></p>" if more > 0 else ""
    return (
        f'<div class="card"><h3>Those that never match</h3><p>{wording.count(hits.never)} found nothing in all this time: '
        f'a typing error, or something that has gone.</p><ul class="filters">{items}</ul>{tail}</div>'
    )


def savings(found: Savings | None) -> str:
    """How many filters brokers have to tell each other of."""
    if found is None or not found.considered:
        return ""
    steps = [
        ("Subscriptions", found.considered, "what clients asked for"),
        ("Different filters", found.distinct, "equal ones are told once"),
        ("With covering", found.covering, "those that no other one covers"),
        ("With merging", found.merging, "merged where that is exact"),
    ]
    rows = [
        Row(
            f"{name} <small>{why}</small>",
            wording.count(number),
            number / found.considered,
            wording.share(number / found.considered),
        )
        for name, number, why in steps
    ]
    sample = (
        f" This is a sample of {wording.count(found.considered)} of {wording.count(found.subscriptions)} subscriptions: "
        "of all of them, more would be covered."
        if found.considered < found.subscriptions
        else ""
    )
    table = plots.table(
        "The numbers",
        ["step", "filters", "share"],
        [[name, wording.count(n), wording.share(n / found.considered)] for name, n, _ in steps],
    )
    return (
        "<p>A broker tells its neighbours what its clients want. What another filter covers need not be told, and two "
        f"that differ in one attribute can be told as one.{sample}</p>"
        f'<div class="card funnel">{plots.bars(rows, "Filters that a broker has to tell", colour=5)}{table}</div>'
    )


def selectivities(figures: Figures) -> str:
    """What constraints let through."""
    found = figures.selectivities
    if not found:
        return ""
    shown = found[:_SHOWN_CONSTRAINTS]
    rows = [
        Row(
            f"<code>{wording.text(one.text, 120)}</code>",
            wording.share(one.share),
            one.share,
            f"in {wording.count(one.subscriptions)}",
        )
        for one in shown
    ]
    table = plots.table(
        "The numbers",
        ["attribute", "operator", "constraint", "subscriptions", "events", "share"],
        [
            [
                wording.text(one.attribute),
                wording.text(one.operator),
                f"<code>{wording.text(one.text, 200)}</code>",
                wording.count(one.subscriptions),
                wording.count(one.events),
                wording.share(one.share),
            ]
            for one in found
        ],
        texts=3,
    )
    left_out = figures.constraints - len(found)
    note = f" {wording.count(left_out)} rarer ones were not measured." if left_out > 0 else ""
    return (
        "<p>What share of all events each constraint lets through, the most used ones first. Few is good: an index "
        f"that knows asks for these first.{note}</p>"
        f'<div class="card">{plots.bars(rows, "Share of events by constraint", colour=7)}{table}</div>'
    )
