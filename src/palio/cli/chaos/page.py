"""The page of a run: what went wrong and when, how soon routes were whole, and what became of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from palio.cli.chaos.record import ChaosRecord, ChaosSecond, FaultSpan, NetworkChange, repair_rows
from palio.cli.program.terminal import plural
from palio.model.amounts import span_in_words
from palio.pages import frame, plots, wording
from palio.pages.frame import Section, Tile
from palio.pages.plots import ColumnLayer, LaneMark, Row

TITLE = "What a network of brokers went through"
# A colour for each kind of fault, and what it is called.
_COLOURS = {"kill": 4, "stop": 2, "restart": 1, "split": 5, "cut": 6}
_CALLED = {
    "kill": "killed",
    "stop": "stands still",
    "restart": "is restarted",
    "split": "split off",
    "cut": "a link is cut",
}
# Columns of a plot over time, at the most; and its ticks, about.
_MOST_COLUMNS = 240
_TICKS = 8
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_200)
_PROMISES = (
    "What was confirmed came to every durable subscription that wanted it.",
    "Nothing came that was not published, or that its filter does not select, or under two names.",
    "What came again to a durable subscription said so; to a transient one nothing came twice.",
    "Events of a publisher came in the order in which they were published.",
    "While nothing was wrong, nothing was lost for anybody.",
)


def write_page(record: ChaosRecord, place: Path) -> None:
    """Write it, one file."""
    place.write_text(page(record), encoding="utf-8")


def page(record: ChaosRecord) -> str:
    """The whole file."""
    return frame.page(TITLE, _introduction(record), _tiles(record), _sections(record), _footer(record))


def _introduction(record: ChaosRecord) -> str:
    fixed = record.overlay == "fixed"
    links = "have fixed links" if fixed else f"find their links by themselves ({record.overlay})"
    kinds = sorted({one.kind for one in record.troubles})
    return (
        f"<p>{plural(len(record.brokers), 'broker')} that {links}, with a heartbeat of {record.heartbeat:g} s; "
        f"{record.rate:g} events a second, for {span_in_words(record.seconds)}. "
        f"What went wrong: {', '.join(kinds) or 'nothing'}.</p>"
        f"<p>The same faults again: <code>{wording.text(record.command, 400)}</code></p>"
    )


def _tiles(record: ChaosRecord) -> Iterator[Tile]:
    counts, rows = record.counts, repair_rows(record.moments)
    if record.is_well:
        yield Tile("✓", "every promise kept", "", "good")
    else:
        yield Tile(wording.count(counts["violations"]), "promises broken", "", "bad")
    yield Tile(wording.count(len({one.number for one in record.troubles})), "faults", "drawn from the seed")
    yield Tile(
        wording.count(counts.get("confirmed", 0)),
        "events confirmed",
        f"{counts.get('delivered', 0):,} deliveries",
    )
    judged, in_time = sum(row.judged for row in rows), sum(row.in_time for row in rows)
    yield Tile(
        f"{in_time} / {judged}",
        "changes",
        "after which routes were whole in time",
        "good" if in_time == judged else "warn",
    )
    wanted = sum(one.got for one in record.transient)
    lost = counts.get("lost", 0)
    yield Tile(
        wording.count(lost),
        "lost",
        f"of {wanted + lost:,} for transient subscriptions",
        "warn" if lost else "good",
    )
    yield Tile(wording.count(counts.get("late", 0)), "late", f"by more than {record.late:g} s")
    yield Tile(
        wording.count(counts.get("doubled", 0)),
        "came twice",
        "to transient subscriptions",
        "bad" if counts.get("doubled") else "",
    )
    lag = max([one.longest_lag for one in record.durable], default=0.0)
    unexcused = max([one.unexcused_lag for one in record.durable], default=0.0)
    yield Tile(
        f"{lag:.1f} s", "longest lag", f"of a durable subscription; {unexcused:.1f} s while nobody was away"
    )


def _sections(record: ChaosRecord) -> Iterator[Section]:
    yield Section("time", "What happened", _over_time(record))
    yield Section("repairs", "How soon routes were whole", _repairs(record))
    yield Section("durable", "Durable subscriptions", _durable(record))
    yield Section("transient", "Transient subscriptions", _transient(record))
    yield Section("requests", "Requests", _requests(record))
    yield Section("promises", "Promises", _promises(record))


# Over time


def _over_time(record: ChaosRecord) -> str:
    end = max(record.seconds, float(len(record.by_second)), 1.0)
    ticks = list(_ticks(end))
    described = f"{plural(len(record.troubles), 'disturbance')} of {plural(len(record.brokers), 'broker')}"
    used = [kind for kind in _COLOURS if any(one.kind == kind for one in record.troubles)]
    legend = plots.legend([ColumnLayer(_CALLED[kind], (), _COLOURS[kind]) for kind in used])
    names = [wording.text(name, 12) for name in record.brokers]
    marks = [mark for trouble in record.troubles for mark in _marks(record.brokers, trouble, end)]
    step, parts = _parts(record.by_second, end)
    titles = [f"from {number * step} s: {_told(part)}" for number, part in enumerate(parts)]
    width = f"{step} s" if step > 1 else "second"
    lost = [
        ColumnLayer("lost", [one.lost for one in parts], 4),
        ColumnLayer("late", [one.late for one in parts], 2),
    ]
    lags = [
        ColumnLayer("nobody is away", [one.unexcused for one in parts], 4),
        ColumnLayer("waiting for brokers that are away", [one.lag - one.unexcused for one in parts], 5),
    ]
    return (
        "<p>Each broker has a lane: what was done to it, and for how long. Below, what was lost of the events "
        "that were published then, and how long durable subscriptions had been waiting for something.</p>"
        f'<div class="card together">{legend}{plots.lanes(names, marks, ticks, described)}'
        f"<h4>Events lost and late for transient subscriptions, each {width}</h4>"
        f"{plots.legend(lost)}{plots.columns(lost, ticks, titles, 'Events lost and late over time', low=True)}"
        f"<h4>The longest lag of a durable subscription, in seconds</h4>"
        f"{plots.legend(lags)}{plots.columns(lags, ticks, titles, 'The longest lag over time', low=True)}</div>"
    )


def _marks(brokers: Sequence[str], trouble: FaultSpan, end: float) -> Iterator[LaneMark]:
    begin, until, colour = trouble.begin / end, trouble.end / end, _COLOURS[trouble.kind]
    when = f"{trouble.begin:.1f} s to {trouble.end:.1f} s"
    for name in trouble.brokers:
        yield LaneMark(brokers.index(name), begin, until, colour, f"{name} {_CALLED[trouble.kind]}, {when}")
    for one, other in trouble.links:
        first, last = sorted((brokers.index(one), brokers.index(other)))
        title = f"the link of {one} and {other} is cut, {when}"
        yield LaneMark(first, begin, until, colour, title, last)
        for lane in (first, last):
            yield LaneMark(lane, begin, until, colour, title)


def _ticks(end: float) -> Iterator[tuple[float, str]]:
    step = next((one for one in _STEPS if end / one <= _TICKS), _STEPS[-1])
    for second in range(0, int(end) + 1, step):
        yield second / end, f"{second} s" if end < 180 else f"{second // 60}:{second % 60:02}"


def _parts(by_second: Sequence[ChaosSecond], end: float) -> tuple[int, list[ChaosSecond]]:
    """Seconds put together, so that there are not too many; all of them, up to the end."""
    step = max(1, -(-int(end) // _MOST_COLUMNS))
    parts = []
    for first in range(0, int(end), step):
        some = by_second[first : first + step]
        part = ChaosSecond(
            published=sum(one.published for one in some),
            late=sum(one.late for one in some),
            lost=sum(one.lost for one in some),
            lag=max([one.lag for one in some], default=0.0),
            unexcused=max([one.unexcused for one in some], default=0.0),
            behind=max([one.behind for one in some], default=0),
        )
        parts.append(part)
    return step, parts


def _told(part: ChaosSecond) -> str:
    return (
        f"{part.published:,} published, {part.lost:,} lost, {part.late:,} late; "
        f"{part.behind:,} behind, by {part.lag:.1f} s at the most"
    )


# What came of it


def _repairs(record: ChaosRecord) -> str:
    rows = repair_rows(record.moments)
    if not rows:
        return ""
    longest = max([row.longest or row.within for row in rows] + [0.1])
    bars = [
        Row(
            wording.text(row.group),
            _seconds(row.longest),
            (row.longest if row.longest is not None else longest) / longest,
            f"{row.in_time} of {row.judged} within {row.within:g} s",
        )
        for row in rows
        if row.judged
    ]
    headings = (
        "change",
        "within",
        "changes",
        "judged",
        "in time",
        "longest",
        "lost for others",
        "lost for its own",
    )
    numbers = [
        (
            wording.text(row.group), f"{row.within:g} s", f"{row.changes:,}", f"{row.judged:,}",
            f"{row.in_time:,}", _seconds(row.longest), f"{row.lost:,}", f"{row.lost_own:,}",
        )
        for row in rows
    ]  # fmt: skip
    every = [_moment(one) for one in record.moments]
    told = (
        "at",
        "change",
        "brokers",
        "routes whole after",
        "until the next",
        "lost for others",
        "lost for its own",
    )
    overlay = record.overlay_counts
    healed = (
        f" Brokers that ran to the end count {overlay['repairs']:,.0f} repairs of theirs, of "
        f"{overlay['repair_seconds'] / overlay['repairs']:.2f} s on average."
        if overlay.get("repairs")
        else ""
    )
    return (
        "<p>Routes are whole when nothing that is published afterwards is lost for a transient subscription "
        "whose own broker, and that of the publisher, were there. A change is judged if all was whole before, "
        f"nothing else was wrong, and there was time enough until the next one.{healed}</p>"
        '<div class="card"><h3>The longest, by what had changed</h3>'
        f'<div class="two">{plots.bars(bars, "Seconds")}</div>'
        f"{plots.table('The numbers', headings, numbers)}{plots.table('Every change', told, every, 3)}</div>"
    )


def _moment(one: NetworkChange) -> tuple[str, ...]:
    return (
        f"{one.at:.1f} s", wording.text(one.group), wording.text(", ".join(one.brokers)),
        _seconds(one.whole_after), f"{one.until - one.at:.1f} s", f"{one.lost:,}", f"{one.lost_own:,}",
    )  # fmt: skip


def _seconds(given: float | None) -> str:
    return "not whole" if given is None else f"{given:.1f} s"


def _durable(record: ChaosRecord) -> str:
    if not record.durable:
        return ""
    headings = ("name", "broker", "filter", "owed", "got", "again", "missing", "longest lag", "nobody away")
    rows = [
        (
            wording.text(one.name), wording.text(one.broker), f"<code>{wording.text(one.filter)}</code>",
            f"{one.owed:,}", f"{one.got:,}", f"{one.again:,}", f"{one.missing:,}", f"{one.longest_lag:.1f} s",
            f"{one.unexcused_lag:.1f} s",
        )
        for one in record.durable
    ]  # fmt: skip
    return (
        "<p>They are owed everything that is confirmed, whatever happens. What comes again says so. An event "
        "lies at the broker where it was published: while that one or their own is away, they wait. The last "
        "column is how long they waited while nobody was.</p>"
        f'<div class="card"><div class="wide">{plots.open_table(headings, rows, 3)}</div></div>'
    )


def _transient(record: ChaosRecord) -> str:
    headings = ("broker", "got", "late", "lost")
    rows = [
        (wording.text(one.broker), f"{one.got:,}", f"{one.late:,}", f"{one.lost:,}") for one in record.transient
    ]
    return (
        "<p>One at each broker, for everything. Counted as lost is what was published while its own broker "
        "and that of the publisher were there and could reach each other.</p>"
        f'<div class="card"><div class="wide">{plots.open_table(headings, rows)}</div></div>'
    )


def _requests(record: ChaosRecord) -> str:
    outcomes = {name: count for name, count in record.requests.items() if name not in ("asked", "replies")}
    asked = record.requests.get("asked", 0)
    if not asked:
        return ""
    rows = [
        Row(wording.text(name), f"{count:,}", count / asked)
        for name, count in sorted(outcomes.items(), key=lambda item: -item[1])
    ]
    return (
        f"<p>{asked:,} requests to everybody, with {record.requests.get('replies', 0):,} replies. Each ended "
        "in one of these ways: complete, or with the number of those who took it and have not replied, or with "
        "an error.</p>"
        f'<div class="card">{plots.bars(rows, "Requests", colour=3)}</div>'
    )


def _promises(record: ChaosRecord) -> str:
    if record.is_well:
        items = "".join(f'<li><span class="kept">✓</span> {one}</li>' for one in _PROMISES)
        return f'<div class="card"><ul class="promises">{items}</ul></div>'
    said = "".join(
        f'<li><span class="broken">✗</span> {wording.text(one, 300)}</li>' for one in record.violations
    )
    return (
        f"<p>{record.counts['violations']:,} broken. What is promised: {' '.join(_PROMISES)}</p>"
        f'<div class="card"><ul class="promises">{said}</ul></div>'
    )


def _footer(record: ChaosRecord) -> str:
    return (
        "<h3>How this was measured</h3>"
        "<p>Brokers are processes of one machine, clients and proxies between them one more. Times are those "
        "of events on their way from client to client, so they have in them how busy the machine was. When "
        "routes are whole is known as exactly as events are frequent.</p>"
        f"<p>Made by <code>palio chaos</code> on {wording.full_moment(round(record.made))} (UTC), seed "
        f"{record.seed}. The page is one file; it loads nothing and sends nothing.</p>"
    )
