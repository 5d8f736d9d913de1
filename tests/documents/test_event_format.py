"""CloudEvents in XML say what the same events say in JSON; what XML cannot hold, or is hostile, is refused."""

import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palio
from palio.documents.errors import DocumentRefused
from palio.documents.event_format import EVENTS, XML_BATCH, XML_EVENT, XML_FORMATS
from palio.model.formats import BATCH, STRUCTURED, Message, Reading, WrongMediaType, format_of, read_message
from palio.protocol.envelope import Envelope

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
characters = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")
texts = st.text(characters, max_size=9)
scalars = st.booleans() | st.integers(-(2**31), 2**31 - 1) | texts
names = st.from_regex(r"[a-z][a-z0-9]{0,7}", fullmatch=True).map(lambda name: f"x{name}")
data = (
    st.dictionaries(names, scalars | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3)
    | texts.map(lambda text: text.replace("", "\n\r\t&<]]>")[:12])
    | st.lists(st.integers(0, 9), min_size=1, max_size=3)
)


@st.composite
def events(draw):
    event = {"specversion": "1.0", "id": draw(texts.filter(bool)), "source": "/s", "type": "t"}
    event |= draw(st.dictionaries(names, scalars, max_size=3))
    event |= draw(
        st.sampled_from([{}, {"time": "2026-01-31T12:00:00.5Z"}, {"dataschema": "https://s.example"}])
    )
    if draw(st.booleans()):
        return event | {"data_base64": "AQID", "datacontenttype": "image/png"}
    return event | {"datacontenttype": "application/json", "data": draw(data)}


def read(message):
    return list(read_message(Message.of(message.headers, message.body), Reading(), XML_FORMATS))


def envelopes(several):
    made = [palio.Notification.from_cloudevent(event) for event in several]
    return [Envelope("siena", at, NOON.timestamp(), 0, "siena", one) for at, one in enumerate(made)]


@given(st.lists(events(), min_size=1, max_size=3))
def test_an_event_is_the_same_in_json_and_in_xml(several):
    written = envelopes(several)
    expected = [one.notification for one in written]
    [in_json], [in_xml] = BATCH.write(written), XML_BATCH.write(written)
    assert read(in_json) == read(in_xml) == expected
    assert [read(message)[0] for message in XML_EVENT.write(written)] == expected
    assert [read(message)[0] for message in STRUCTURED.write(written)] == expected


def test_what_was_no_event_becomes_one():
    [message] = XML_EVENT.write(
        [Envelope("siena", 7, NOON.timestamp(), 0, "siena", palio.Notification({"n": 1}))]
    )
    [event] = read(message)
    assert (event.id, event["type"], event["data.n"]) == ("siena/7", "palio.event", 1)


@pytest.mark.parametrize("value", ["a\nb", "\x01", "\ufffe"])
def test_what_xml_cannot_hold_is_not_written(value):
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": value}
    with pytest.raises(palio.InvalidNotification, match=r"^\$\.subject: "):
        XML_EVENT.write(envelopes([event]))


def event(inner, attributes=""):
    core = "<c:id>1</c:id><c:source>/s</c:source><c:type>t</c:type>"
    namespaces = f'xmlns:c="{EVENTS}" xmlns:x="http://www.w3.org/2001/XMLSchema-instance"'
    return f'<c:event specversion="1.0" {namespaces}{attributes}>{core}{inner}</c:event>'.encode()


def xml_message(body, format=XML_EVENT):
    return Message((("content-type", format.media_types[0]),), body)


def test_json_within_xml_is_seen_by_filters():
    json = '<c:datacontenttype>application/json</c:datacontenttype><c:data x:type="xs:string">{"n": 5}</c:data>'
    [found] = read(xml_message(event(json)))
    assert found["data.n"] == 5


def test_prefixes_are_whatever_the_document_says():
    schema = ' xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns:xs="urn:other"'
    [found] = read(xml_message(event('<c:data x:type="s:string">text</c:data>', schema)))
    assert found["data"] == "text"
    with pytest.raises(palio.InvalidNotification, match=r"^\$\.data: The xsi:type of data"):
        read(xml_message(event('<c:data x:type="xs:string">text</c:data>', schema)))


def test_xml_data_keep_the_namespaces_that_they_stand_in():
    [found] = read(xml_message(event('<c:data x:type="xs:any"><n:a n:b="1"/></c:data>', ' xmlns:n="urn:n"')))
    assert b'xmlns:n="urn:n"' in found.payload
    assert found.payload.startswith(b"<n:a ")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'<!DOCTYPE e [<!ENTITY a "b">]><e>&a;</e>', DocumentRefused),
        (b"<e>", DocumentRefused),
        (b"", DocumentRefused),
        (b"<e/>", palio.InvalidNotification),
        (event("<c:time>2026-02-30T12:00:00Z</c:time>"), palio.InvalidNotification),
        (event('<c:n x:type="c:integer">99999999999</c:n>'), palio.InvalidNotification),
        (event('<c:n x:type="c:integer">4294967296</c:n>'), palio.InvalidNotification),
        (event('<c:u x:type="c:uriRef">a b</c:u>'), palio.InvalidNotification),
        (event('<c:b x:type="c:binary">x</c:b>'), palio.InvalidNotification),
        (event('<c:b x:type="c:boolean">1</c:b>'), palio.InvalidNotification),
    ],
)
def test_what_is_wrong_is_refused(body, error):
    with pytest.raises(error):
        read(xml_message(body))


def test_a_batch_is_bounded_and_its_events_are_told_by_their_places():
    batch = b'<c:batch xmlns:c="%s">%s</c:batch>' % (EVENTS.encode(), event("") + event("<c:nobody/>"))
    with pytest.raises(palio.InvalidNotification, match=r"^\$\[1\]\.nobody: "):
        read(xml_message(batch, XML_BATCH))
    with pytest.raises(palio.InvalidNotification, match="One request may have 1 events"):
        list(read_message(xml_message(batch, XML_BATCH), Reading(most=1), XML_FORMATS))


def test_only_who_has_these_formats_reads_them():
    assert format_of(xml_message(b""), XML_FORMATS) is XML_EVENT
    with pytest.raises(WrongMediaType, match=r"application/cloudevents-batch\+json, or have"):
        format_of(xml_message(b""))
    with pytest.raises(WrongMediaType, match=r"or application/cloudevents-batch\+xml, or have"):
        format_of(Message((("content-type", "text/csv"),), b""), XML_FORMATS)


def test_without_lxml_it_is_said_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(palio.MissingDependency, match=r"pip install 'palio\[xml\]'"):
        read(xml_message(event("")))
