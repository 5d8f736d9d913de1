"""The report: figures as one HTML file that needs nothing from elsewhere, for every width and both themes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palio.model.amounts import size_text, span_in_words
from palio.pages import frame, wording
from palio.pages.frame import Section, Tile
from palio.spark.stats import interest, sections
from palio.spark.stats.figures import Figures

TITLE = "What the data say"


def page(figures: Figures, *, title: str = TITLE) -> str:
    """The whole file."""
    tiles = [Tile(*one) for one in _headlines(figures)]
    return frame.page(title, _introduction(figures), tiles, _sections(figures), _footer(figures))


def _sections(figures: Figures) -> Iterator[Section]:
    traffic = sections.traffic(figures.traffic, has_subscriptions=figures.hits is not None)
    yield Section("traffic", "Traffic", traffic)
    yield Section("subscriptions", "Subscriptions", interest.subscriptions(figures))
    yield Section("savings", "Covering and merging", interest.savings(figures.savings))
    yield Section("selectivity", "Selectivity", interest.selectivities(figures))
    yield Section("attributes", "Attributes", sections.attributes(figures))


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


def _footer(figures: Figures) -> str:
    return (
        "<h3>How this was counted</h3>"
        "<p>Events, bins, hits and selectivities are counted exactly. A number of different values with ≈ is "
        "an estimate, right to about three per cent. Quantiles are those of a uniform sample of 4,096 values. "
        "A list of frequent values leaves out those whose counts are not certain enough to be ranked.</p>"
        f"<p>Made by <code>palio spark stats</code> on {wording.full_moment(round(figures.made))} (UTC). "
        "The page is one file; it loads nothing and sends nothing.</p>"
    )
