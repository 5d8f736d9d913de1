"""What the data say, compared with plain counting."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

import palio
import palio.spark
from palio.matching.hints import Hints
from palio.spark.errors import MissingColumn, NothingThere, WrongOption
from palio.spark.stats import gather, hints, report, write_report
from palio.spark.stats.figures import Figures
from palio.spark.stats.hits import hit_rates, reached
from palio.spark.stats.preparing import prepared
from tests.spark.filling import MIDNIGHT, fill

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = pytest.mark.usefixtures("several_parts")

DRAW = random.Random(9)
EVENTS = [
    {
        "class": DRAW.choice(("quote", "trade", "trade")),
        "symbol": f"S{DRAW.randrange(30)}",
        "price": round(DRAW.lognormvariate(3, 1.5), 1),
        **({"alarm": DRAW.randrange(4)} if DRAW.random() < 0.05 else {}),
        **({"halted": DRAW.random() < 0.5} if number % 3 else {}),
    }
    for number in range(1_200)
]
SUBSCRIPTIONS = [
    *((number, f'symbol = "S{number % 35}" and price > {number}') for number in range(60)),
    *((100 + number, f"alarm >= {number}") for number in range(3)),
    (200, 'class = "bond"'),
    (201, "price >"),
    (202, "not halted"),
]
READABLE = [(id, palio.Filter.parse(text)) for id, text in SUBSCRIPTIONS if id != 201]


@pytest.fixture(scope="module")
def subscriptions(spark):
    return spark.createDataFrame(SUBSCRIPTIONS, "subscription_id int, filter string")


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    place = f"sqlite:///{tmp_path_factory.mktemp('stats')}/palio.db"
    fill(place, EVENTS)
    return place


@pytest.fixture(scope="module")
def figures(spark, url, subscriptions) -> Figures:
    return gather(palio.spark.read(spark, url), subscriptions, source="a journal")


@pytest.fixture(scope="module")
def matches() -> list[list[int]]:
    content = [palio.Notification(event) for event in EVENTS]
    return [[id for id, filter in READABLE if filter.matches(event)] for event in content]


def test_traffic(figures):
    traffic = figures.traffic
    assert (traffic.events, traffic.unreadable, traffic.by) == (len(EVENTS), 0, "class")
    assert traffic.bytes == sum(len(palio.Notification(event).encode()) for event in EVENTS)
    assert (traffic.first, traffic.last) == (MIDNIGHT, MIDNIGHT + len(EVENTS) - 1)
    assert traffic.step == 15.0
    for number, moment in enumerate(traffic.moments):
        here = EVENTS[number * 15 : number * 15 + 15]
        assert moment.time == MIDNIGHT + 15 * number
        assert moment.events == len(here)
        assert moment.groups == dict(Counter(event["class"] for event in here))
    assert [(one.value, one.events) for one in traffic.publishers] == [("publisher", len(EVENTS))]


def test_attributes(figures):
    found = {one.name: one for one in figures.attributes}
    assert found.keys() == {"class", "symbol", "price", "alarm", "halted"}
    for name, one in found.items():
        values = [event[name] for event in EVENTS if name in event]
        assert (one.events, one.distinct, one.distinct_exact) == (len(values), len(set(values)), True)
        assert one.share == len(values) / len(EVENTS)
        counted = Counter(values)
        assert {value.value: value.events for value in one.values}.items() <= counted.items()
        if one.bins:
            assert sum(bin.events for bin in one.bins) == len(values)
            for bin in one.bins[:-1]:
                assert bin.events == sum(bin.low <= value < bin.high for value in values)
    price = found["price"]
    assert (price.family, price.kinds, price.logarithmic) == ("number", {"float": len(EVENTS)}, True)
    assert price.least == min(event["price"] for event in EVENTS)
    assert price.quantiles[50] == sorted(event["price"] for event in EVENTS)[len(EVENTS) // 2 - 1]
    assert not found["alarm"].bins  # four values are shown one by one


def test_hits_are_those_of_asking_every_filter(figures, matches):
    hits = figures.hits
    counted = Counter(id for found in matches for id in found)
    assert (hits.subscriptions, hits.unreadable) == (len(READABLE), 1)
    assert hits.pairs == counted.total()
    assert hits.wanted == sum(bool(found) for found in matches)
    assert hits.never == len(READABLE) - len(counted)
    assert {one.id for one in hits.never_some} == {str(id) for id, _ in READABLE if id not in counted}
    wanted = sorted(counted.items(), key=lambda item: (-item[1], str(item[0])))[:50]
    assert [(int(one.id), one.events) for one in hits.most] == wanted
    assert hits.by_reach == dict(Counter(len(found).bit_length() for found in matches))
    assert sum(hits.by_share.values()) == len(counted)
    in_steps = [moment.wanted for moment in figures.traffic.moments]
    assert in_steps == [sum(map(bool, matches[start : start + 15])) for start in range(0, len(matches), 15)]


def test_selectivities_are_exact(figures):
    assert figures.constraints == len(figures.selectivities)
    texts = {one.text for one in figures.selectivities}
    assert {'symbol = "S3"', "price > 59", "alarm >= 2", "halted = true"} <= texts
    content = [palio.Notification(event) for event in EVENTS]
    for one in figures.selectivities:
        filter = palio.Filter.parse(one.text)
        assert one.events == sum(filter.matches(event) for event in content), one.text
    uses = {one.text: one.subscriptions for one in figures.selectivities}
    assert (uses['symbol = "S3"'], uses['symbol = "S30"']) == (2, 1)


def test_savings(figures):
    savings = figures.savings
    assert (savings.subscriptions, savings.considered) == (len(READABLE), len(READABLE))
    assert savings.considered >= savings.distinct > savings.covering >= savings.merging > 0


def test_figures_survive_json(figures):
    assert msgspec.json.decode(msgspec.json.encode(figures), type=Figures) == figures


def test_hints_are_what_was_counted_and_teach_an_index(figures):
    told = Hints.decode(hints(figures).encode())
    assert told.events == len(EVENTS)
    assert told.attributes["alarm"].present == figures.attributes[-1].share
    symbols = Counter(event["symbol"] for event in EVENTS)
    assert told.value("symbol", "S3") == symbols["S3"] / len(EVENTS)
    assert told.value("symbol", "S34") == 0.0  # a subscription asks for it, and nobody has it
    assert told.value("class", "bond") == 0.0
    index, truth = palio.MatchIndex(READABLE, hints=told), palio.MatchIndex(READABLE)
    for event in EVENTS[:200]:
        notification = palio.Notification(event)
        assert sorted(index.match(notification)) == sorted(truth.match(notification))


def test_the_report_is_written(figures, tmp_path):
    place = write_report(figures, tmp_path / "new" / "report.html", title="A & B")
    text = place.read_text()
    assert "<title>A &amp; B</title>" in text
    for heading in ("Traffic", "Subscriptions", "Covering and merging", "Selectivity", "Attributes"):
        assert f">{heading}</h2>" in text


def test_a_table_with_columns_a_filter_and_times(spark):
    start = datetime(2026, 3, 1, tzinfo=UTC)
    rows = [
        (start + timedelta(minutes=n), n, {"x": float(n), "y": "even" if n % 2 == 0 else None})
        for n in range(60)
    ]
    table = spark.createDataFrame(
        [(when, n, nested) for when, n, nested in rows],
        "time timestamp, number int, deep struct<x: double, y: string>",
    )
    begin, end = (start + timedelta(minutes=n) for n in (10, 50))
    found = gather(table, filter='deep.y = "even"', since=begin.timestamp(), until=end.timestamp(), by="deep.y")
    assert found.traffic.events == 20
    assert (found.traffic.first, found.traffic.last) == (
        begin.timestamp(),
        (end - timedelta(minutes=2)).timestamp(),
    )
    assert found.traffic.bytes is None
    assert found.traffic.groups == ["even"]
    assert {one.name for one in found.attributes} == {"number", "deep.x", "deep.y"}
    assert (found.hits, found.savings, found.selectivities) == (None, None, [])


def test_an_attribute_may_say_when(spark, tmp_path):
    payloads = [
        ({"date": "2001-02-03", "x": 1},),
        ({"date": "2001-02-05T00:00:00+01:00"},),
        ({"date": "soon"},),
        ({},),
    ]
    rows = [(palio.Notification(*event).encode(),) for event in payloads]
    found = report(spark.createDataFrame(rows, "payload binary"), tmp_path / "r.html", time="date")
    page = (tmp_path / "r.html").read_text()
    assert "2001-02-03" in page
    assert "2 events without a time" in page
    first = datetime(2001, 2, 3, tzinfo=UTC).timestamp()
    assert (found.traffic.events, found.traffic.first, found.traffic.untimed) == (4, first, 2)
    assert found.traffic.last == datetime(2001, 2, 4, 23, tzinfo=UTC).timestamp()
    assert sum(moment.events for moment in found.traffic.moments) == 2


def test_events_that_are_none_are_counted_and_left_out(spark, subscriptions):
    rows = [(palio.Notification({"alarm": 9}).encode(),), (b"\xc1",), (None,)]
    found = gather(spark.createDataFrame(rows, "payload binary"), subscriptions)
    assert (found.traffic.events, found.traffic.unreadable) == (2, 1)
    assert found.hits.pairs == 5  # all three alarms, and twice not halted
    assert found.hits.by_reach == {1: 1, 3: 1}


def test_hits_of_several_shards_and_of_other_ids(spark, url, matches):
    texts = spark.createDataFrame(
        [(f"s{id}", text) for id, text in SUBSCRIPTIONS], "subscription_id string, filter string"
    )
    shards = palio.spark.build_shards(texts, invalid="skip", size=20)
    assert len(shards.reports) > 1
    counted = reached(prepared(palio.spark.read(spark, url)), shards)
    rows = {row["subscription_id"]: row["hits"] for row in hit_rates(texts, counted).collect()}
    wanted = Counter(f"s{id}" for found in matches for id in found)
    assert rows == {f"s{id}": wanted[f"s{id}"] for id, _ in SUBSCRIPTIONS}


def test_what_cannot_be_said_is_an_error(spark, url, subscriptions):
    events = palio.spark.read(spark, url)
    with pytest.raises(NothingThere, match="There are no events in nowhere"):
        gather(events.where("false"), source="nowhere")
    with pytest.raises(NothingThere, match="nothing that the filter selects"):
        gather(events, filter='class = "bond"')
    with pytest.raises(NothingThere, match="There are no subscriptions: the table is empty"):
        gather(events, subscriptions.where("false"))
    with pytest.raises(NothingThere, match="none of the filters can be read"):
        gather(events, subscriptions.where("subscription_id = 201"))
    with pytest.raises(MissingColumn, match="subscription_id"):
        gather(events, events)
    with pytest.raises(WrongOption, match="have no time"):
        gather(events.select("payload"), since=1.0)
    with pytest.raises(WrongOption, match="there is no column 'when'"):
        gather(spark.range(3), time="when")
    with pytest.raises(WrongOption, match="of the type bigint, not a timestamp"):
        gather(spark.range(3), time="id")
