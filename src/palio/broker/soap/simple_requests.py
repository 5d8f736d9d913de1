"""Requests of the simple protocol, as they are read: who, of which family, which conditions.

The elements are those of WS-BaseNotification and WS-BrokeredNotification, with a few of no namespace within.
Who writes them has not always the namespaces right, so what is within is found by its local name alone."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from lxml import etree

from palio.broker.soap.elements import Element, children, text_of
from palio.model.errors import PalioError, cut

MOST_CONDITIONS = 64  # of one subscription; so many conjunctions have room in a filter, too


class WrongSimpleRequest(PalioError):
    """A request that lacks something, or says something that has no meaning."""

    operation: str = cut(100)
    reason: str
    sentence = "This {operation} cannot be carried out: {reason}"


class SimplePublisher(msgspec.Struct, frozen=True):
    """What `RegisterPublisher` and `DestroyRegistration` say: a publisher, and names of a family."""

    address: str
    families: tuple[str, ...]


class SimpleCondition(msgspec.Struct, frozen=True):
    """An XPath, and the value that it is to have; without one, it is to be true, or to find something."""

    expression: str
    value: str | None


class SimpleSubscription(msgspec.Struct, frozen=True):
    """What `Subscribe`, `Unsubscribe` and `GetCurrentMessage` say. Conditions that stand together all hold."""

    consumer: str
    families: tuple[str, ...]
    conditions: tuple[SimpleCondition, ...]
    retroactive: bool
    handle: str


def read_publisher(asked: Element) -> SimplePublisher:
    """Raises `WrongSimpleRequest`."""
    address = _text(asked, "PublisherReference", "Address")
    topic = _first(asked, "Topic")
    families = () if topic is None else _names(topic, "schemalocation")
    if not families:
        raise WrongSimpleRequest(
            _local(asked), "It needs a Topic with a schemalocation, or with the namespace as Dialect."
        )
    return SimplePublisher(address, families)


def read_subscription(asked: Element) -> SimpleSubscription:
    """Raises `WrongSimpleRequest`."""
    expression = next((one for one in asked.iter("{*}TopicExpression")), None)
    handle = asked.get("handle", "")
    if expression is None and not handle:
        raise WrongSimpleRequest(
            _local(asked), "It needs a Filter with a TopicExpression, whose Dialect is the namespace."
        )
    wanted = [] if expression is None else list(expression.iter("{*}subscription"))
    conditions = [_condition(one, _local(asked)) for one in wanted if _first(one, "xpath") is not None]
    if len(conditions) > MOST_CONDITIONS:
        raise WrongSimpleRequest(
            _local(asked), f"It has {len(conditions):,} conditions; {MOST_CONDITIONS} are the most."
        )
    return SimpleSubscription(
        _text(asked, "ConsumerReference", "ReferenceParameters", "out")
        or _text(asked, "ConsumerReference", "Address"),
        () if expression is None else _names(expression, "xsdref"),
        tuple(conditions),
        any(_is_retroactive(one) for one in (asked, *wanted, *(one for one in asked.iter("{*}xpath")))),
        handle,
    )


def _condition(subscription: Element, operation: str) -> SimpleCondition:
    xpath, value = _first(subscription, "xpath"), _first(subscription, "value")
    expression = "" if xpath is None else (xpath.get("expression") or text_of(xpath)).strip()
    if not expression:
        raise WrongSimpleRequest(operation, "An xpath of it has no expression.")
    return SimpleCondition(expression, None if value is None else text_of(value))


def _is_retroactive(element: Element) -> bool:
    """`persistente` is what the first implementation has called it."""
    return "true" in (element.get("retroactive"), element.get("persistente"))


def _names(element: Element, schema: str) -> tuple[str, ...]:
    """What a family may be called by: its namespace, or a file of its schema."""
    place = next((one for one in element.iter(f"{{*}}{schema}")), None)
    said = (element.get("Dialect", ""), "" if place is None else place.get("location") or text_of(place))
    return tuple(dict.fromkeys(one.strip() for one in said if one.strip()))


def _text(element: Element, *path: str) -> str:
    found: Element | None = element
    for name in path:
        found = None if found is None else _first(found, name)
    return text_of(found)


def _first(element: Element, local: str) -> Element | None:
    return next(_named(element, local), None)


def _named(element: Element, local: str) -> Iterator[Element]:
    return (one for one in children(element) if _local(one) == local)


def _local(element: Element) -> str:
    return str(etree.QName(element).localname)
