"""The CloudEvents project's own cases for its XML format, read in place: as they are, and sent through HTTP."""

import asyncio

from lxml import etree

import palio
from palio.documents.event_format import XML_BATCH, XML_EVENT, XML_FORMATS
from palio.model.formats import Message, Reading, read_message
from tests.broker.gateway.calling import calling

# Needs to be told beforehand which extensions there are, and of which types.
BY_REGISTRY = "invalidExtensionWithConflictingType"


def cases(shared, name):
    """Each case by its name: the bytes of its document."""
    file = shared / "conformance" / "cloudevents_format" / f"xml-{name}.xml"
    tests = etree.parse(str(file)).getroot().findall("test")
    return {
        one.get("id"): etree.tostring(one.find("*"), encoding="UTF-8", with_tail=False)
        for one in tests
        if one.get("id") != BY_REGISTRY
    }


def read(format, body):
    message = Message((("content-type", format.media_types[0]),), body)
    return list(read_message(message, Reading(), XML_FORMATS))


def refused(format, body) -> bool:
    try:
        read(format, body)
    except palio.InvalidNotification:
        return True
    return False


def test_valid_events_are_taken(shared):
    found = {name: read(XML_EVENT, body)[0] for name, body in cases(shared, "valid-events").items()}
    assert len(found) == 10
    assert all(one["specversion"] == "1.0" and one.id == one["id"] for one in found.values())
    assert dict(found["validMinimalWithComments"]) == dict(found["validMinimal"])
    extensions = found["validAllExtensionTypes"]
    assert (extensions["extinteger"], extensions["extboolean"], extensions["extbinary"]) == (10, True, "TWE=")
    assert found["validSimpleTextData"]["data"] == "Simple text"
    assert found["validBinaryData"].payload == b"\x01\x02\x03"
    data = etree.fromstring(found["validXmlData"].payload)
    assert (data.tag, data.get("attr"), data[0].tag) == ("test", "x", "nested")
    assert found["validXmlData"]["datacontenttype"] == "application/xml"


def test_invalid_events_are_refused(shared):
    invalid = cases(shared, "invalid-events")
    assert len(invalid) == 52
    assert [name for name, body in invalid.items() if not refused(XML_EVENT, body)] == []


def test_valid_batches_are_taken(shared):
    sizes = {name: len(read(XML_BATCH, body)) for name, body in cases(shared, "valid-batches").items()}
    assert sizes == {
        "validBatchEmpty": 0,
        "validBatchMinimal": 1,
        "validBatchMinimalWithNonCloudEventElement": 1,
        "validBatchMinimalWithComment": 1,
        "validBatchMinimalWithAdditionalAttribute": 1,
        "validBatchMinimal2": 2,
        "validBatchMinimalAndAllCore": 2,
        "validBatchMinimalAndAllExtensionTypes": 2,
    }


def test_invalid_batches_are_refused(shared):
    invalid = cases(shared, "invalid-batches")
    assert len(invalid) == 7
    assert [name for name, body in invalid.items() if not refused(XML_BATCH, body)] == []


def test_the_suite_through_http(shared):
    async def check():
        async with calling() as (_, session):
            for kind, format in (("events", XML_EVENT), ("batches", XML_BATCH)):
                for validity, status in (("valid", 200), ("invalid", 400)):
                    for name, body in cases(shared, f"{validity}-{kind}").items():
                        headers = {"Content-Type": format.media_types[0]}
                        async with session.post("/events", data=body, headers=headers) as answer:
                            assert answer.status == status, (name, await answer.text())

    asyncio.run(asyncio.wait_for(check(), 60))
