"""Topic expressions of WS-Topics and ONVIF, as filters.

A message has its topic in one of the attributes `topic`, `xml.family` and `type`: what a publisher calls it,
the family of a document, the type of a CloudEvent. A topic expression asks for one of them. So topics need no
place of their own; `a/b` selects what has this topic, `a//.` this one and all below it, `a/*` those right
below, and `|` joins several.

Prefixes of topics have to be declared, as the standard wants it, and say nothing more: publishers write their
topics without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from palio.broker.soap.faults import SoapProblem
from palio.broker.soap.names import TOPIC_CONCRETE, TOPIC_CONCRETE_SET, TOPIC_DIALECTS, TOPIC_FULL, TOPIC_SIMPLE
from palio.documents.reserved import FAMILY

ATTRIBUTES = ("topic", FAMILY, "type")
# Alternatives of one expression: each is a condition for each of the attributes.
MAX_ALTERNATIVES = 20
_NAME = r"[^\W\d][\w.\-]*"
_STEP = re.compile(rf"(//?)?(?:({_NAME}):)?({_NAME}|\*|\.)")


def topic_filter(text: str, dialect: str, prefixes: Mapping[str | None, str]) -> str:
    """The filter that a topic expression is, in our own language. Raises `SoapProblem`."""
    if dialect not in TOPIC_DIALECTS:
        reason = (
            f"The dialect {dialect[:200]!r} of topics is not known here; there are {', '.join(TOPIC_DIALECTS)}."
        )
        raise SoapProblem("TopicExpressionDialectUnknownFault", reason)
    if dialect in (TOPIC_SIMPLE, TOPIC_CONCRETE) and "|" in text:
        raise _wrong(text, f"Alternatives need the dialect {TOPIC_CONCRETE_SET}.")
    alternatives = [one.strip() for one in text.split("|")]
    if len(alternatives) > MAX_ALTERNATIVES:
        raise _wrong(text, f"It has more than {MAX_ALTERNATIVES} alternatives.")
    exact: list[str] = []
    patterns: list[str] = []
    for one in alternatives:
        for topic in _read(one, dialect, prefixes):
            (patterns if "*" in topic else exact).append(topic)
    conditions = []
    for attribute in ATTRIBUTES:
        # A family that is named as one has to be there; a topic need not be one, which a pattern says.
        named = [] if attribute == FAMILY else exact
        if named:
            conditions.append(f"{attribute} in ({', '.join(map(_quoted, named))})")
        conditions += [f"{attribute} matches {_quoted(one)}" for one in (exact if not named else []) + patterns]
    return " or ".join(conditions)


def single_topic(text: str, dialect: str, prefixes: Mapping[str | None, str]) -> str:
    """The one topic that an expression names. Raises `SoapProblem`."""
    topic_filter(text, dialect, prefixes)  # which raises what is wrong with it
    named = [topic for one in text.split("|") for topic in _read(one.strip(), dialect, prefixes)]
    if len(named) > 1 or "*" in named[0]:
        reason = f"The topic expression {text[:200]!r} names several topics; ask for one at a time."
        raise SoapProblem("MultipleTopicsSpecifiedFault", reason)
    return named[0]


def _read(text: str, dialect: str, prefixes: Mapping[str | None, str]) -> list[str]:
    """A topic, or patterns of topics (with `*`), for one alternative."""
    segments: list[str] = []
    place, below = 0, False
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None or ((step[1] is None) != (place == 0) and not (place == 0 and step[1] == "//")):
            raise _wrong(text, f"At character {place + 1}, a name, `*`, or `//.` at the end is expected.")
        axis, prefix, name = step.groups()
        if prefix is not None and prefix not in prefixes:
            raise _wrong(text, f"The prefix {prefix!r} is not declared.")
        place = step.end()
        if name == ".":
            if axis != "//" or place < len(text) or not segments:
                raise _wrong(text, "A `.` comes after `//`, and is the last.")
            below = True
        else:
            segments += (["**"] if axis == "//" else []) + [name]
    if not segments:
        raise _wrong(text, "It is empty.")
    topic = "/".join(segments)
    if (dialect == TOPIC_SIMPLE and (len(segments) > 1 or below)) or ("*" in topic and dialect != TOPIC_FULL):
        raise _wrong(text, f"The dialect {dialect} cannot say this.")
    if below and dialect not in (TOPIC_CONCRETE_SET, TOPIC_FULL):
        raise _wrong(text, f"Topics below another one need the dialect {TOPIC_CONCRETE_SET}.")
    return [topic, f"{topic}/**"] if below else [topic]


def _quoted(text: str) -> str:
    return f'"{text}"'  # no name has quotes or backslashes in it


def _wrong(text: str, reason: str) -> SoapProblem:
    return SoapProblem(
        "InvalidTopicExpressionFault", f"The topic expression {text[:200]!r} cannot be used: {reason}"
    )
