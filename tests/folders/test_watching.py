"""`palio files`: documents in, events out, with a real broker, and kills in between."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.broker.documents.cards import card, know_cards
from tests.cli.live import PATIENCE


@pytest.fixture
def cards(live):
    """A broker that knows cards."""
    live.do(know_cards(live.broker))
    return live


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def files(place):
    return {one.name: one.read_bytes() for one in place.iterdir() if one.is_file()}


def soon(*more):
    return ("files", "--once", "--interval", "0.05s", *more)


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_documents_are_published_and_what_is_wrong_goes_aside(place, cards, command):
    (place / "a.xml").write_bytes(card("a"))
    (place / "b.xml").write_bytes(b"<card")
    (place / "c.xml").write_bytes(b"<other/>")
    result = command(*soon("--in", str(place), "--json"))
    assert result.exit_code == 1
    assert {one["file"]: "rejected" in one for one in lines(result)} == {
        "a.xml": False,
        "b.xml": True,
        "c.xml": True,
    }
    assert "1 file published, 2 files rejected." in result.stderr
    assert files(place / "done") == {"a.xml": card("a")}
    rejected = files(place / "rejected")
    assert rejected["b.xml"] == b"<card"
    assert rejected["b.xml.reason.txt"].startswith(b"This document is refused at line 1")
    assert b"family" in rejected["c.xml.reason.txt"]
    assert command(*soon("--in", str(place))).exit_code == 0


def test_events_are_written_as_documents_or_as_json(place, out, cards, command):
    wanted = ("--out", str(out), "--filter", "true", "--name", "desk")
    assert command(*soon(*wanted)).exit_code == 0
    cards.publish({"price": 5})
    (place / "a.xml").write_bytes(card("a"))
    assert command(*soon("--in", str(place), *wanted, "--metadata")).exit_code == 0
    assert command(*soon(*wanted, "--metadata")).exit_code == 0
    found = files(out)
    assert found["siena-000000000002.xml"] == card("a")
    assert json.loads(found["siena-000000000002.json"])["event"]["xml.key"] == "a"
    assert json.loads(found["siena-000000000001.json"])["event"] == {"price": 5}
    assert len(found) == 3


def test_what_makes_no_sense_is_said(tmp_path, place, live, command):
    for wrong, code, said in (
        ((), 2, "Name a folder to watch"),
        (("--in", str(place), "--interval", "0s"), 2, "--interval"),
        (("--in", str(tmp_path / "none")), 3, "no folder"),
        (("--in", str(place), "--out", str(place)), 3, "cannot be both"),
        (("--out", str(place), "--filter", "price >"), 3, "price >"),
    ):
        result = command("files", "--once", *wrong)
        assert result.exit_code == code, wrong
        assert said in " ".join(result.stderr.split())


def started(place, server, environment):
    arguments = ("files", "--in", str(place), "--interval", "0.05s", "--quiet")
    return subprocess.Popen(
        [sys.executable, "-m", "palio.cli.main", *arguments], env=environment | {"PALIO_SERVER": server}
    )


def published(live):
    """The keys of all documents in the journal."""
    envelopes = live.do(replayed(live))
    return sorted([one["xml.key"] for one in envelopes])


async def replayed(live):
    import palio

    async with palio.connect(f"palio://{live.server}") as client:
        return [event async for event in client.replay("exists(xml.family)")]


def test_each_file_is_published_once_although_the_watcher_is_killed(place, cards, environment):
    count = 120
    for number in range(count):
        (place / f"{number:03}.xml").write_bytes(card(f"k{number:03}"))
    done = place / "done"
    for wanted in (1, 40, 80):
        process = started(place, cards.server, environment)
        until = time.monotonic() + PATIENCE
        while not done.exists() or len(list(done.iterdir())) < wanted:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.001)
        process.kill()
        process.wait()
    process = started(place, cards.server, environment)
    until = time.monotonic() + PATIENCE
    while len(list(done.iterdir())) < count:
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 143
    assert published(cards) == [f"k{number:03}" for number in range(count)]
    assert list((place / ".palio" / "taken").iterdir()) == []
