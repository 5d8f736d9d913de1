"""Events that are decoded into objects of a type of the user's."""

import dataclasses
from datetime import UTC, datetime
from typing import TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import palio
import palio.sync
from palio import testing
from palio.client.decoding import Decoding, content_of
from palio.client.event import Event


@dataclasses.dataclass
class Money:
    amount: float
    currency: str = "EUR"


@dataclasses.dataclass
class Item:
    sku: str


@dataclasses.dataclass
class Order:
    id: int
    total: Money
    items: list[Item] = dataclasses.field(default_factory=list)
    at: datetime | None = None
    tags: tuple[str, ...] = ()


class Quote(msgspec.Struct):
    symbol: str
    price: float


class Plain(TypedDict):
    symbol: str


class Picky(msgspec.Struct):
    price: float

    def __post_init__(self):
        if self.price < 0:
            raise RuntimeError("below zero")


CONTENT = {
    "id": 7,
    "total": {"amount": 12, "currency": "USD"},
    "items": [{"sku": "a"}, {"sku": "b"}],
    "at": datetime(2026, 7, 2, tzinfo=UTC),
    "tags": ["x", "y"],
}


def came(content):
    body = palio.Notification(content).body
    return Event("siena", 3, 0.0, 0, "siena", body)


def test_dotted_names_are_nested_objects_and_nothing_is_left_out():
    order = Decoding(Order).decode(came(CONTENT))
    assert order == Order(7, Money(12.0, "USD"), [Item("a"), Item("b")], CONTENT["at"], ("x", "y"))
    assert Decoding(Quote).decode(came({"symbol": "ACME", "price": 1})).price == 1.0
    assert Decoding(Plain).decode(came({"symbol": "ACME"})) == {"symbol": "ACME"}


def test_models_of_pydantic():
    pydantic = pytest.importorskip("pydantic")

    class Total(pydantic.BaseModel):
        amount: float

    class Bill(pydantic.BaseModel):
        total: Total
        items: list[Item]

    assert Decoding(Bill).decode(came(CONTENT)).items[1].sku == "b"
    with pytest.raises(palio.UndecodableEvent) as caught:
        Decoding(Bill).decode(came(CONTENT | {"items": [{"sku": "a"}, {"sku": 2}]}))
    assert caught.value.path == "$.items[1].sku"


@pytest.mark.parametrize(
    ("into", "content", "path", "reason"),
    [
        (Order, CONTENT | {"total": {"amount": "12"}}, "$.total.amount", "Expected `float`, got `str`"),
        (Order, CONTENT | {"items": [{"sku": "a"}, {"sku": 2}]}, "$.items[1].sku", "Expected `str`, got `int`"),
        (Order, {"id": 1}, "$", "Object missing required field `total`"),
        (Picky, {"price": -1}, "$", "RuntimeError: below zero"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(into, content, path, reason):
    with pytest.raises(palio.UndecodableEvent) as caught:
        Decoding(into).decode(came(content))
    assert (caught.value.path, caught.value.reason) == (path, reason)
    assert str(caught.value) == f"The event siena/3 cannot be decoded into {into.__name__}: {path}: {reason}"


@pytest.mark.parametrize("into", [int, "Quote", lambda: None, list[str]])
def test_a_type_that_cannot_be_made_is_refused(into):
    with pytest.raises(palio.WrongType):
        Decoding(into)


names = st.sampled_from("abc")
plain = st.integers(-9, 9) | st.text("xy", max_size=2) | st.just([{"a": True}])
nested = st.dictionaries(names, plain, min_size=1, max_size=2)
content = st.dictionaries(names, plain | nested | st.dictionaries(names, nested, min_size=1, max_size=2))


@given(content)
def test_content_comes_back_as_it_was_published(published):
    assert content_of(came(published)) == published


async def test_what_cannot_be_decoded_is_raised_in_its_place():
    async with testing.broker() as address, palio.connect(address) as client:
        subscription = await client.subscribe("price > 0", into=Quote)
        for symbol in ("ACME", 7, "PALI"):
            await client.publish({"symbol": symbol, "price": 101})
        event = await subscription.next(timeout=10)
        assert event.value == Quote("ACME", 101.0)
        with pytest.raises(palio.UndecodableEvent) as caught:
            await anext(subscription)
        assert caught.value.path == "$.symbol"
        assert (await subscription.next(timeout=10)).value.symbol == "PALI"
        statistics = subscription.statistics()
        assert (statistics.handed_out, statistics.dropped) == (2, {"undecodable": 1})
        plain = await client.subscribe("price > 0")
        await client.publish({"price": 1})
        event = await plain.next(timeout=10)
        assert event.value == event.notification == palio.Notification({"price": 1})


async def test_reaching_back_goes_on_behind_what_cannot_be_decoded():
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        await client.publish([{"symbol": symbol, "price": 1} for symbol in ("A", 7, "B")])
        history = await client.subscribe("price > 0", since="all", into=Quote)
        assert (await history.next(timeout=10)).value.symbol == "A"
        with pytest.raises(palio.UndecodableEvent):
            await history.next(timeout=10)
        assert (await history.next(timeout=10)).value.symbol == "B"


def test_without_an_event_loop_nothing_is_lost_around_it():
    with testing.broker() as address, palio.sync.connect(address) as client:
        subscription = client.subscribe("price > 0", into=Quote)
        client.publish([{"symbol": symbol, "price": 1} for symbol in ("A", "B", 7, "C")])
        assert [subscription.next(timeout=10).value.symbol for _ in range(2)] == ["A", "B"]
        with pytest.raises(palio.UndecodableEvent):
            subscription.next(timeout=10)
        assert subscription.next(timeout=10).value.symbol == "C"
