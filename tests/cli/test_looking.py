"""What a broker and its network say about themselves: subs, peers, stats, top, dlq, trace, explain, history."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import threading
import time
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

import palio
from palio.broker.settings import Peer
from palio.cli.events.backtest import BacktestCounts, parts
from palio.cli.events.trace import tree_of
from palio.cli.output.keys import ended_by
from palio.model.moments import parse_time
from palio.protocol.durable.retry import Patience, Retry
from palio.protocol.inquiries import Hop, Recipient
from palio.protocol.peers import LinkKind
from palio.routing.durable.desk import DurableSettings
from tests.cli.live import live_broker
from tests.cli.processes import PATIENCE, started


def lines(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def hold(live, *subscriptions, name="desk"):
    """A client with subscriptions, as (filter, durable)."""

    async def connect():
        client = await palio.connect(f"palio://{live.server}", name=name)
        for filter, durable in subscriptions:
            await client.subscribe(filter, durable=durable, ready="network")
        return client

    return live.do(connect())


@pytest.fixture
def pair(live, tmp_path):
    """A second broker that is linked to the first."""
    with live_broker(tmp_path, "lucca", peers=(Peer(live.server, LinkKind.PEER),)) as other:

        async def linked():
            while not live.broker.router.neighbours():
                await asyncio.sleep(0.01)

        live.do(linked())
        yield other


def test_subscriptions_clients_and_counts(command, live):
    client = hold(live, ("price > 1", None), ("price > 2", "desk-7"))
    live.publish({"price": 3})
    rows = lines(command("subs", "--json"))
    assert {row["subscription"]: row["filter"] for row in rows} == {
        "@desk/s1": "price > 1",
        "@desk-7": "price > 2",
    }
    [durable] = lines(command("subs", "--durable", "--json"))
    assert durable["durable"] == "desk-7"
    shown = command("subs").stdout
    assert "@desk-7" in shown
    assert "2 subscriptions" in shown
    assert "desk" in {row["name"] for row in lines(command("clients", "--json"))}
    assert "desk" in command("clients").stdout
    [stats] = lines(command("stats", "--json"))
    assert stats["router"]["forwarding"]["taken"] == 1
    assert "siena" in command("stats").stdout
    shown = command("top", "--count", "2", "--every", "10ms").stdout
    assert shown.count("siena") == 2
    assert "@desk-7" in shown
    live.do(client.close())


def test_links_that_are_and_that_cannot_be(command, live, tmp_path, pair):
    [row] = lines(command("peers", "--json"))
    assert (row["name"], row["kind"], row["state"]) == ("lucca", "peer", "live")
    assert "lucca" in command("peers").stdout
    assert "lucca" in command("top", "--count", "1").stdout
    with live_broker(tmp_path, "pisa", peers=(Peer("127.0.0.1:1"),)) as lonely:

        async def problem():
            while not lonely.broker.dialling_problems():
                await asyncio.sleep(0.01)

        lonely.do(problem())
        shown = command("peers", "--server", lonely.server).stdout
        assert "127.0.0.1:1 cannot be reached" in shown


def test_a_trace_shows_takers_everywhere_and_delivers_nothing(command, live, pair):
    here, there = hold(live, ("price > 1", None)), hold(pair, ("price > 2", "desk-7"), name="other")
    result = command("trace", '{"price": 3}')
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "siena",
        "├── → @desk/s1  price > 1",
        "└── lucca",
        "    └── → @desk-7  durable  price > 2",
        "",
        "2 takers, 2 brokers.",
    ]
    document = json.loads(command("trace", '{"price": 3}', "--json").stdout)
    assert document["recipients"] == document["brokers"] == 2
    assert document["route"]["onward"][0]["recipients"][0]["name"] == "desk-7"
    result = command("trace", '{"price": 0}')
    assert result.exit_code == 1
    assert "Nobody would get it, 1 broker." in result.stdout
    [stats] = lines(command("stats", "--json"))
    assert stats["router"]["forwarding"]["taken"] == 0
    live.do(here.close())
    pair.do(there.close())


def test_a_trace_takes_what_pub_takes(command, live, tmp_path):
    client = hold(live, ('symbol = "ACME" and price > 1', None))
    assert command("trace", "symbol=ACME", "price=101.5").exit_code == 0
    assert command("trace", "symbol=ACME").exit_code == 1
    file = tmp_path / "symbol=ACME.json"  # what is a file is one
    file.write_text('{"symbol": "ACME", "price": 2}')
    assert command("trace", str(file)).exit_code == 0
    assert command("trace", "symbol=ACME", "--line", "1").exit_code == 2
    missing = command("trace", "nosuch.json")
    assert (missing.exit_code, "nosuch.json" in missing.stderr) == (3, True)
    live.do(client.close())


def test_brokers_that_are_away_are_named_so_that_they_can_be_forgotten(command, live, tmp_path):
    with live_broker(tmp_path, "lucca", peers=(Peer(live.server, LinkKind.PEER),)):

        async def linked():
            while "lucca" not in live.broker.router.durable.topology.versions:
                await asyncio.sleep(0.01)

        live.do(linked())
        assert command("peers", "--whole", "30s").exit_code == 0
        assert "lucca" not in [
            row["name"] for row in lines(command("peers", "--json")) if row["state"] == "away"
        ]

    async def left():
        while live.broker.router.neighbours():
            await asyncio.sleep(0.01)

    live.do(left())
    assert [row["name"] for row in lines(command("peers", "--json")) if row["state"] == "away"] == ["lucca"]
    assert command("peers", "--whole", "0s").exit_code == 1
    assert command("peers", "--whole", "soon").exit_code == 3
    shown = command("peers").stdout
    assert "Away: lucca. `palio forget NAME`" in shown
    assert "No links." in shown
    assert command("forget", "lucca", "--yes").exit_code == 0
    assert lines(command("peers", "--json")) == []


def test_a_journal_is_trimmed_only_if_that_is_said(command, live):
    live.publish(*({"n": n} for n in range(12)))
    asked = command("journal", "trim")
    assert asked.exit_code == 1
    assert "12 events of siena (1 to 12) would go" in asked.stderr
    assert "add --yes" in asked.stderr
    assert lines(command("journal", "list")) == [{"journal": "siena", "first": 1, "last": 12}]
    assert "7 events of siena (1 to 7) would go" in command("journal", "trim", "--upto", "7").stderr
    assert lines(command("journal", "trim", "--yes")) == [{"journal": "siena", "first": 13, "last": 12}]
    assert command("journal", "trim").exit_code == 0  # there is nothing to ask about


def test_durable_subscriptions_are_steered_and_removed(command, live):
    def until_pending(count):
        while lines(command("subs", "show", "desk-7"))[0]["pending"] != count:
            time.sleep(0.01)

    live.do(hold(live, ("n >= 0", "desk-7")).close())
    assert command("subs", "pause", "desk-7").exit_code == 0
    assert "paused" in command("subs", "--durable").stdout
    [row] = lines(command("subs", "show", "@desk-7"))
    assert (row["durable"], row["paused"]) == ("desk-7", True)
    live.publish(*({"n": n} for n in range(4)))
    wanted = ("sub", "--durable", "desk-7", "--count", "2")
    silent = command(*wanted, "--timeout", "0.3s")
    assert silent.stdout == ""
    assert "It is paused: nothing comes before palio subs resume desk-7." in silent.stderr
    assert command("subs", "resume", "desk-7").exit_code == 0
    assert command(*wanted, "--timeout", "10s").stdout == '{"n":0}\n{"n":1}\n'
    back = ("subs", "seek", "desk-7", "--position", "siena:0")
    assert command(*back).exit_code == 0  # nothing is dropped by that
    seen = command("sub", "--durable", "desk-7", "--count", "4", "--timeout", "10s").stdout.splitlines()
    assert sorted(seen) == [f'{{"n":{n}}}' for n in range(4)]
    until_pending(0)  # all of these are acknowledged
    live.publish({"n": 4}, {"n": 5})
    until_pending(2)
    asked = command("subs", "seek", "desk-7", "--since", "now")
    assert (asked.exit_code, "2 events of desk-7 would be dropped." in asked.stderr) == (1, True)
    assert "2 events were dropped" in command("subs", "seek", "desk-7", "--since", "now", "--yes").stderr
    for wrong in ((), ("--since", "1h", "--position", "siena:1")):
        assert command("subs", "seek", "desk-7", *wrong).exit_code == 2
    for wrong in (("--position", "siena"), ("--position", "siena:x"), ("--since", "soon")):
        assert command("subs", "seek", "desk-7", *wrong).exit_code == 3
    asked = command("subs", "rm", "desk-7")
    assert (asked.exit_code, "would end for good, with 0 events" in asked.stderr) == (1, True)
    assert command("subs", "rm", "desk-7", "--yes").exit_code == 0
    assert lines(command("subs", "list", "--json")) == []
    for name in ("show", "pause", "resume"):
        assert command("subs", name, "desk-7").exit_code == 3
    gone = command("subs", "rm", "desk-7", "--yes")
    assert (gone.exit_code, "There is no durable subscription 'desk-7'" in gone.stderr) == (3, True)
    assert command("subs", "--json", "show", "desk-7").exit_code == 2
    assert command("sub", "--durable", "", "--timeout", "1s").exit_code == 3  # an empty name is none


def test_q_ends_what_is_shown(monkeypatch):
    ours, theirs = pty.openpty()

    async def press() -> bool:
        with open(theirs, encoding="utf-8") as terminal:
            monkeypatch.setattr("sys.stdin", terminal)
            with ended_by("q") as ended:
                os.write(ours, b"x")
                os.write(ours, b"Q")
                async with asyncio.timeout(10.0):
                    return await ended.wait()

    assert asyncio.run(press())
    os.close(ours)


def test_a_trace_says_who_did_not_answer_and_keeps_control_characters_to_itself():
    route = Hop("a", (Recipient("x\x1b", False, ("n > 1",), ("h",), 3),), (Hop("b", problem="It is silent."),))
    with StringIO() as file:
        Console(width=80, file=file).print(tree_of(route))
        shown = file.getvalue()
    assert "\x1b" not in shown
    assert "and 3 more" in shown
    assert "b  It is silent." in shown


def test_a_subscription_is_explained_by_its_name(command, live):
    client = hold(live, ("price > 1 and not halted", "desk-7"), ("price > 5", None))
    result = command("explain", "@desk-7", '{"price": 3}')
    assert result.exit_code == 0
    assert "✓ price > 1" in result.stdout
    result = command("explain", "@desk/s1", '{"price": 3}')
    assert result.exit_code == 1
    assert "✗ price > 5" in result.stdout
    result = command("explain", "@nobody", '{"price": 3}')
    assert result.exit_code == 3
    assert "There is no subscription @nobody at siena; palio subs shows" in result.stderr
    live.do(client.close())


def test_dead_letters_are_listed_shown_queued_again_and_thrown_away(command, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    settings = DurableSettings(patience=Patience(attempts=1))
    with live_broker(tmp_path, durable=settings) as live:
        monkeypatch.setenv("PALIO_SERVER", live.server)

        async def reject(count):
            async with palio.connect(f"palio://{live.server}") as client:
                subscription = await client.subscribe("n > 0", durable="desk-7")
                await client.publish([{"n": n} for n in range(count + 1)])
                for n in range(count):
                    await (await subscription.next(10)).reject(reason=f"no {n}")
                while len(await client.inspect("dlq", name="desk-7")) < count:
                    await asyncio.sleep(0.01)

        live.do(reject(3))
        letters = lines(command("dlq", "list", "--json"))
        assert [(one["name"], one["event"]) for one in letters] == [("desk-7", {"n": n}) for n in (1, 2, 3)]
        numbers = [one["delivery"] for one in letters]
        assert "3 dead letters" in command("dlq", "list", "desk-7").stdout
        for wrong in (("list", "nosuch"), ("list", "nosuch", "--json"), ("show", "nosuch", "1")):
            result = command("dlq", *wrong)
            assert (result.exit_code, result.stdout) == (3, "")
            assert "There is no durable subscription 'nosuch' at siena" in result.stderr
        assert command("dlq", "discard", "nosuch", "--all").exit_code == 3
        [one] = lines(command("dlq", "show", "desk-7", str(numbers[1])))
        assert (one["event"], one["attempts"]) == ({"n": 2}, 1)
        [failure] = one["failures"]
        assert failure["why"] == "rejected: no 1"
        assert failure["time"] >= one["time"]
        assert "rejected: no 1" in command("dlq", "list", "desk-7").stdout
        assert command("dlq", "show", "desk-7", "999").exit_code == 3
        assert command("dlq", "requeue", "desk-7").exit_code == 2
        result = command("dlq", "requeue", "desk-7", str(numbers[0]), "999")
        assert result.exit_code == 1
        assert "1 dead letter of desk-7 queued again." in result.stderr
        assert "There was no dead letter 999." in result.stderr
        wanted = ("sub", "n > 0", "--durable", "desk-7", "--count", "1", "--timeout", "10s")
        assert command(*wanted).stdout == '{"n":1}\n'
        asked = command("dlq", "discard", "desk-7", "--all")
        assert asked.exit_code == 1
        assert "2 dead letters of desk-7 would be thrown away for good" in asked.stderr
        assert "add --yes" in asked.stderr
        assert len(lines(command("dlq", "list", "desk-7", "--json"))) == 2
        result = command("dlq", "discard", "desk-7", "--all", "--yes")
        assert result.stderr == "2 dead letters of desk-7 thrown away.\n"
        for names in ((), ("desk-7",)):
            result = command("dlq", "list", *names)
            assert (result.exit_code, "No dead letters." in result.stdout) == (0, True)
        assert command("dlq", "requeue", "nobody", "1").exit_code == 3


def test_a_durable_subscription_says_how_it_is_tried_again(command, live):
    wished = ("--attempts", "3", "--backoff", "1s,5m", "--linger", "1h")
    assert command("sub", "n > 0", "--durable", "desk-7", *wished, "--timeout", "0.1s").exit_code == 1
    home = live.broker.router.durable.homes.subscriptions["desk-7"]
    assert home.retry == Retry(attempts=3, first_pause=1.0, longest_pause=300.0)
    assert home.linger == 3_600.0
    for flag, value in (("--attempts", "3"), ("--backoff", "1s"), ("--linger", "1h")):
        result = command("sub", "n > 0", flag, value)
        assert result.exit_code == 2
        assert f"{flag} is for a durable subscription" in " ".join(result.stderr.split())


# History


def test_history_comes_from_all_journals_and_ends(command, live, pair):
    before = time.time()
    live.publish(*({"n": n} for n in range(20)))
    between = time.time()
    time.sleep(0.01)
    pair.publish(*({"n": n} for n in range(20, 40)))
    result = command("replay", "n >= 10", "--since", "all")
    assert result.exit_code == 0
    assert sorted(one["n"] for one in lines(result)) == list(range(10, 40))
    assert result.stderr == "30 events.\n"
    until = datetime.fromtimestamp(between, UTC).isoformat()
    shown = lines(command("replay", "n >= 10", "--since", "1h", "--until", until, "--server", pair.server))
    assert [one["n"] for one in shown] == list(range(10, 20))
    assert command("replay", "n > 100", "--since", "1h").exit_code == 1
    document = json.loads(command("backtest", "n < 30", "--since", "1h", "--samples", "2", "--json").stdout)
    assert document["events"] == sum(bar["events"] for bar in document["when"]) == 30
    assert len(document["samples"]) == 2
    assert {one["origin"] for one in document["samples"]} <= {"siena", "lucca"}
    assert parse_time(document["first"]).timestamp() >= before
    shown = command("backtest", "n < 30", "--since", "1h").stdout
    assert shown.startswith("30 events, the first ")
    assert "█" in shown
    result = command("backtest", "n > 100", "--since", "1h")
    assert result.exit_code == 1
    assert "selects no event" in result.stdout


def test_a_journal_is_read_without_its_broker(command, tmp_path, monkeypatch):
    with live_broker(tmp_path) as live:
        live.publish(*({"n": n} for n in range(10)))
    url = f"sqlite:///{tmp_path}/siena/palio.db"
    document = json.loads(command("backtest", "n > 5", "--since", "all", "--store", url, "--json").stdout)
    assert document["events"] == 4
    result = command("backtest", "n > 5", "--since", "all", "--store", url, "--broker", "lucca")
    assert result.exit_code == 3
    assert "lucca" in result.stderr
    assert command("backtest", "n > 5", "--since", "all", "--store", "nonsense").exit_code == 3


def test_bars_cover_the_time_from_the_first_to_the_last_and_are_not_too_many():
    assert [parts(0.0, last) for last in (0.0, 0.9, 1.0, 7.5, 1e9)] == [1, 1, 1, 7, 24]
    assert BacktestCounts(3, 10.0, 20.0, (1, 2)).bars() == [(10.0, 1), (15.0, 2)]
    assert BacktestCounts().bars() == []


# Requests, advertisements


def test_a_request_is_answered_and_one_that_reaches_nobody_ends_at_once(command, live, pair):
    async def answer():
        async with palio.connect(f"palio://{pair.server}") as client:
            subscription = await client.subscribe("exists(ask)", ready="network")
            ready.set()
            event = await subscription.next(30)
            await event.reply({"price": 7})
            await client.flush(arrived=True)

    ready = threading.Event()
    answered = pair.begin(answer())
    assert ready.wait(30)
    result = command("request", "ask=price")
    assert (result.exit_code, result.stdout) == (0, '{"price": 7}\n')
    assert result.stderr == "1 reply\n"
    answered.result(30)
    result = command("request", "nobody=1")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "0 replies\n")


def test_requests_are_answered_from_the_command_line(command, live):
    async def ask():
        async with palio.connect(f"palio://{live.server}") as client:
            while not (replies := await client.request({"ask": 1}, timeout=5.0)):
                await asyncio.sleep(0.01)
            return [dict(one.attributes) for one in replies]

    asked = live.begin(ask())
    result = command("reply", "exists(ask)", "price={n}", "--count", "1", "--timeout", "30s")
    assert (result.exit_code, result.stdout) == (0, '{"ask": 1}\n')
    assert asked.result(30) == [{"price": 1}]


def test_who_advertises_learns_whether_anybody_wants_it(command, live):
    result = command("advertise", "exists(price)", "--watch", "--timeout", "0.3s")
    assert lines(result) == [{"wanted": False}]
    client = hold(live, ("price > 1", None))
    assert lines(command("advertise", "exists(price)", "--watch", "--timeout", "0.3s")) == [{"wanted": True}]
    assert command("advertise", "nonsense(", "--timeout", "1s").exit_code == 3
    live.do(client.close())


def test_only_a_broker_that_was_heard_of_is_forgotten_and_only_on_purpose(command, live):
    result = command("forget", "nobody")
    assert result.exit_code == 1
    assert "add --yes" in result.stderr
    result = command("forget", "nobody", "--yes")
    assert result.exit_code == 3
    assert "never heard of" in result.stderr


def test_links_are_added_and_removed_by_hand(command, live, tmp_path):
    with live_broker(tmp_path, "lucca") as other:
        added = command("link", "add", other.server)
        assert (added.exit_code, added.stdout) == (0, "")
        assert "siena is linked with lucca, until it restarts." in added.stderr
        again = command("link", "add", other.server)
        assert (again.exit_code, "There is a link to lucca already." in again.stderr) == (3, True)
        assert command("link", "add", other.server, "--if-allowed").stderr == ""
        assert [row["name"] for row in lines(command("peers", "--json")) if row["name"]] == ["lucca"]
        assert "siena has no link to lucca any more." in command("link", "remove", "lucca").stderr
        nothing = command("link", "remove", "lucca")
        assert (nothing.exit_code, "nothing was done" in nothing.stderr) == (0, True)
        assert "has removed this link" in command("link", "add", live.server, "--server", other.server).stderr
    assert command("link", "add", "host:99999").exit_code == 3


def test_links_are_watched_until_ctrl_c(command, live, environment, tmp_path):
    with live_broker(tmp_path, "lucca") as other:
        command("link", "add", other.server)
        words = ("peers", "--watch", "--server", live.server)
        with (
            started(*words, environment=environment, folder=tmp_path) as people,
            started(*words, "--json", environment=environment, folder=tmp_path) as machines,
        ):
            while people.stdout.readline() != "1 link\n":
                pass
            assert json.loads(machines.stdout.readline())["name"] == "lucca"
            command("link", "remove", "lucca")
            assert json.loads(machines.stdout.readline())["what"] == "link removed"
            assert people.stdout.readline()[9:] == "link removed  lucca (removed)\n"
            for following in (people, machines):
                following.send_signal(signal.SIGINT)
                assert following.wait(PATIENCE) == 130
