"""The tree of an XPath 1.0 expression. Names are resolved: a tree holds namespaces, never prefixes.

What two spellings have in common is decided when a tree is made, so equal trees are equal expressions:

1. `//` is the step descendant-or-self::node(), `@` the axis attribute, `.` and `..` step to self and parent.
2. A step self::node() without predicates is left out wherever another step is there.
3. A step along `descendant` that asks for no position is `//` and a step along `child`.
4. `[position() = n]` is `[n]`; of two sides that are compared, a constant is the right one.
5. Parentheses are nowhere in a tree.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

XPathType: TypeAlias = Literal["node-set", "string", "number", "boolean"]
NODES: XPathType = "node-set"
STRING: XPathType = "string"
NUMBER: XPathType = "number"
BOOLEAN: XPathType = "boolean"

AXES = frozenset(
    (
        "ancestor",
        "ancestor-or-self",
        "attribute",
        "child",
        "descendant",
        "descendant-or-self",
        "following",
        "following-sibling",
        "namespace",
        "parent",
        "preceding",
        "preceding-sibling",
        "self",
    )
)
NODE_TYPES = frozenset(("comment", "text", "processing-instruction", "node"))


class NameTest(msgspec.Struct, frozen=True):
    """A test of names. Without `local` any local name will do; without `namespace` (None) any name at all.

    The empty namespace is none.
    """

    namespace: str | None
    local: str | None


class NodeTest(msgspec.Struct, frozen=True):
    """A test of what a node is: `node`, `text`, `comment` or `processing-instruction`, that with its target."""

    kind: str
    target: str | None = None


class LocationStep(msgspec.Struct, frozen=True):
    """From each node along an axis to those that pass the test and then each of the predicates in turn."""

    axis: str
    test: NameTest | NodeTest
    predicates: tuple[XPathExpression, ...] = ()


class LocationPath(msgspec.Struct, frozen=True):
    """Steps from the document, if it is absolute, or from the node that is looked at."""

    absolute: bool
    steps: tuple[LocationStep, ...]


class FilteredPath(msgspec.Struct, frozen=True):
    """Nodes that another expression gives, those of them that pass predicates, and steps from there."""

    nodes: XPathExpression
    predicates: tuple[XPathExpression, ...]
    steps: tuple[LocationStep, ...]


class XPathCall(msgspec.Struct, frozen=True):
    """A function of the core library with its operands."""

    function: str
    operands: tuple[XPathExpression, ...]


class XPathOperation(msgspec.Struct, frozen=True):
    """Two operands with an operator between them, as it is written: `or`, `=`, `div`, `|` …"""

    operator: str
    left: XPathExpression
    right: XPathExpression


class XPathNegation(msgspec.Struct, frozen=True):
    """The negative of a number."""

    operand: XPathExpression


class XPathString(msgspec.Struct, frozen=True):
    """A string that is written in the expression."""

    value: str


class XPathNumber(msgspec.Struct, frozen=True):
    """A number that is written in the expression; never negative."""

    value: float


XPathExpression: TypeAlias = (
    LocationPath | FilteredPath | XPathCall | XPathOperation | XPathNegation | XPathString | XPathNumber
)

ANY_NODE = NodeTest("node")
SELF = LocationStep("self", ANY_NODE)
PARENT = LocationStep("parent", ANY_NODE)
SEARCH = LocationStep("descendant-or-self", ANY_NODE)
DOCUMENT = LocationPath(True, ())


class FunctionSignature(msgspec.Struct, frozen=True):
    """What a function takes and gives. `None` as a type takes anything; the last one may be repeated."""

    gives: XPathType
    takes: tuple[XPathType | None, ...] = ()
    least: int = 0
    repeated: bool = False
    of_context: bool = False  # without an operand it is about the node that is looked at


FUNCTIONS: dict[str, FunctionSignature] = {
    "last": FunctionSignature(NUMBER),
    "position": FunctionSignature(NUMBER),
    "count": FunctionSignature(NUMBER, (NODES,), 1),
    "id": FunctionSignature(NODES, (None,), 1),
    "local-name": FunctionSignature(STRING, (NODES,), of_context=True),
    "namespace-uri": FunctionSignature(STRING, (NODES,), of_context=True),
    "name": FunctionSignature(STRING, (NODES,), of_context=True),
    "string": FunctionSignature(STRING, (None,), of_context=True),
    "concat": FunctionSignature(STRING, (None, None), 2, repeated=True),
    "starts-with": FunctionSignature(BOOLEAN, (None, None), 2),
    "contains": FunctionSignature(BOOLEAN, (None, None), 2),
    "substring-before": FunctionSignature(STRING, (None, None), 2),
    "substring-after": FunctionSignature(STRING, (None, None), 2),
    "substring": FunctionSignature(STRING, (None, None, None), 2),
    "string-length": FunctionSignature(NUMBER, (None,), of_context=True),
    "normalize-space": FunctionSignature(STRING, (None,), of_context=True),
    "translate": FunctionSignature(STRING, (None, None, None), 3),
    "boolean": FunctionSignature(BOOLEAN, (None,), 1),
    "not": FunctionSignature(BOOLEAN, (None,), 1),
    "true": FunctionSignature(BOOLEAN),
    "false": FunctionSignature(BOOLEAN),
    "lang": FunctionSignature(BOOLEAN, (None,), 1),
    "number": FunctionSignature(NUMBER, (None,), of_context=True),
    "sum": FunctionSignature(NUMBER, (NODES,), 1),
    "floor": FunctionSignature(NUMBER, (None,), 1),
    "ceiling": FunctionSignature(NUMBER, (None,), 1),
    "round": FunctionSignature(NUMBER, (None,), 1),
}

COMPARISONS = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# How tightly operators bind; the negative stands between those of numbers and the union.
PRECEDENCE = {
    "or": 1,
    "and": 2,
    "=": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "div": 6,
    "mod": 6,
    "|": 8,
}
NEGATIVE = 7


def type_of(expression: XPathExpression) -> XPathType:
    """What an expression always comes to."""
    match expression:
        case LocationPath() | FilteredPath() | XPathOperation("|"):
            return NODES
        case XPathCall(function):
            return FUNCTIONS[function].gives
        case XPathOperation(operator):
            return BOOLEAN if operator in COMPARISONS or operator in ("or", "and") else NUMBER
        case XPathString():
            return STRING
        case _:
            return NUMBER


def asks_position(predicate: XPathExpression) -> bool:
    """Whether it matters to a predicate which one of several nodes is looked at."""
    return type_of(predicate) == NUMBER or _calls_position(predicate)


def _calls_position(expression: XPathExpression) -> bool:
    match expression:
        case XPathCall(function, operands):
            return function in ("position", "last") or any(map(_calls_position, operands))
        case XPathOperation(_, left, right):
            return _calls_position(left) or _calls_position(right)
        case XPathNegation(operand):
            return _calls_position(operand)
        case FilteredPath(nodes):
            return _calls_position(nodes)
        case _:
            return False


def steps_in_order(steps: list[LocationStep]) -> tuple[LocationStep, ...]:
    """Steps without those that lead nowhere, and without two ways of saying the same."""
    found: list[LocationStep] = []
    for step in steps:
        if step == SELF:
            continue
        if step.axis == "descendant" and not any(map(asks_position, step.predicates)):
            step = LocationStep("child", step.test, step.predicates)
            if found[-1:] != [SEARCH]:
                found.append(SEARCH)
        if step != SEARCH or found[-1:] != [SEARCH]:
            found.append(step)
    return tuple(found)


def predicate_in_order(predicate: XPathExpression) -> XPathExpression:
    """`[n]` for `[position() = n]`."""
    match predicate:
        case XPathOperation("=", XPathCall("position"), XPathNumber() | XPathCall("last") as place):
            return place
        case XPathOperation("=", XPathCall("last") as place, XPathCall("position")):
            return place
        case _:
            return predicate


def comparison_in_order(operator: str, left: XPathExpression, right: XPathExpression) -> XPathOperation:
    """An operation; of what is compared, a constant is the right one."""
    constants = XPathString, XPathNumber
    if operator in COMPARISONS and isinstance(left, constants) and not isinstance(right, constants):
        return XPathOperation(COMPARISONS[operator], right, left)
    return XPathOperation(operator, left, right)
