"""A filter as a topic filter of MQTT, where it is one; behind a `?`, what is said of other attributes.

What is found is read back, and is the answer only if it means the same. So it is enough to try each topic
filter that the conditions on `topic` suggest, the narrow ones first: alone, with what is said of other
attributes, and with the whole filter behind it. The widest is `#`, all topics that do not begin with `$`.
"""

from __future__ import annotations

from collections.abc import Iterator

from palio.language.errors import UnwritableCondition
from palio.language.mqtt import TOPIC, parse_topic_filter
from palio.model.constraint import Constraint
from palio.model.describe import describe
from palio.model.errors import FilterError
from palio.model.expression import Expression, conditions, conjunction, disjunction, text_of
from palio.model.filter import Filter

_REASON = (
    "every filter there is about the attribute `topic`, a string, and with a wildcard at its beginning about "
    "those that do not begin with a dollar sign. Conditions on other attributes go with one on the topic."
)


def write_topic_filter(filter: Filter) -> str:
    """The text that `parse_topic_filter` reads to this filter. Raises `UnwritableCondition`."""
    said = [text_of(filter.expression)]
    with_topic = [box.sides.get(TOPIC) for box in filter.conjunctions]
    if filter.conjunctions and all(side == with_topic[0] for side in with_topic):
        others = (
            conjunction(describe(name, side) for name, side in box.sides.items() if name != TOPIC)
            for box in filter.conjunctions
        )
        said.insert(0, text_of(disjunction(others)))
    for topic in dict.fromkeys(_suggested(filter)):
        for text in (topic, *(f"{topic}?{condition}" for condition in said)):
            if _read(text) == filter:
                return text
    raise UnwritableCondition("mqtt", text_of(_beyond(filter)), _REASON)


def _read(text: str) -> Filter | None:
    try:
        return parse_topic_filter(text)
    except FilterError:
        return None


def _beyond(filter: Filter) -> Expression:
    """What keeps it from being one: a conjunction that selects more than topics, if there is one."""
    topics = parse_topic_filter("#")
    for box in filter.conjunctions:
        one = Filter((box,))
        if not topics.covers(one):
            side = box.sides.get(TOPIC)
            return one.expression if side is None else describe(TOPIC, side)
    return filter.expression


def _suggested(filter: Filter) -> Iterator[str]:
    """Topic filters that conditions on the topic suggest; they need not be any."""
    for box in filter.conjunctions:
        if TOPIC in box.sides:
            for _, constraint in conditions(describe(TOPIC, box.sides[TOPIC])):
                yield from _from_constraint(constraint)
    yield from ("+", "#")


def _from_constraint(constraint: Constraint) -> Iterator[str]:
    operand = constraint.operand
    if not isinstance(operand, str):
        return
    match constraint.operator:
        case "=":
            yield operand
        case "starts with":
            level, slash, _ = operand.rpartition("/")
            if slash:
                yield f"{level}/#"
        case "matches":
            yield _from_glob(operand)


def _from_glob(pattern: str) -> str:
    """A narrow topic filter for all that a glob matches: what cannot be said is `+`, or ends it with `#`."""
    levels: list[str] = []
    for segment in pattern.split("/"):
        if segment == "**":
            return "/".join([*levels, "#"])
        plain = segment.replace("\\\\", "").replace("\\*", "")
        levels.append("+" if "*" in plain else segment.replace("\\*", "*").replace("\\\\", "\\"))
    return "/".join(levels)
