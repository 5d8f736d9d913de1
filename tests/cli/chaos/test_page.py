"""The page of a run says what the run was, and nothing that it should not."""

from __future__ import annotations

import re

from palio.cli.chaos.page import page
from palio.cli.chaos.record import (
    ChaosRecord,
    ChaosSecond,
    DurableRow,
    FaultSpan,
    NetworkChange,
    TransientRow,
    repair_rows,
)


def change(at, group, after, *, until=20.0, within=2.0, lost=0, alone=True):
    return NetworkChange(
        at=at, number=1, what="killed", group=group, within=within, brokers=("b01",), until=at + until,
        whole_after=after, lost=lost, alone=alone,
    )  # fmt: skip


def record(**more):
    given = {
        "seed": 7,
        "command": "palio chaos --seed 7",
        "brokers": ("b01", "b02", "b03"),
        "overlay": "tree",
        "heartbeat": 1.0,
        "rate": 60.0,
        "late": 1.0,
        "seconds": 65.0,
        "made": 1_800_000_000.0,
        "troubles": [
            FaultSpan(number=1, kind="kill", begin=3.0, end=7.5, brokers=("b02",)),
            FaultSpan(number=2, kind="cut", begin=10.0, end=12.0, links=(("b01", "b03"),)),
        ],
        "moments": [change(3.0, "root killed", 0.4, lost=17), change(10.0, "link cut", 0.0)],
        "by_second": [ChaosSecond(published=60, lost=3 * (number == 3)) for number in range(65)],
        "durable": [DurableRow("d01", "b01", "value < 50", 100, 100, 4, 0, 4.2, 0.9)],
        "transient": [TransientRow("b01", 4_000, 2, 17)],
        "requests": {"asked": 60, "replies": 170, "complete": 58, "told what is missing": 2},
        "counts": {"confirmed": 4_000, "delivered": 16_000, "lost": 17, "late": 2},
    }
    return ChaosRecord(**(given | more))


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)).split())


def test_it_tells_what_went_wrong_and_what_came_of_it():
    html = page(record())
    told = text_of(html)
    for said in (
        "3 brokers that find their links by themselves (tree), with",
        "palio chaos --seed 7",
        "every promise kept",
        "2 / 2 changes after which routes were whole in time",
        "17 lost",
        "b02 killed, 3.0 s to 7.5 s",
        "the link of b01 and b03 is cut, 10.0 s to 12.0 s",
        "root killed 0.4 s 1 of 1 within 2 s",
        "4.2 s longest lag of a durable subscription; 0.9 s while nobody was away",
        "60 requests to everybody, with 170 replies",
        "✓ While nothing was wrong, nothing was lost for anybody.",
    ):
        assert said in told, said
    assert "promises broken" not in told


def test_it_is_one_file_that_loads_nothing():
    html = page(record())
    assert "default-src 'none'" in html
    assert not re.search(r"(src|href)=\"(?!#)", html)
    assert "<script" not in html


def test_broken_promises_are_told_first_and_what_is_said_is_escaped():
    html = page(record(counts={"violations": 2, "confirmed": 1}, violations=["<b>one</b>", "another"]))
    told = text_of(html)
    assert "2 promises broken" in told
    assert "&lt;b&gt;one" in html
    assert "<b>one" not in html
    assert "✓" not in told


def test_a_long_run_has_no_more_columns_than_can_be_seen():
    html = page(record(seconds=3_600.0, by_second=[ChaosSecond(published=60)] * 3_600))
    assert html.count('class="reach"') <= 2 * 240
    assert "from 15 s: 900 published" in html


def test_a_run_in_which_nothing_happened_has_a_page():
    bare = {"troubles": [], "moments": [], "durable": [], "requests": {}, "counts": {}, "by_second": []}
    assert "What went wrong: nothing" in text_of(page(record(**bare)))


def test_changes_are_judged_that_had_time_enough():
    rows = repair_rows(
        [
            change(1.0, "killed", 0.5),
            change(2.0, "killed", 3.0),
            change(3.0, "killed", None, until=1.0),  # the next one came too soon
            change(3.5, "killed", 9.0, alone=False),  # something else was wrong
            change(4.0, "cut", None),
        ]
    )
    killed, cut = rows
    assert (killed.changes, killed.judged, killed.in_time, killed.longest) == (4, 2, 1, 3.0)
    assert (cut.changes, cut.judged, cut.in_time, cut.longest) == (1, 1, 0, None)
