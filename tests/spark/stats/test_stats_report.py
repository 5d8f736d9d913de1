"""The report: one file that needs nothing and runs nothing, whatever events say."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from palio.spark.stats.figures import (
    Attribute,
    Bin,
    Figures,
    Hits,
    Moment,
    Savings,
    Selectivity,
    SubscriptionHits,
    Traffic,
    ValueCount,
)
from palio.spark.stats.page import page

HOSTILE = (
    '</style></details><script>alert(1)</script><img src="//evil.example/x" onerror=alert(2)>\'"&\u202e\x00'
)


def figures(evil: str) -> Figures:
    """Figures in which everything that can come from events or filters is the same text."""
    return Figures(
        source=evil,
        made=1_794_897_211.0,
        filter=evil,
        traffic=Traffic(
            events=100,
            bytes=5_000,
            unreadable=1,
            first=0.0,
            last=100.0,
            step=50.0,
            by=evil,
            groups=[evil],
            moments=[Moment(0.0, 60, {evil: 50}, 30), Moment(50.0, 40, {}, 0)],
            publishers=[ValueCount(evil, 60), ValueCount("p", 40)],
            publishers_distinct=2,
        ),
        attributes=[
            Attribute(evil, "string", 100, 1.0, {"string": 100}, 2, True,
                      [ValueCount(evil, 60), ValueCount("", 40)]),
            Attribute(evil, "number", 50, 0.5, {"int": 25, "float": 25}, 2_000, False, [ValueCount(3, 20)], 0,
                      0.0, 9.0, 4.0, 1.0, [float(n) for n in range(101)],
                      [Bin(0.0, 5.0, 40), Bin(5.0, 9.0, 10)]),
            Attribute(evil, "time", 50, 0.5, {"time": 50}, 2, True, least=0.0, most=1e9),
            Attribute(evil, "list", 50, 0.5, {"list": 50}, 0, True),
            Attribute(evil, "bool", 50, 0.5, {"bool": 50}, 2, True,
                      [ValueCount(True, 30), ValueCount(False, 20)]),
        ],
        attributes_left_out=3,
        selectivities=[Selectivity(evil, "=", evil, 3, 50, 0.5)],
        constraints=9,
        hits=Hits(3, 1, 1, 90, 60, {0: 1, 2: 1}, {0: 40, 1: 60}, [SubscriptionHits(evil, evil, 60, 0.6)],
                  [SubscriptionHits(evil, evil, 0, 0.0)]),
        savings=Savings(9_000, 5_000, 4_000, 300, 200),
    )  # fmt: skip


class Reader(HTMLParser):
    """Which elements and attributes there are, and whether all that is opened is closed."""

    VOID = frozenset({"meta", "line", "rect", "!doctype"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.links: list[tuple[str, str | None]] = []
        self.images: list[dict[str, str | None]] = []
        self.details = 0

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.links += [(name, value) for name, value in attrs if name in ("href", "src", "srcset", "action")]
        assert not [name for name, _ in attrs if name.startswith("on")]
        if dict(attrs).get("role") == "img":
            self.images.append(dict(attrs))
        self.details += tag == "details"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_hostile_values_are_text_and_nothing_else():
    text = page(figures(HOSTILE), title=HOSTILE)
    reader = read(text)
    assert reader.seen.isdisjoint({"script", "img", "iframe", "link", "object", "form", "base"})
    assert "&lt;script&gt;alert(1)" in text
    assert "\x00" not in text
    assert "\u202e" not in text


def test_it_asks_for_nothing_from_elsewhere():
    text = page(figures("quote"))
    reader = read(text)
    assert all(value and value.startswith("#") for _, value in reader.links)
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    targets = set(re.findall(r'id="([\w-]+)"', text))
    assert {value[1:] for _, value in reader.links} <= targets


def test_everybody_can_read_it():
    text = page(figures("quote"))
    reader = read(text)
    assert '<html lang="en">' in text
    assert "width=device-width" in text
    assert "prefers-color-scheme: dark" in text
    assert reader.images
    assert all(one["aria-label"] for one in reader.images)
    assert reader.details >= 8  # the numbers behind each plot
    assert "This is a sample" in text


def test_without_subscriptions_and_without_time_it_is_shorter():
    full = figures("quote")
    bare = Figures("x", 0.0, None, Traffic(10), full.attributes[:1], 0)
    headings = re.findall(r"<h2[^>]*>([^<]+)", page(bare))
    assert headings == ["Attributes"]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium here")
@pytest.mark.parametrize(("width", "scheme"), [(360, 0), (1200, 1)])
def test_a_browser_shows_it_within_the_width(tmp_path: Path, width: int, scheme: int):
    """What the browser makes of it is not wider than the window; a page around it tells, in its title."""
    place = tmp_path / "report.html"
    place.write_text(page(figures("a-rather-long-name-of-an-attribute " * 3)))
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<body style="margin:0"><iframe id="f" src="report.html" width="{width}" height="9000"></iframe>'
        "<script>onload = () => { const root = document.getElementById('f').contentDocument.documentElement;"
        "document.title = root.scrollWidth + ' ' + root.clientWidth }</script>"
    )
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--dump-dom",
    ]
    done = subprocess.run(
        ["chromium", *options, f"--blink-settings=preferredColorScheme={scheme}",
         f"--user-data-dir={tmp_path}/user", "--virtual-time-budget=5000", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )  # fmt: skip
    found = re.search(r"<title>(\d+) (\d+)</title>", done.stdout)
    assert found is not None, done.stdout[:500]
    assert int(found[1]) <= int(found[2]) <= width
