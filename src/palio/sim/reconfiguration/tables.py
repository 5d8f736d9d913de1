"""What the tables of a tree should be, from who wants what: worked out without any router."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

Pair: TypeAlias = tuple[str, str]
TreeRow: TypeAlias = tuple[str, str, int]  # who tells whom of which topic


def ideal_rows(links: Iterable[Pair], wanted: Mapping[str, frozenset[int]]) -> set[TreeRow]:
    """All rows: a broker tells a neighbour of every topic that somebody on its side of their link wants."""
    beside = beside_of(links)
    rows: set[TreeRow] = set()
    left = dict.fromkeys(beside)
    while left:
        for name in _fill(next(iter(left)), beside, wanted, rows):
            del left[name]
    return rows


def _fill(
    root: str, beside: Mapping[str, list[str]], wanted: Mapping[str, frozenset[int]], rows: set[TreeRow]
) -> list[str]:
    """Adds the rows of one part. Returns who is in it."""
    order, parent = [root], {root: ""}
    for name in order:
        for other in beside[name]:
            if other != parent[name]:
                parent[other] = name
                order.append(other)
    below: dict[str, frozenset[int]] = {}
    for name in reversed(order):
        children = [other for other in beside[name] if other != parent[name]]
        below[name] = wanted.get(name, frozenset()).union(*[below[other] for other in children])
    above: dict[str, frozenset[int]] = {root: frozenset()}
    for name in order:
        children = [other for other in beside[name] if other != parent[name]]
        for child in children:
            others = [below[other] for other in children if other != child]
            above[child] = wanted.get(name, frozenset()).union(above[name], *others)
            rows.update([(name, child, topic) for topic in above[child]])
            rows.update([(child, name, topic) for topic in below[child]])
    return order


def beside_of(links: Iterable[Pair]) -> dict[str, list[str]]:
    """The neighbours of each broker that has any."""
    beside: dict[str, list[str]] = defaultdict(list)
    for one, other in links:
        beside[one].append(other)
        beside[other].append(one)
    return dict(beside)


def part_of(links: Iterable[Pair], broker: str) -> set[str]:
    """Whom a broker is connected with."""
    return set(path_tree(links, broker))


def path_tree(links: Iterable[Pair], broker: str) -> dict[str, str]:
    """For each who is connected with a broker, the next one on the way to it."""
    beside = beside_of(links)
    toward = {broker: ""}
    for name in (order := [broker]):
        for other in beside.get(name, ()):
            if other not in toward:
                toward[other] = name
                order.append(other)
    return toward


def path_between(links: Iterable[Pair], one: str, other: str) -> list[str]:
    """The brokers on the way between two of one part."""
    toward = path_tree(links, other)
    path = [one]
    while path[-1] != other:
        path.append(toward[path[-1]])
    return path
