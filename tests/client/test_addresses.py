"""Addresses of brokers."""

import pytest

from palio.client.address import parse_addresses
from palio.client.errors import WrongAddress


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("palio://127.0.0.1:7171", [("127.0.0.1", 7171)]),
        ("palio://one.example", [("one.example", 7070)]),
        ("palio://one:1,two:2/", [("one", 1), ("two", 2)]),
        ("palio://one, palio://two:2", [("one", 7070), ("two", 2)]),
        ("palio://[::1]:7171,[::1]", [("::1", 7171), ("::1", 7070)]),
    ],
)
def test_hosts_and_ports(text, addresses):
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:7070",
        "http://h:1",
        "palio://",
        "palio://h:0",
        "palio://a,,b",
        "palio://h:x",
        "palio://h:70000",
    ],
)
def test_what_is_none(text):
    with pytest.raises(WrongAddress, match="is no address of a broker") as caught:
        parse_addresses(text)
    assert caught.value.address == text
