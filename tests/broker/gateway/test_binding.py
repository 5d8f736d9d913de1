"""CloudEvents to HTTP and back, and hostile headers and JSON: hypothesis draws them."""

import asyncio
import base64
import json

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import testing
from palio.broker.gateway.stream_request import read_position, read_since, write_position
from palio.model.cloudevents import as_event, wrapped
from palio.model.errors import PalioError
from palio.model.formats import BINARY, STRUCTURED, Message, Reading, read_message
from palio.model.moments import parse_time
from palio.protocol.envelope import Envelope

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
extensions = st.dictionaries(st.from_regex(r"[a-z0-9]{1,10}", fullmatch=True), texts, max_size=3)
leaves = st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | texts
names = st.from_regex(r"[A-Za-z_]{1,6}", fullmatch=True)
data = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(names, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)
RESERVED = ("data", "time", "specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject")


@st.composite
def events(draw):
    event = {name: draw(texts) for name in ("id", "source", "type")} | {"specversion": "1.0"}
    event |= {name: value for name, value in draw(extensions).items() if name not in RESERVED}
    if draw(st.booleans()):
        event["time"] = "2026-01-31T12:00:00Z"
    kind = draw(st.sampled_from(["json", "text", "bytes", "none"]))
    if kind == "json":
        event |= {"datacontenttype": "application/json", "data": draw(data)}
    elif kind == "text":
        event |= {"datacontenttype": "text/plain", "data": draw(texts)}
    elif kind == "bytes":
        body = draw(st.binary(min_size=1, max_size=20))
        event |= {"datacontenttype": "image/png", "data_base64": base64.b64encode(body).decode()}
    return event


@settings(max_examples=50)  # each is drawn slowly
@given(events())
def test_what_is_sent_in_either_mode_is_read_again(event):
    expected = palio.Notification.from_cloudevent(event, by_source=True)
    published = Envelope("siena", 7, 0.0, 0, "siena", expected)
    for format in (BINARY, STRUCTURED):
        [message] = format.write([published])
        assert all(value.isascii() and value.isprintable() for _, value in message.headers)
        [read] = read_message(Message.of(message.headers, message.body), Reading(by_source=True))
        assert read == expected
    assert palio.Notification.from_cloudevent(as_event(expected), by_source=True) == expected


@given(st.dictionaries(names, leaves, max_size=4), st.none() | st.binary(max_size=10), st.none() | texts)
def test_what_is_no_event_becomes_one(attributes, payload, id):
    notification = palio.Notification(attributes, payload=payload, id=id)
    moment = parse_time("2026-01-31T12:00:00Z")
    event = wrapped(notification, origin="siena/1", sequence=7, time=moment)
    read = palio.Notification.from_cloudevent(json.dumps(event))
    assert {name.removeprefix("data."): read[name] for name in read if name.startswith("data.")} == attributes
    assert (read["source"], read["time"]) == ("/palio/siena%2F1", moment)
    assert read.id == (id or "siena/1/7")


def test_since_is_a_word_a_moment_or_a_number_of_seconds():
    for said, meant in ((1.5, 1.5), ("all", "all"), ("now", "now"), (None, None)):
        assert read_since(said) == meant
    for wrong in (-1.0, 1e12, "yesterday"):
        with pytest.raises(PalioError):
            read_since(wrong)


@given(st.dictionaries(texts, st.integers(0, 10**17), min_size=1, max_size=5))
def test_positions_are_read_as_they_are_written(position):
    assert read_position(write_position(position)) == position


@given(
    st.lists(
        st.tuples(st.from_regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}", fullmatch=True), st.text(max_size=20)),
        max_size=6,
    ),
    st.lists(
        st.sampled_from(["ce-id", "ce-specversion", "ce-type", "ce-source", "ce-time", "content-type"]),
        max_size=6,
    ),
    st.binary(max_size=60) | data.map(lambda value: json.dumps(value).encode()),
)
def test_whatever_comes_is_taken_or_refused_with_a_sentence(headers, known, body):
    drawn = [(name, value.encode("utf-8", "replace").decode("latin-1")) for name, value in headers]
    drawn += [(name, drawn[0][1] if drawn else "1.0") for name in known]
    refused = None
    try:
        for notification in read_message(Message.of(drawn, body), Reading(by_source=True)):
            json.loads(json.dumps(as_event(notification)))
    except PalioError as problem:
        refused = str(problem)
    assert refused != ""


def test_whatever_is_sent_over_a_socket_is_answered():
    """The same through the server: never an error of its own, always a document."""
    broker = testing.broker(journal=True, http=True)
    media_types = [
        "application/json",
        "application/x-ndjson",
        "application/cloudevents+json",
        "application/cloudevents-batch+json",
        "text/plain",
    ]
    header = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)
    ce = st.dictionaries(
        st.sampled_from(
            ["ce-id", "ce-source", "ce-type", "ce-specversion", "ce-x", "ce-X-Y", "idempotency-key"]
        ),
        header,
    )
    documents = st.binary(max_size=200) | data.map(lambda value: json.dumps(value).encode())

    @settings(max_examples=150, deadline=None, database=None)
    @given(st.sampled_from(media_types), ce, documents)
    def check(media_type, headers, body):
        async def send():
            async with (
                aiohttp.ClientSession(broker.url) as session,
                session.post("/events", data=body, headers=headers | {"Content-Type": media_type}) as answer,
            ):
                document = json.loads(await answer.read())
                assert answer.status in (200, 400, 415), document
                assert answer.status == 200 or document["detail"]

        asyncio.run(send())

    with broker:
        check()
