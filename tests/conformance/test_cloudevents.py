"""The CloudEvents project's own cases for its JSON format, read in place."""

import json

from palio import InvalidNotification, Notification


def cases(shared, name):
    return json.loads((shared / "conformance" / "cloudevents_format" / f"{name}.json").read_text())["tests"]


def refused(read, document) -> bool:
    try:
        read(json.dumps(document))
    except InvalidNotification:
        return True
    return False


def test_valid_events_are_taken(shared):
    for case in cases(shared, "json-valid-events"):
        n = Notification.from_cloudevent(json.dumps(case["event"]))
        assert n.id == case["event"]["id"], case["id"]


def test_invalid_events_are_refused(shared):
    for case in cases(shared, "json-invalid-events"):
        assert refused(Notification.from_cloudevent, case["event"]), case["id"]


def test_valid_batches_are_taken(shared):
    for case in cases(shared, "json-valid-batches"):
        assert len(Notification.from_cloudevents(json.dumps(case["batch"]))) == len(case["batch"]), case["id"]


def test_invalid_batches_are_refused(shared):
    for case in cases(shared, "json-invalid-batches"):
        assert refused(Notification.from_cloudevents, case["batch"]), case["id"]
