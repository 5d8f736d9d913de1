"""The sections of the report about subscriptions: what they find, what could be saved, what is selective."""

from __future__ import annotations

import math
from collections.abc import Sequence

from palio.pages import plots, wording
from palio.pages.plots import ColumnLayer, Row
from palio.spark.stats.figures import Figures, Hits, Savings, SubscriptionHits

_SHOWN_SUBSCRIPTIONS = 10
_SHOWN_CONSTRAINTS = 20


def subscriptions(figures: Figures) -> str:
    """How much subscriptions find, and which never do."""
    hits = figures.hits
    if hits is None:
        return ""
    events = max(1, figures.traffic.events)
    return (
        f"<p>{wording.count(hits.subscriptions)} subscriptions, matched against every event: "
        f"{wording.count(hits.pairs)} matches, {wording.number(round(hits.pairs / events, 2))} per event.</p>"
        f'<div class="halves">{_reach(hits, events)}{_shares(hits)}</div>'
        f'<div class="halves">{_most(hits)}{_never(hits)}</div>'
    )


def _reach(hits: Hits, events: int) -> str:
    places = range(max(hits.by_reach, default=0) + 1)
    labels = ["0", *(_range(2 ** (place - 1), 2**place - 1) for place in places if place)]
    counts = [hits.by_reach.get(place, 0) for place in places]
    described = f"{wording.share(hits.by_reach.get(0, 0) / events)} of events reach nobody."
    known = zip(labels, counts, strict=True)
    rows = [[label, wording.count(number), wording.share(number / events)] for label, number in known]
    nobody = ColumnLayer("nobody", [counts[0], *(0 for _ in counts[1:])], 0)
    series = [nobody, ColumnLayer("somebody", [0, *counts[1:]], 3)]
    return (
        f'<div class="card"><h3>How many subscriptions an event reaches</h3><p>{described}</p>'
        + plots.columns(series, _centres(labels), _titles(labels, counts, "events"), described)
        + plots.table("The numbers", ["subscriptions", "events", "share"], rows)
        + "</div>"
    )


def _titles(labels: Sequence[str], counts: Sequence[int], what: str) -> list[str]:
    return [f"{label}: {wording.count(number)} {what}" for label, number in zip(labels, counts, strict=True)]


def _centres(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Labels below the middle of columns, so many as there is room for."""
    every = math.ceil(len(labels) / 6)
    return [((place + 0.5) / len(labels), label) for place, label in enumerate(labels) if place % every == 0]


def _range(low: int, high: int) -> str:
    return wording.short(low) if low == high else f"{wording.short(low)}–{wording.short(high)}"


def _shares(hits: Hits) -> str:
    steps = range(max([*hits.by_share, 0]) + 1)
    labels = [*(_step(step) for step in steps), "never"]
    counts = [*(hits.by_share.get(step, 0) for step in steps), hits.never]
    nothing = [0] * len(steps)
    series = [ColumnLayer("some", [*counts[:-1], 0], 1), ColumnLayer("never", [*nothing, hits.never], 2)]
    described = f"{wording.count(hits.never)} of {wording.count(hits.subscriptions)} never match."
    rows = [[label, wording.count(number)] for label, number in zip(labels, counts, strict=True)]
    return (
        f'<div class="card"><h3>How large a share of events subscriptions match</h3><p>{described}</p>'
        + plots.columns(series, _centres(labels), _titles(labels, counts, "subscriptions"), described)
        + plots.table("The numbers", ["share of events", "subscriptions"], rows)
        + "</div>"
    )


def _step(step: int) -> str:
    """A step of ten, as the share at its lower end."""
    return f"> {10.0 ** (1 - step):.6g} %" if step < 7 else f"> 10^{1 - step} %"


def _most(hits: Hits) -> str:
    if not hits.most:
        return ""
    most = hits.most[0].events
    rows = [
        Row(f"<code>{wording.text(one.filter, 120)}</code>", wording.share(one.share), one.events / most)
        for one in hits.most[:_SHOWN_SUBSCRIPTIONS]
    ]
    return (
        '<div class="card"><h3>Those that match most</h3><p>By the share of events that they match.</p>'
        + plots.bars(rows, "Subscriptions by the share of events that they match")
        + _listed(hits.most, "The numbers")
        + "</div>"
    )


def _listed(some: Sequence[SubscriptionHits], title: str) -> str:
    rows = [
        [
            wording.text(one.id, 60),
            f"<code>{wording.text(one.filter, 300)}</code>",
            wording.count(one.events),
            wording.share(one.share),
        ]
        for one in some
    ]
    return plots.table(title, ["subscription", "filter", "events", "share"], rows, texts=2)


def _never(hits: Hits) -> str:
    if not hits.never:
        none = "There are none: every subscription has found something."
        return f'<div class="card"><h3>Those that never match</h3><p>{none}</p></div>'
    items = "".join(
        f"<li><code>{wording.text(one.filter, 160)}</code><small>{wording.text(one.id, 60)}</small></li>"
        for one in hits.never_some[:_SHOWN_SUBSCRIPTIONS]
    )
    title = f"{wording.count(len(hits.never_some))} of {wording.count(hits.never)}"
    more = len(hits.never_some) > _SHOWN_SUBSCRIPTIONS
    return (
        f'<div class="card"><h3>Those that never match</h3><p>{wording.count(hits.never)} have found nothing: '
        f'a slip of the pen, or something that has gone.</p><ul class="filters">{items}</ul>'
        f"{_listed(hits.never_some, title) if more else ''}</div>"
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
    parts = [(name, wording.count(n), n / found.considered, why) for name, n, why in steps]
    notes = [(f"{name} <small>{why}</small>", shown, part) for name, shown, part, why in parts]
    rows = [Row(label, shown, part, wording.share(part)) for label, shown, part in notes]
    numbers = [[name, shown, wording.share(part)] for name, shown, part, _ in parts]
    sample = ""
    if found.considered < found.subscriptions:
        of_all = f"{wording.count(found.considered)} of {wording.count(found.subscriptions)} subscriptions"
        sample = f" This is a sample: {of_all}. Of all of them, more would be covered."
    return (
        "<p>A broker tells its neighbours what its clients want. What another filter covers need not be told, "
        f"and two that differ in one attribute can be told as one.{sample}</p>"
        f'<div class="card funnel">{plots.bars(rows, "Filters that a broker has to tell of", colour=5)}'
        f"{plots.table('The numbers', ['step', 'filters', 'share'], numbers)}</div>"
    )


def selectivities(figures: Figures) -> str:
    """What constraints let through."""
    found = figures.selectivities
    if not found:
        return ""
    rows = [
        Row(
            f"<code>{wording.text(one.text, 120)}</code>",
            wording.share(one.share),
            one.share,
            f"in {wording.count(one.subscriptions)}",
        )
        for one in found[:_SHOWN_CONSTRAINTS]
    ]
    numbers = [
        [
            wording.text(one.attribute),
            wording.text(one.operator),
            f"<code>{wording.text(one.text, 200)}</code>",
            wording.count(one.subscriptions),
            wording.count(one.events),
            wording.share(one.share),
        ]
        for one in found
    ]
    headings = ["attribute", "operator", "constraint", "subscriptions", "events", "share"]
    left_out = figures.constraints - len(found)
    note = f" {wording.count(left_out)} rarer ones were not measured." if left_out > 0 else ""
    return (
        "<p>The share of all events that each constraint lets through; those that most subscriptions have come "
        f"first. An index that knows these shares looks for the rarest first.{note}</p>"
        f'<div class="card"><div class="two">{plots.bars(rows, "Events by constraint", colour=7)}</div>'
        f"{plots.table('The numbers', headings, numbers, texts=3)}</div>"
    )
