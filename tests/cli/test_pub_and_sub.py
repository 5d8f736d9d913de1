"""`palio pub` and `palio sub`: what goes in at one end comes out at the other."""

from __future__ import annotations

import json
import re
import signal
from contextlib import ExitStack

import pytest

from palio.cli.input.templates import NotAnEvent, fill, parse_event
from tests.broker.documents.cards import card, know_cards
from tests.cli.processes import PATIENCE, broker_up, started

# Events and how they are typed


@pytest.mark.parametrize(
    ("arguments", "event"),
    [
        (["symbol=ACME", "price=101.5"], {"symbol": "ACME", "price": 101.5}),
        (["a=1", "b=1.0", "c=true", "d=null"], {"a": 1, "b": 1.0, "c": True, "d": None}),
        (
            ["a=[1, 2]", 'b="1"', "c=", "d=x=y", "e=NaN"],
            {"a": [1, 2], "b": "1", "c": "", "d": "x=y", "e": "NaN"},
        ),
        (['{"a": {"b": 1}}'], {"a": {"b": 1}}),
        (['a={"$time": "2026-03-28T10:00:00Z"}'], {"a": {"$time": "2026-03-28T10:00:00Z"}}),
    ],
)
def test_values_are_guessed_as_in_json(arguments, event):
    assert parse_event(arguments) == event
    assert [type(one) for one in parse_event(arguments).values()] == [type(one) for one in event.values()]


@pytest.mark.parametrize("arguments", [["price"], ["=1"], ["a=1", "a=2"]])
def test_what_is_no_event_is_told(arguments):
    with pytest.raises(NotAnEvent):
        parse_event(arguments)


def test_places_are_filled_in_and_a_place_alone_has_its_type():
    filled = fill(
        {"n": "{n}", "text": "no {n}", "deep": ["{n}", {"x": "{random:5:5}"}], "f": "{random:2.0:2.0}"}, 7
    )
    assert filled == {"n": 7, "text": "no 7", "deep": [7, {"x": 5}], "f": 2.0}
    assert fill("{now}", 1).tzinfo is not None
    assert fill("{uuid}", 1) != fill("{uuid}", 1)
    assert fill("{other} {n:1} {}", 1) == "{other} {n:1} {}"


# Publishing


def events_of(command, *arguments: str) -> list[dict]:
    result = command("sub", "--since", "all", "--timeout", "10s", *arguments)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_an_event_is_confirmed_with_its_place(command, live):
    result = command("pub", "symbol=ACME", "price=101.5", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"origin": "siena", "sequence": 1}
    assert result.stderr == "1 event confirmed by siena as siena/1\n"


def test_many_are_published_in_order_with_their_properties(command, live):
    orders = ("pub", '{"n": "{n}"}', "--id", "order-{n}", "--as", "shop")
    result = command(*orders, "--count", "1200", "--priority", "7", "--lifetime", "1h")
    assert result.stderr.startswith("1,200 events confirmed by siena, ")
    found = events_of(command, "--count", "1200", "--format", "full")
    assert [one["event"]["n"] for one in found] == list(range(1, 1201))
    assert [one["id"] for one in found] == [f"order-{n}" for n in range(1, 1201)]
    assert {one["priority"] for one in found} == {7}
    # the same ids of the same publisher again are the same events
    command(*orders, "--count", "10")
    assert command("pub", "last=1").stderr == "1 event confirmed by siena as siena/1201\n"


def test_lines_of_standard_input_are_events_and_bad_ones_are_told(command, live):
    cloud = '{"specversion": "1.0", "id": "c", "source": "s", "type": "t"}'
    lines = f'{{"n": 1, "text": "{{n}}"}}\n\n# nothing\nwrong\n{cloud}\n'
    result = command("pub", input=lines)
    assert result.exit_code == 3
    assert "standard input:4: " in result.stderr
    assert "2 events confirmed by siena" in result.stderr
    assert "1 bad line" in result.stderr
    first, second = events_of(command, "--count", "2", "--format", "full")
    assert first["event"] == {"n": 1, "text": "{n}"}
    assert second["id"] == "c"
    command("pub", "-", "--template", input='{"text": "{n}"}\n')
    [filled] = events_of(command, "exists(text) and absent(n)", "--count", "1")
    assert filled == {"text": 1}


def test_without_waiting_everything_arrives_all_the_same(command, live):
    result = command("pub", "n={n}", "--count", "700", "--no-wait")
    assert result.stderr.startswith("700 events sent to siena")
    assert [one["n"] for one in events_of(command, "--count", "700")] == list(range(1, 701))


def test_a_rate_is_a_limit(command, live):
    result = command("pub", "n={n}", "--count", "11", "--rate", "50")
    [rate] = re.findall(r"([\d,]+) events/s", result.stderr)
    assert int(rate.replace(",", "")) <= 55


def test_a_refused_event_is_told(command, tmp_path, monkeypatch):
    from tests.cli.live import live_broker

    with live_broker(tmp_path, advertisements=True) as broker:
        monkeypatch.setenv("PALIO_SERVER", broker.server)
        result = command("pub", "price=1")
        assert result.exit_code == 3
        assert "advertis" in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["pub", "sub", "subs", "peers", "stats", "top"])
def test_without_a_broker_it_says_what_to_do(command, monkeypatch, tmp_path, name):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    arguments = ("a=1",) if name == "pub" else ()
    result = command(name, *arguments, "--server", "127.0.0.1:1")
    assert result.exit_code == 4
    assert result.stderr == (
        "No broker answers at 127.0.0.1:1; start one with `palio up`, or name another one with --server.\n"
    )


# Subscribing


def test_events_are_shown_as_they_come_until_it_is_enough(command, live):
    published = live.publish_when_subscribed({"price": 99}, {"price": 101}, {"price": 102}, {"price": 103})
    result = command("sub", "price > 100", "--count", "2", "--timeout", "30s")
    assert result.exit_code == 0
    assert result.stdout == '{"price":101}\n{"price":102}\n'
    published.result(PATIENCE)


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ("json", '{"halted":false,"price":1.5,"symbol":"A B"}'),
        ("{symbol} at {price} ({halted}){missing}", "A B at 1.5 (false)"),
        ("{$origin}/{$sequence} {$event}", 'siena/1 {"halted":false,"price":1.5,"symbol":"A B"}'),
    ],
)
def test_formats(command, live, wanted, shown):
    live.publish({"symbol": "A B", "price": 1.5, "halted": False})
    result = command("sub", "--since", "all", "--count", "1", "--timeout", "30s", "--format", wanted)
    assert result.stdout == f"{shown}\n"


def test_text_is_for_people_and_keeps_control_characters_to_itself(command, live):
    live.publish({"symbol": "A\x1b[2J", "price": 1.5})
    result = command("sub", "--since", "all", "--count", "1", "--timeout", "30s", "--format", "text")
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} siena/1  price=1\.5 symbol=A\N{REPLACEMENT CHARACTER}\[2J\n", result.stdout
    )


def test_a_format_that_is_none_is_wrong_usage(command, live):
    assert command("sub", "--format", "xml").exit_code == 2


def test_nothing_in_time_is_a_no(command, live):
    assert command("sub", "--timeout", "0.1s").exit_code == 1
    live.publish({"n": 1})
    assert command("sub", "--since", "all", "--timeout", "1s", "--count", "2").exit_code == 1


def test_what_cannot_be_filtered_is_named(command, live):
    result = command("pub", '{"symbol": "ACME", "items": [{"sku": "a"}], "nothing": [[1]]}')
    assert "Filters do not see items, nothing: it is delivered, but cannot be filtered." in result.stderr
    for more in (("symbol=ACME",), ('{"items": [{"sku": "a"}]}', "--quiet")):
        assert "Filters do not see" not in command("pub", *more).stderr


def test_a_durable_subscription_goes_on_where_it_was(command, live):
    assert command("sub", "n > 0", "--durable", "desk-7", "--timeout", "0.1s").exit_code == 1
    live.publish(*({"n": n} for n in range(5)))
    wanted = ("sub", "n > 0", "--durable", "desk-7", "--timeout", "10s", "--count", "2")
    assert command(*wanted).stdout == '{"n":1}\n{"n":2}\n'
    assert command(*wanted).stdout == '{"n":3}\n{"n":4}\n'
    assert command("sub", "n > 0", "--durable", "desk-7", "--timeout", "0.3s").stdout == ""


def test_it_goes_on_after_an_event_and_says_that_a_journal_is_not_what_it_was(command, live):
    live.publish(*({"n": n} for n in range(5)))
    wanted = ("sub", "exists(n)", "--timeout", "10s", "--count", "2", "--since")
    assert command(*wanted, "siena/3").stdout == '{"n":3}\n{"n":4}\n'
    gone = command(*wanted, "siena/99")
    assert gone.stdout == '{"n":0}\n{"n":1}\n'
    assert "came back older than it was: what it had, siena after 99, may be missing." in gone.stderr


def test_a_durable_subscription_is_changed_only_if_that_is_said(command, live):
    wanted = ("--durable", "desk-7", "--timeout", "10s", "--count", "1")
    assert command("sub", "n > 0", "--durable", "desk-7", "--timeout", "0.1s").exit_code == 1
    refused = command("sub", "n < 0", *wanted)
    assert refused.exit_code == 3
    assert "`n > 0`" in refused.stderr
    assert "`n < 0`" in refused.stderr
    assert "--change" in refused.stderr
    live.publish({"n": 1})
    assert command("sub", *wanted).stdout == '{"n":1}\n'  # without a filter, as it is
    assert command("sub", "n < 0", "--durable", "desk-7", "--change", "--timeout", "0.1s").exit_code == 1
    live.publish({"n": 2}, {"n": -2})
    assert command("sub", *wanted).stdout == '{"n":-2}\n'
    for wrong in (("--change",), ("n > 1", "--change"), ("--durable", "desk-7", "--change")):
        assert command("sub", *wrong).exit_code == 2


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("yesterday", "how long ago (90s, 7d)"),
        ("2026-03-28T10:00:00", "Write 2026-03-28T10:00:00Z for UTC"),
        ("-1h", "how long ago (90s, 7d)"),
        ("2026/01/01", "how long ago (90s, 7d)"),
        ("siena/x", "write BROKER/SEQUENCE, such as siena/17"),
        ("20260101", "Write 2026-01-01 for a day, @20260101 for seconds since 1970"),
        ("1767225600", "Write @1767225600 for seconds since 1970"),
        ("1h30", "how long ago (90s, 7d)"),
    ],
)
def test_a_time_that_is_none_is_told(command, live, text, advice):
    result = command("sub", f"--since={text}")
    assert result.exit_code == 3
    assert advice in result.stderr


def test_a_wrong_filter_is_told_before_anything_else(command):
    result = command("sub", "price >", "--server", "127.0.0.1:1")
    assert result.exit_code == 3
    assert "^" in result.stderr
    assert command("sub", "a > 1 and a < 1", "--server", "127.0.0.1:1").exit_code == 3


def test_a_broker_that_comes_back_finds_its_subscriber_again_and_ctrl_c_ends_it(environment, tmp_path):
    same = ("--data", str(tmp_path / "data"), "--name", "siena")
    with ExitStack() as stack:
        process, ready = stack.enter_context(broker_up(*same, environment=environment, folder=tmp_path))
        server = ("--server", ready["server"])
        wanted = ("sub", "--durable", "d", "--ready", *server)
        subscriber = stack.enter_context(started(*wanted, environment=environment, folder=tmp_path))
        assert "Subscribed at siena" in subscriber.stderr.readline()
        assert "Ctrl-C ends the reading; the subscription stays" in subscriber.stderr.readline()
        process.kill()
        process.wait(PATIENCE)
        assert "is lost" in subscriber.stderr.readline()
        (tmp_path / "ready.json").unlink()
        again = (*same, "--listen", ready["server"])
        stack.enter_context(broker_up(*again, environment=environment, folder=tmp_path))
        assert "again" in subscriber.stderr.readline()
        with started("pub", "n=1", *server, environment=environment, folder=tmp_path) as publisher:
            assert publisher.wait(PATIENCE) == 0
        assert subscriber.stdout.readline() == '{"n":1}\n'
        subscriber.send_signal(signal.SIGINT)
        assert subscriber.wait(PATIENCE) == 130
        assert subscriber.stderr.read() == ""


# Documents


def test_documents_are_files_and_one_that_is_refused_is_reported(command, live, tmp_path):
    live.do(know_cards(live.broker))
    files = [tmp_path / name for name in ("a.xml", "b.xml", "c.xml")]
    for file, content in zip(files, (card("a"), b"<card", card("c")), strict=True):
        file.write_bytes(content)
    result = command("pub", "--xml", *map(str, files), "--json")
    assert result.exit_code == 3
    assert [json.loads(line)["origin"] for line in result.stdout.splitlines()] == ["siena"] * 2
    assert "2 documents confirmed by siena, 1 refused" in result.stderr
    assert re.search(r"b\.xml: This document is refused at line 1", result.stderr)
    assert [one["xml.key"] for one in events_of(command, 'xml.family = "card"', "--count", "2")] == ["a", "c"]
    result = command("pub", "--xml", input=card("d").decode())
    assert "1 document confirmed by siena as siena/3" in result.stderr
    assert command("pub", "--xml", str(files[0]), "--count", "2").exit_code == 2
    result = command("pub", "--xml", str(tmp_path / "none.xml"))
    assert (result.exit_code, "No such file" in result.stderr) == (3, True)
