"""The report: figures as one HTML file that needs nothing from elsewhere, for every width and both themes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources

from palio.model.amounts import size_text, span_in_words
from palio.spark.stats import interest, sections, wording
from palio.spark.stats.figures import Figures

TITLE = "What the data say"
# The page forbids itself everything: whatever an event says, nothing is run, loaded or sent.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(figures: Figures, *, title: str = TITLE) -> str:
    """The whole file."""
    style = resources.files("palio.spark.stats").joinpath("report.css").read_text(encoding="utf-8")
    parts = [one for one in _sections(figures) if one[2]]
    links = "".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in parts)
    bodies = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>{body}</section>'
        for name, heading, body in parts
    )
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{wording.plain(title, 200)}</title><style>{style}</style></head><body>"
        f'<header><p class="brand">Palio</p><h1>{wording.plain(title, 200)}</h1>{_introduction(figures)}'
        f'{_tiles(figures)}<nav aria-label="Sections">{links}</nav></header>'
        f"<main>{bodies}</main>{_footer(figures)}</body></html>\n"
    )


def _sections(figures: Figures) -> Iterator[tuple[str, str, str]]:
    yield "traffic", "Traffic", sections.traffic(figures.traffic, has_subscriptions=figures.hits is not None)
    yield "subscriptions", "Subscriptions", interest.subscriptions(figures)
    yield "savings", "Covering and merging", interest.savings(figures.savings)
    yield "selectivity", "Selectivity", interest.selectivities(figures)
    yield "attributes", "Attributes", sections.attributes(figures)


def _introduction(figures: Figures) -> str:
    traffic = figures.traffic
    lines = []
    if figures.source:
        chosen = ""
        if figures.filter:
            chosen = f", as far as <code>{wording.text(figures.filter, 200)}</code> selects them"
        lines.append(f"<p>Events of <code>{wording.text(figures.source, 200)}</code>{chosen}.</p>")
    if traffic.first is not None and traffic.last is not None:
        lines.append(
            f"<p>From {wording.full_moment(traffic.first)} to {wording.full_moment(traffic.last)} (UTC), "
            f"{span_in_words(traffic.last - traffic.first)}.</p>"
        )
        if traffic.untimed:
            untimed = " ".join(_counted("event", traffic.untimed))
            lines.append(f"<p>{untimed} without a time: in no plot over time.</p>")
    return "".join(lines)


def _tiles(figures: Figures) -> str:
    tiles = [_tile(*one) for one in _headlines(figures)]
    return f'<ul class="tiles" aria-label="In short">{"".join(tiles)}</ul>'


def _headlines(figures: Figures) -> Iterator[Sequence[str]]:
    traffic, hits, savings = figures.traffic, figures.hits, figures.savings
    amount = ""
    if traffic.bytes is not None:
        amount = f"{size_text(traffic.bytes)}, {size_text(traffic.bytes / traffic.events)} each"
    yield *_counted("event", traffic.events), amount
    if traffic.first is not None and traffic.last is not None and traffic.last > traffic.first:
        seconds = traffic.last - traffic.first
        for length, name in ((1.0, "second"), (60.0, "minute"), (3_600.0, "hour"), (86_400.0, "day")):
            rate = traffic.events * length / seconds
            if rate >= 10 or name == "day":
                yield wording.short(rate), f"events per {name}", "on average"
                break
    if hits is None:
        count, attributes = _counted("attribute", len({one.name for one in figures.attributes}))
        yield count + ("+" if figures.attributes_left_out else ""), attributes, "that some event has"
        if traffic.publishers_distinct:
            yield _counted("publisher", traffic.publishers_distinct)
        return
    refused = f"{wording.count(hits.unreadable)} more cannot be read" if hits.unreadable else ""
    yield *_counted("subscription", hits.subscriptions), refused
    wanted = wording.share(hits.wanted / traffic.events)
    yield wanted, "of events are wanted", "by at least one subscription", "good"
    silent = f"{wording.share(hits.never / hits.subscriptions)} of all subscriptions"
    yield wording.count(hits.never), "never match", silent, "warn" if hits.never else ""
    if savings is not None and savings.considered:
        kept = savings.merging / savings.considered
        yield wording.share(1 - kept), "fewer filters to tell", "by covering and merging"


def _counted(thing: str, count: int) -> tuple[str, str]:
    return wording.count(count), thing if count == 1 else f"{thing}s"


def _tile(number: str, what: str, more: str = "", tone: str = "") -> str:
    return (
        f"<li{f' class={chr(34)}{tone}{chr(34)}' if tone else ''}><b>{number}</b><span>{what}</span>"
        f"{f'<small>{more}</small>' if more else ''}</li>"
    )


def _footer(figures: Figures) -> str:
    return (
        '<footer><div class="card"><h3>How this was counted</h3>'
        "<p>Events, bins, hits and selectivities are counted exactly. A number of different values with ≈ is "
        "an estimate, right to about three per cent. Quantiles are those of a uniform sample of 4,096 values. "
        "A list of frequent values leaves out those whose counts are not certain enough to be ranked.</p>"
        f"<p>Made by <code>palio spark stats</code> on {wording.full_moment(round(figures.made))} (UTC). "
        "The page is one file; it loads nothing and sends nothing.</p></div></footer>"
    )
