"""The OpenAPI description is what the broker does, and its page needs nobody else."""

import re

import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from palio import testing
from palio.broker.gateway.definitions import Definition
from palio.broker.gateway.problems import STATUSES
from palio.broker.gateway.representations import FilterExpression, Wish
from palio.broker.gateway.settings import GatewaySettings
from palio.language import MEMBERS

CHECKS = (
    not_a_server_error,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)


@pytest.fixture(scope="module")
def url():
    # Nobody is called: addresses that are drawn are never those of tests.
    broker = testing.broker(journal=True, http=True, gateway=GatewaySettings(push_within=0.2))
    with broker:
        yield broker.url


def operations(url):
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    # What is too long for its place may be too long for a head: it is refused before anybody looks at it.
    rejection = schema.config.checks.negative_data_rejection
    rejection.expected_statuses = [*rejection.expected_statuses, "414", "431"]
    return [result.ok() for result in schema.get_all_operations()]


def vanishes(value):
    """Whether a part of it is nothing, which has no place in an address."""
    if isinstance(value, dict):
        return vanishes(list(value.values()))
    return not value or any(map(vanishes, value)) if isinstance(value, list) else value is None


def check_all(url, examples):
    found = operations(url)
    assert len(found) == 24
    for operation in found:
        strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
        hostile = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(st.one_of(strategy, hostile))
        def conforms(case):
            if isinstance(case.query, dict):
                # What is wrong with a value that is not sent in whole may not be sent at all.
                assume(not any(vanishes(value) for value in case.query.values()))
                if (case.method, case.path) == ("GET", "/events"):
                    case.query["wait"] = "0"
            case.call_and_validate(base_url=url, checks=CHECKS, timeout=10)

        conforms()


def test_the_broker_does_what_the_description_says(url):
    check_all(url, 8)


@pytest.mark.slow
def test_the_broker_does_what_the_description_says_again_and_again(url):
    check_all(url, 500)


def test_every_status_is_described(url):
    document = requests.get(f"{url}/openapi.json", timeout=10).json()
    described = {
        int(status)
        for path in document["paths"].values()
        for operation in path.values()
        for status in operation["responses"]
    }
    # Of routes and methods that there are not, and of what has to become a WebSocket, which is not described.
    assert set(STATUSES.values()) - described <= {405, 426, 500}


def named(part):
    """All components that a part of the description refers to."""
    if isinstance(part, dict):
        found = {part["$ref"].removeprefix("#/components/schemas/")} if "$ref" in part else set()
        return found.union(*map(named, part.values()))
    return set().union(*map(named, part)) if isinstance(part, list) else set()


def test_every_component_is_there_and_used(url):
    document = requests.get(f"{url}/openapi.json", timeout=10).json()
    assert named(document) == document["components"]["schemas"].keys()
    assert {"Problem", "Wish", "ShownSubscription", "Confirmed", "EventDocument"} <= named(document)


def test_the_description_is_that_of_what_is_read():
    """Dialects and parameters are listed where they are read, and described nowhere else."""
    assert set(msgspec.json.schema(FilterExpression)["$defs"]["FilterExpression"]["properties"]) == set(MEMBERS)
    schema = msgspec.json.schema(Wish)["$defs"]["Wish"]["properties"]
    kept = {field.name for field in msgspec.structs.fields(Definition)}
    assert schema.keys() == kept | {"filter", "dialect"}  # which become one of the filters


def test_the_page_lists_everything_and_fetches_nothing(url):
    answer = requests.get(f"{url}/docs", timeout=10)
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert not re.search(r"src=|@import|url\(|<script|<link", answer.text)
    for path in requests.get(f"{url}/openapi.json", timeout=10).json()["paths"]:
        assert f"<code>{path}</code>" in answer.text
    assert "curl -N" in answer.text


def test_the_first_page_is_one_for_people_and_data_for_programs(url):
    """A browser gets a page that needs nobody else, curl gets JSON, and all that is named is there."""
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page, data = requests.get(url, headers=browser, timeout=10), requests.get(url, timeout=10)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Vary"] == data.headers["Vary"] == "Accept"
    assert not re.search(r"(src|href)=[\"']?https?:", page.text)
    told = data.json()
    assert (told["broker"], told["protocol"]) == ("broker", "palio/2")
    assert "<h1>broker</h1>" in page.text
    assert told["version"] in page.text
    assert f"{url}/events" in page.text
    for path in told["links"].values():
        assert f"<a href='{path}'>" in page.text
        assert requests.get(url + path, timeout=10, stream=True).status_code == 200, path


def test_a_brokers_name_is_text_on_its_page():
    broker = testing.broker(name="<i>x</i>", http=True)
    with broker:
        page = requests.get(broker.url, headers={"Accept": "text/html"}, timeout=10).text
        assert "<h1>&lt;i&gt;x&lt;/i&gt;</h1>" in page
        assert "<i>" not in page


def test_a_method_that_is_not_there_is_answered_with_all_that_are(url):
    described = requests.get(f"{url}/openapi.json", timeout=10).json()["paths"]
    for path, methods in described.items():
        answer = requests.patch(url + path.replace("{id}", "x"), timeout=10)
        assert answer.status_code == 405
        assert set(answer.headers["Allow"].split(", ")) == {method.upper() for method in methods}, path
    assert set(requests.patch(f"{url}/events", timeout=10).headers["Allow"].split(", ")) == {"GET", "POST"}
