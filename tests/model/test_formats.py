"""Formats: what is written is read again, a message says which one it has, and one more is one more entry."""

import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palio
from palio.cli.input.events import read_events
from palio.cli.input.lines import LineFile
from palio.model.cloudevents import PLAIN_TYPE
from palio.model.formats import (
    BATCH,
    BINARY,
    JSON_LINES,
    PLAIN_JSON,
    STRUCTURED,
    Message,
    Reading,
    WrongMediaType,
    file_format,
    format_of,
    read_message,
    registry,
)
from palio.protocol.envelope import Envelope

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ALL = (PLAIN_JSON, JSON_LINES, STRUCTURED, BATCH, BINARY)
EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "order",
    "datacontenttype": "application/json",  # which binary mode says in any case
    "data": {"price": 12.5},
}

values = st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(codec="utf-8"), max_size=9)
contents = st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), values | st.just(NOON), max_size=4)


def envelope(notification, sequence=7):
    return Envelope("siena", sequence, NOON.timestamp(), 0, "siena", notification)


def read(message, **reading):
    return list(read_message(Message.of(message.headers, message.body), Reading(**reading)))


@pytest.mark.parametrize("format", ALL, ids=lambda one: type(one).__name__)
@given(several=st.lists(contents, min_size=1, max_size=3))
def test_what_is_written_is_read_again(format, several):
    notifications = [palio.Notification(content) for content in several]
    written = format.write([envelope(one, number) for number, one in enumerate(notifications)])
    assert len(written) == (len(several) if format in (STRUCTURED, BINARY) else 1)
    for message in written:
        assert format_of(Message.of(message.headers, message.body)) is format
    found = [one for message in written for one in read(message)]
    if format in (PLAIN_JSON, JSON_LINES):
        assert found == notifications
    else:
        assert [one["type"] for one in found] == [PLAIN_TYPE] * len(several)
        assert [{name[5:]: one[name] for name in one if name.startswith("data.")} for one in found] == several
        assert [one.id for one in found] == [f"siena/{number}" for number in range(len(several))]


@pytest.mark.parametrize("format", [STRUCTURED, BATCH, BINARY], ids=lambda one: type(one).__name__)
def test_an_event_stays_the_event_that_it_is(format):
    event = palio.Notification.from_cloudevent(EVENT, by_source=True)
    [message] = format.write([envelope(event)])
    assert read(message, by_source=True) == [event]
    assert read(message)[0].id == "1"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content-Type": "application/json"}, PLAIN_JSON),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, PLAIN_JSON),
        ({"Content-Type": "application/vnd.shop.v1+json"}, PLAIN_JSON),
        ({"Content-Type": "application/x-ndjson"}, JSON_LINES),
        ({"Content-Type": "application/jsonl"}, JSON_LINES),
        ({"Content-Type": "application/cloudevents+json"}, STRUCTURED),
        ({"Content-Type": "application/cloudevents-batch+json"}, BATCH),
        ({"Content-Type": "application/json", "CE-Id": "1"}, BINARY),
        ({"Content-Type": "image/png", "ce-id": "1"}, BINARY),
        ({"ce-id": "1"}, BINARY),
        ({"Content-Type": "application/cloudevents+json", "ce-id": "1"}, STRUCTURED),
        ({"Content-Type": "application/x-ndjson", "ce-id": "1"}, BINARY),
    ],
)
def test_headers_say_which_format_it_is(headers, expected):
    assert format_of(Message.of(headers.items(), b"")) is expected


def test_another_media_type_is_told_which_ones_there_are():
    with pytest.raises(WrongMediaType) as caught:
        format_of(Message.of([("Content-Type", "text/csv")], b""))
    assert str(caught.value) == (
        "This is 'text/csv', and should be application/json, application/x-ndjson, "
        "application/cloudevents+json or application/cloudevents-batch+json, or have ce-… headers. "
        "With curl: --json, or -H 'Content-Type: application/json'."
    )


def test_lines_are_told_by_their_number_and_bounded_as_they_are_read():
    def message(body):
        return Message((("content-type", "application/x-ndjson"),), body)

    lines = read_message(message(b'{"a": 1}\n\n{"b": [}\n'), Reading())
    assert next(lines) == palio.Notification({"a": 1})
    with pytest.raises(palio.InvalidNotification, match=r"^line 3: \$: This is not JSON"):
        next(lines)
    few = read_message(message(b"{}\n" * 3), Reading(most=2))
    assert [next(few), next(few)] == [palio.Notification({})] * 2
    with pytest.raises(palio.InvalidNotification, match="One request may have 2 events"):
        next(few)


@pytest.mark.parametrize("name", ["events.jsonl", "a/b.ndjson", "x.json", "x.txt", "events.jsonl.gz"])
def test_files_of_lines_are_known_by_their_names(name):
    assert file_format(name) is JSON_LINES


def test_another_file_is_not_known():
    assert file_format("events.parquet") is None
    assert file_format("events") is None


class Pairs:
    """A format of its own: `name=value` in each line of a whole file, which is one event."""

    media_types = ("text/x-pairs",)
    suffixes = (".pairs",)
    by_line = False

    def read(self, message, reading):
        yield from (one for _, one in self.read_part(message.body.decode(), reading))

    def write(self, occurrences):
        return [Message((("Content-Type", "text/x-pairs"),), b"") for _ in occurrences]

    def read_part(self, text, reading):
        return [(None, palio.Notification(dict(line.split("=") for line in text.splitlines())))]


def test_a_new_format_is_one_more_entry(monkeypatch, tmp_path):
    pairs = Pairs()
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, pairs))
    monkeypatch.setattr(registry, "FILE_FORMATS", (*registry.FILE_FORMATS, pairs))
    expected = palio.Notification({"symbol": "ACME", "side": "buy"})
    body = b"symbol=ACME\nside=buy\n"
    assert list(read_message(Message.of([("Content-Type", "text/x-pairs")], body), Reading())) == [expected]
    with pytest.raises(WrongMediaType, match="or text/x-pairs, or have ce-… headers"):
        format_of(Message.of([], b""))
    file = tmp_path / "event.pairs"
    file.write_bytes(body)
    with LineFile(str(file)) as opened:
        [event] = read_events(opened, lambda *problem: pytest.fail(str(problem)))
    assert (event.line, event.item, event.notification) == (1, None, expected)


def test_files_say_what_messages_leave_to_their_headers(tmp_path):
    """In a file nobody says what an object is: one with a specversion is a CloudEvent, an array a batch."""
    lines = [{"price": 1}, EVENT, [EVENT, EVENT | {"id": "2"}]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    [_, in_message, *_] = read_message(
        Message.of([("Content-Type", "application/x-ndjson")], text.encode()[: text.index("[")]), Reading()
    )
    assert in_message.id is None
    found = [part for line in io.StringIO(text) for part in JSON_LINES.read_part(line, Reading())]
    assert [(item, one.id) for item, one in found] == [(None, None), (None, "1"), (0, "1"), (1, "2")]
