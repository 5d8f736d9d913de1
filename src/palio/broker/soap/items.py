"""ONVIF's ItemFilter: conditions over the items of a message, as a filter over the attributes of the event.

    boolean(//tt:SimpleItem[@Name="IsMotion" and @Value="true"]) and not(boolean(//tt:SimpleItem[@Name="test"]))

It is a part of XPath, and read as XPath: `and`, `or` and `not` of paths to items, which are told by their name
and, if it matters, their value. An item's value is a text, and stands for every value that is written so: "5"
for the integer and the string, "true" for the bool and the string. A list is several items of one name.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from palio.broker.soap.names import TT
from palio.documents.xpath import (
    LocationPath,
    LocationStep,
    NameTest,
    NodeTest,
    XPathCall,
    XPathExpression,
    XPathOperation,
    XPathString,
    read_xpath,
)
from palio.model.constraint import Constraint
from palio.model.errors import PalioError
from palio.model.expression import Condition, Expression, Not, conjunction, disjunction
from palio.model.filter import Filter
from palio.model.moments import format_time, parse_time
from palio.model.values import INT_MAX, INT_MIN, KIND_OF_TYPE, Kind, check_name

_ANYWHERE = LocationStep("descendant-or-self", NodeTest("node"))
_ITEM = NameTest(TT, "SimpleItem")


class WrongItemFilter(PalioError):
    """An ItemFilter that says what no such filter can."""

    reason: str
    sentence = (
        "{reason} What can be joined by `and`, `or` and `not` is boolean(//tt:SimpleItem[…]) with a @Name."
    )


def item_filter(text: str, prefixes: Mapping[str | None, str]) -> Filter:
    """The filter that an ItemFilter is. Raises `WrongItemFilter`, and what is wrong with the XPath."""
    declared = {prefix: uri for prefix, uri in prefixes.items() if prefix}
    return Filter.from_expression(_expression(read_xpath(text, declared).tree))


def _expression(tree: XPathExpression) -> Expression:
    match tree:
        case XPathOperation("and", left, right):
            return conjunction([_expression(left), _expression(right)])
        case XPathOperation("or", left, right):
            return disjunction([_expression(left), _expression(right)])
        case XPathCall("not", (operand,)):
            return Not(_expression(operand))
        case XPathCall("boolean", (operand,)):
            return _expression(operand)
        case LocationPath(True, (before, LocationStep("child", test, predicates))) if (before, test) == (
            _ANYWHERE,
            _ITEM,
        ):
            return _item(predicates)
    raise WrongItemFilter("This is not a condition over SimpleItems.")


def _item(predicates: tuple[XPathExpression, ...]) -> Expression:
    """That there is an item for which all of these hold."""
    said: dict[str, str] = {}
    waiting = list(predicates)
    while waiting:
        match waiting.pop():
            case XPathOperation("and", left, right):
                waiting += [left, right]
            case XPathOperation(
                "=", LocationPath(False, (LocationStep("attribute", test, ()),)), XPathString(value)
            ):
                name = test.local if isinstance(test, NameTest) and not test.namespace else None
                if name not in ("Name", "Value") or name in said:
                    raise WrongItemFilter("An item is told by one @Name and at the most one @Value.")
                said[name] = value
            case _:
                raise WrongItemFilter('An item is told by `@Name="…"` and `@Value="…"` alone.')
    if "Name" not in said:
        raise WrongItemFilter("There is an item without @Name.")
    name = said["Name"]
    check_name(name, "@Name")
    if "Value" not in said:
        return Condition(name, Constraint("exists"))  # an empty list counts, too, though it is no item at all
    # 5 and 5.0 are equal, but not written alike.
    constraints = [Constraint("=", one, Kind(KIND_OF_TYPE[type(one)])) for one in values_written(said["Value"])]
    alternatives = [Condition(name, one) for one in constraints]
    return disjunction([*alternatives, *[Condition(name, Constraint("has", one)) for one in constraints]])


def values_written(text: str) -> list[Any]:
    """All values that are written as this text in an item."""
    values: list[Any] = [text]
    if text in ("true", "false"):
        values.append(text == "true")
    values += [number for number in _numbers(text) if repr(number) == text]
    moment = _moment(text)
    if moment is not None:
        values.append(moment)
    try:
        content = base64.b64decode(text, validate=True)
        if base64.b64encode(content).decode() == text:
            values.append(content)
    except (binascii.Error, ValueError):
        pass
    return values


def _numbers(text: str) -> list[int | float]:
    try:
        if text.lstrip("-").isdigit():
            number = int(text)
            return [number] if INT_MIN <= number <= INT_MAX else []
        return [float(text)]
    except ValueError:
        return []


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_time(text)
        return moment if format_time(moment) == text else None
    except ValueError:
        return None
