"""Facts: what a broker remembers for ever beside its journal and its subscriptions, each a number under a key.

A fact has a kind, a subject and, for two of the kinds, a home. It is written by `effects.SaveFact`, in the order
of all writes, and found again in `effects.Recovered.facts`. A new kind of fact is one line here; the store keeps
kinds as they are written here, so that their texts are never changed.

| kind | subject | home | value |
|---|---|---|---|
| `READER` | a durable subscription anywhere, by identity | where it lives | how far it has read this journal |
| `HELD` | a reader that is no subscription, a lake for instance | | how far it has read this journal |
| `ENDED` | a durable subscription that was here, by identity | where it was handed over to, if it was | the generation up to which it is not taken back |
| `PAUSED` | a durable subscription that is here, by identity | | 1 |
| `KNOWN` | a broker that was heard of | | its count of changes, as far as it was heard |
| `FORGOTTEN` | a broker that is gone for good | | the count up to which it is |
| `LEAVING` | nothing: this broker itself is to leave the network | | 1 |
| `INTRODUCED` | a broker whose durable subscriptions this journal knows | | 1 |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

import msgspec


class FactKind(StrEnum):
    """What a fact is about. The values are on disk."""

    READER = "reader"
    HELD = "held"
    ENDED = "ended"
    PAUSED = "paused"
    KNOWN = "known"
    FORGOTTEN = "forgotten"
    INTRODUCED = "introduced"
    LEAVING = "leaving"

    def of(self, subject: str, home: str = "") -> Fact:
        """The key of a fact of this kind."""
        return Fact(self, subject, home)


class Fact(msgspec.Struct, frozen=True, gc=False):
    """The key under which the value of a fact is kept."""

    kind: FactKind
    subject: str
    home: str = ""


FactsFound: TypeAlias = Iterable[tuple[Fact, int]]


def values_of(kind: FactKind, facts: FactsFound) -> dict[str, int]:
    """The facts of a kind, by their subjects."""
    return {fact.subject: value for fact, value in facts if fact.kind is kind}
