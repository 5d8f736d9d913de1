"""MQTT's topic filters, and conditions behind a `?`.

    sport/+/player/#
    sensors/+/temperature?value>25 & unit="C"

A topic filter is about the attribute `topic`: levels between slashes, `+` for any one level, `#` as the last
level for any number of them, none included. As MQTT has it, a wildcard at the beginning does not match topics
that begin with `$`. Behind the first `?` stands a filter of ours, about the other attributes. (So a topic with
a `?` in it cannot be named; MQTT's own brokers would allow it.)

Shared subscriptions (`$share/group/…`) are refused: which member of a group gets an event is no property of the
event. Two consumers of one durable subscription share its events.
"""

from __future__ import annotations

from palio.language.errors import WrongDialectText
from palio.model.constraint import Constraint
from palio.model.errors import FilterSyntaxError
from palio.model.expression import Condition, Expression, Not, conjunction
from palio.model.filter import Filter
from palio.model.parser import parse
from palio.model.texts import TextMistake, check_glob

# The attribute that topics are in.
TOPIC = "topic"
_SHARED = "$share/"


def parse_topic_filter(text: str) -> Filter:
    """The filter that a topic filter means. Raises `FilterSyntaxError` or `FilterTooLarge`."""
    topic, question_mark, condition = text.partition("?")
    parts = _topic(topic, text)
    if question_mark:
        parts.append(_condition(condition, text, len(topic) + 1))
    return Filter.from_expression(conjunction(parts))


def _topic(topic: str, text: str) -> list[Expression]:
    if topic.startswith(_SHARED):
        raise WrongDialectText(
            text,
            1,
            "shared subscriptions are not supported: which of a group gets an event is no matter of its "
            "content. Let several consumers read one durable subscription.",
        )
    if not topic:
        raise WrongDialectText(text, 1, "expected a topic filter, such as sport/+/player/#.")
    levels = topic.split("/")
    at = 0
    for place, level in enumerate(levels):
        for wildcard in "+#":
            if wildcard in level and level != wildcard:
                column = at + level.index(wildcard) + 1
                raise WrongDialectText(text, column, f"`{wildcard}` stands for a whole level, between slashes.")
        if level == "#" and place != len(levels) - 1:
            raise WrongDialectText(text, at + 1, "`#` stands for all that follows, and is the last level.")
        if "\0" in level:
            raise WrongDialectText(text, at + level.index("\0") + 1, "a topic has no null character.")
        at += len(level) + 1
    if not {"+", "#"} & set(levels):
        return [Condition(TOPIC, Constraint("=", topic))]
    pattern = "/".join({"+": "*", "#": "**"}.get(level) or _literal(level) for level in levels)
    try:
        check_glob(pattern)
    except TextMistake as mistake:
        raise WrongDialectText(text, 1, str(mistake)) from None
    found: list[Expression] = [Condition(TOPIC, Constraint("matches", pattern))]
    if levels[0] in ("+", "#"):
        found.append(Not(Condition(TOPIC, Constraint("starts with", "$"))))
    return found


def _literal(level: str) -> str:
    return level.replace("\\", "\\\\").replace("*", "\\*")


def _condition(condition: str, text: str, offset: int) -> Expression:
    """Our own language, with the columns of the whole text."""
    try:
        return parse(condition)
    except FilterSyntaxError as mistake:
        raise FilterSyntaxError(text, mistake.column + offset, mistake.problem, mistake.suggestion) from None
