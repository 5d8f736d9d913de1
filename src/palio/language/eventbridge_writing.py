"""A filter as an event pattern of EventBridge, where it is one.

A pattern is a conjunction of attributes, each with alternatives. Which matchers a set of values may be made of
is seen from how it is described: each constraint in the description suggests one, or a few. Those whose values
lie within the set are taken, and if together they are all of it, they are how it is said, without those that
can be spared. What is suggested may be nonsense: the reader says what each of them means, and in the end what
the whole pattern means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from palio.language.errors import UnwritableCondition
from palio.language.eventbridge import OR, parse_event_pattern
from palio.language.eventbridge_matchers import EXCLUDED, SIGNS
from palio.model import jsontext, numberline
from palio.model.constraint import IGNORING_CASE, IN_NETWORK, Constraint
from palio.model.describe import describe
from palio.model.errors import FilterError
from palio.model.expression import conditions, text_of, written
from palio.model.filter import Filter
from palio.model.questions import like_parts
from palio.model.values import Kind
from palio.model.valueset import EMPTY, ValueSet, union

DIALECT = "eventbridge"
# The reader writes each character as a set, with all that are the same if case is ignored, or any run of them.
_TOKEN = re.compile(r"\(\.\|\n\|\r\)\*|\[\\?(?P<first>.)(?P<more>(?:\\.|[^\]\\])*)\]|\|", re.DOTALL)
_REASON = (
    "a pattern is made of matchers, and what one says of a value it says of the elements of a list, too, as in "
    '`(n > 5 or n has > 5)`. Conditions on another attribute go with each alternative, or make a "$or".'
)
_NAMELESS = "a pattern names at least one attribute, and none is called `$or`."
# So many matchers are tried to do without; with more it would take its square.
_SPARED = 100
_EXISTS = '{"exists":true}'
_Pattern = dict[str, Any]


def write_event_pattern(filter: Filter) -> str:
    """The text that `parse_event_pattern` reads to this filter. Raises `UnwritableCondition`."""
    patterns = [
        {name: _alternatives(name, side) for name, side in box.sides.items()} for box in filter.conjunctions
    ]
    if not patterns or not all(patterns) or any(OR in pattern for pattern in patterns):
        raise UnwritableCondition(DIALECT, text_of(filter.expression), _NAMELESS)
    for text in _texts(patterns):
        with suppress(FilterError):
            if parse_event_pattern(text) == filter:
                return text
    raise UnwritableCondition(DIALECT, text_of(filter.expression), _REASON)


def _texts(patterns: list[_Pattern]) -> Iterator[str]:
    """What conjunctions have in common once, if that is how it can be said; else each with all it has."""
    for joined in (_with_common(patterns), patterns[0] if len(patterns) == 1 else {OR: patterns}):
        yield jsontext.write(_nested(joined)).decode()
        yield jsontext.write(joined).decode()  # where one name begins another one


def _with_common(patterns: list[_Pattern]) -> _Pattern:
    first, *others = patterns
    common = {name: one for name, one in first.items() if all(other.get(name) == one for other in others)}
    rest = [{name: one for name, one in pattern.items() if name not in common} for pattern in patterns]
    return common | ({OR: rest} if others else {})


def _nested(pattern: _Pattern) -> _Pattern:
    """Dotted names as members of members."""
    found: _Pattern = {}
    for name, alternatives in pattern.items():
        if name == OR:
            found[name] = [_nested(one) for one in alternatives]
            continue
        *outer, last = name.split(".")
        if OR in (*outer, last):
            return pattern
        place = found
        for part in outer:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                return pattern
            place = inner
        if last in place:
            return pattern
        place[last] = alternatives
    return found


# One attribute


def _alternatives(name: str, values: ValueSet) -> list[Any]:
    """Alternatives that are together these values. Raises `UnwritableCondition`."""
    kept: dict[str, ValueSet] = {}
    for one in _suggested(name, values):
        text = jsontext.write(one).decode()
        if text not in kept and (means := _meaning(one)) != EMPTY and values.includes(means):
            kept[text] = means
    if union(kept.values()) != values:
        raise UnwritableCondition(DIALECT, text_of(describe(name, values)), _REASON)
    matchers = {text: means for text, means in kept.items() if text.startswith("{")}
    wide = union(matchers.values())
    kept = {text: means for text, means in kept.items() if text in matchers or not wide.includes(means)}
    if len(matchers) <= _SPARED:
        for text in sorted(matchers, key=lambda one: (one == _EXISTS, -len(one))):
            others = {other: means for other, means in kept.items() if other != text}
            if union(others.values()) == values:
                kept = others
    return [jsontext.read(text) for text in kept]


def _meaning(alternative: Any) -> ValueSet:
    """What an alternative stands for; nothing if it is none."""
    with suppress(FilterError):
        found = parse_event_pattern(jsontext.write({"x": [alternative]}).decode())
        return union(box.sides["x"] for box in found.conjunctions if "x" in box.sides)
    return EMPTY


def _suggested(name: str, values: ValueSet) -> Iterator[Any]:
    """Alternatives that a set may be made of; they need not make sense."""
    yield from ({"exists": True}, {"exists": False}, True, False)
    mentioned: dict[str, dict[Any, None]] = {name: {} for name in ("=", "numeric", "cidr", *EXCLUDED)}
    together: list[list[list[tuple[str, Any]]]] = []
    for part in (values, ~values):
        for _, constraint in conditions(describe(name, part)):
            for matcher, content in _matchers(constraint):
                mentioned[matcher][content] = None
            together.append(_together(constraint))
        for run in numberline.stretches(part.parts[Kind.INT], part.parts[Kind.FLOAT]):  # type: ignore[arg-type]
            if run.is_single:
                mentioned["="][run.at_least] = None
                continue
            lows = [end for end in ((">=", run.at_least), (">", run.above)) if end[1] is not None]
            highs = [end for end in (("<=", run.at_most), ("<", run.below)) if end[1] is not None]
            both = [(*low, *high) for low in lows for high in highs]
            mentioned["numeric"].update(dict.fromkeys([*both, *lows, *highs]))
    values_there = list(mentioned.pop("="))
    yield from values_there
    for matcher, contents in mentioned.items():
        yield from ({matcher: _plain(content)} for content in contents)
    texts = [one for one in values_there if isinstance(one, str)]
    for excluded in (texts, [one for one in values_there if not isinstance(one, str)]):
        yield from ({"anything-but": one} for one in [*excluded, excluded])
    for matcher in EXCLUDED:
        several = list(map(_plain, mentioned[matcher]))
        yield from ({"anything-but": {matcher: one}} for one in [*several, several])
        for parts in together:
            found = [_plain(content) for part in parts for one, content in part if one == matcher]
            if found and len(found) == len(parts):
                yield {"anything-but": {matcher: found}}


def _matchers(constraint: Constraint) -> Iterator[tuple[str, Any]]:
    """Matchers that a constraint suggests, with their content as something that can be in a set."""
    operator, operand = constraint.operator, constraint.operand
    if operator in ("has", "not"):
        yield from _matchers(operand)
    elif operator in ("=", "!="):
        yield from _value(operand)
    elif operator == "in":
        for one in operand:
            yield from _value(one)
    elif operator == "between" and isinstance(operand[0], (int, float)):
        yield "numeric", (">=", operand[0], "<=", operand[1])
    elif operator in SIGNS and isinstance(operand, (int, float)):
        yield "numeric", (operator, operand)
    elif operator == IGNORING_CASE:
        yield "equals-ignore-case", written(operand)
    elif isinstance(operand, str):
        yield from _of_text(operator, operand)


def _value(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield "=", value


def _of_text(operator: str, text: str) -> Iterator[tuple[str, Any]]:
    escaped = _escaped(text)
    match operator:
        case "starts with":
            yield "prefix", text
            yield "wildcard", f"{escaped}*"
        case "ends with":
            yield "suffix", text
            yield "wildcard", f"*{escaped}"
        case "contains":
            yield "wildcard", f"*{escaped}*"
        case _ if operator == IN_NETWORK:
            yield "cidr", text
        case "like":
            parts = like_parts(text)
            if "" not in parts:
                yield "wildcard", "".join("*" if part is None else _escaped(part) for part in parts)
        case "regex":
            for part in _parts(text):
                yield from _of_part(part)


def _together(constraint: Constraint) -> list[list[tuple[str, Any]]]:
    """The matchers that each part of what the reader has made one expression of suggests."""
    if constraint.operator in ("has", "not"):
        return _together(constraint.operand)
    if constraint.operator != "regex":
        return []
    return [list(_of_part(part)) for part in _parts(constraint.operand)]


def _parts(pattern: str) -> list[list[tuple[str, bool]]]:
    """What a regular expression that the reader has made joins by `|`: characters, and "" for any run of them.

    With a character, whether it stands for others, too. Nothing if it is another expression.
    """
    parts: list[list[tuple[str, bool]]] = [[]]
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return []
        at = token.end()
        if token[0] == "|":
            parts.append([])
        else:
            parts[-1].append((token["first"] or "", bool(token["more"])))
    return parts


def _of_part(part: list[tuple[str, bool]]) -> Iterator[tuple[str, Any]]:
    yield "wildcard", "".join(_escaped(one) or "*" for one, _ in part)
    runs = [place for place, (one, _) in enumerate(part) if not one]
    text = "".join(one for one, _ in part)
    if not runs:
        yield "equals-ignore-case", text
    elif runs in ([0], [len(part) - 1]):
        folds = any(folded for _, folded in part)
        yield "suffix" if runs == [0] else "prefix", ("equals-ignore-case", text) if folds else text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*")


def _plain(content: Any) -> Any:
    """The content of a matcher as JSON has it."""
    match content:
        case ("equals-ignore-case", text):
            return {"equals-ignore-case": text}
        case tuple():
            return list(content)
        case _:
            return content
