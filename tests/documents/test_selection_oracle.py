"""Filters about documents, against lxml, which asks each document the same as one XPath of truth."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from palio.documents import (
    DocumentReader,
    Family,
    FamilyPaths,
    ImpossibleCondition,
    SchemaFile,
    SchemaRefused,
    UnknownPath,
    read_selection,
    with_paths,
)
from palio.documents.xpath import XPathSyntaxError, XPathTooCostly
from palio.model.expression import literal
from palio.model.notification import Notification
from tests.documents.drawn_schemas import DrawnSchema, drawn_path, path_to
from tests.slices import sliced

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")

NUMBERS = ("-3", "0", "7", "50", "1.5")
STRINGS = ("", "x", "7", "true", "1.5", "nothing")
# What a condition is in a filter, and as XPath; {p} is the path, {v} a constant, {w} another one.
OF_NUMBERS = {
    **{f"{{p}} {sign} {{v}}": f"{{p}} {sign} {{v}}" for sign in ("=", "!=", "<", "<=", ">", ">=")},
    "{v} < {p}": "{v} < {p}",
    "{p} in ({v}, {w})": "{p} = {v} or {p} = {w}",
    "{p} between {v} and {w}": "{p}[. >= {v} and . <= {w}]",
    "not {p} > {v}": "not({p} > {v})",
}
OF_STRINGS = {
    "{p} = {v}": "{p} = {v}",
    "{p} != {v}": "{p} != {v}",
    "{v} = {p}": "{p} = {v}",
    "{p} in ({v}, {w})": "{p} = {v} or {p} = {w}",
    "{p} not in ({v}, {w})": "not({p} = {v} or {p} = {w})",
    "{p} starts with {v}": "{p}[starts-with(., {v})]",
    "{p} contains {v}": "{p}[contains(., {v})]",
    "{p} ends with {v}": "{p}[substring(., string-length(.) - string-length({v}) + 1) = {v}]",
    "{p} not contains {v}": "not({p}[contains(., {v})])",
}
OF_BOOLEANS = {
    "{p}": "{p} = 'true' or {p} = '1'",
    "{p} = false": "{p} = 'false' or {p} = '0'",
    "{p} != true": "{p} = 'false' or {p} = '0'",
    "not {p}": "not({p} = 'true' or {p} = '1')",
}
OF_ALL = {"exists({p})": "boolean({p})", "absent({p})": "not({p})", "{p} is not null": "boolean({p})"}
OF_LISTS = {"{p} has {v}": "{p} = {v}", "{p} has not {v}": "{p} != {v}"}
# What is computed is of numbers alone, and of paths that occur once.
COMPUTED = {"{p} * 2 > {v} + 1": "{p} * 2 > {v} + 1"}


class Asking:
    """Filters by chance, about paths of a family."""

    def __init__(self, chance: random.Random, documents: list[Any]) -> None:
        self.chance, self.documents = chance, documents

    def condition(self) -> tuple[str, str]:
        """A filter and an XPath, which are to mean the same. Many mean nothing."""
        chance = self.chance
        node = chance.choice(list(chance.choice(self.documents).iter()))
        path = path_to(node, chance) if chance.random() < 0.8 else drawn_path(chance)
        if any(one.xpath(f"count({path})") != len(one.xpath(path)) for one in self.documents):
            return self.condition()  # the document itself, which lxml selects and does not give
        kind = chance.choice(["number", "string", "bool"])
        of_kind = {"number": OF_NUMBERS, "string": OF_STRINGS, "bool": OF_BOOLEANS}[kind]
        table = chance.choice([of_kind, of_kind, of_kind, OF_ALL, OF_LISTS, COMPUTED])
        if table is COMPUTED:
            kind = "number"
        said, meant = chance.choice(list(table.items()))
        constants = list(NUMBERS if kind == "number" else STRINGS)
        v, w = sorted(chance.sample(constants, 2), key=float if kind == "number" else None)
        if kind != "number":
            v, w = literal(v), literal(w)
        # The document itself, which alone has nothing around it, is no value that a path gives.
        asked = f"({path})[..]"
        return said.format(p=f"xpath({literal(path)})", v=v, w=w), meant.format(p=asked, v=v, w=w)

    def joined(self, parts: list[tuple[str, str]]) -> tuple[str, str]:
        """The parts joined by `and`, `or` and `not`."""
        chance = self.chance
        while len(parts) > 1:
            (said, meant), (also_said, also_meant) = parts.pop(), parts.pop()
            word = chance.choice(["and", "or"])
            joined = f"({said} {word} {also_said})", f"(({meant}) {word} ({also_meant}))"
            if chance.random() < 0.3:
                joined = f"not {joined[0]}", f"not({joined[1]})"
            parts.insert(chance.randint(0, len(parts)), joined)
        return parts[0]


def drawn_family(chance: random.Random) -> tuple[Family, list[Any]]:
    """A family and documents of it. What libxml2 finds ambiguous is drawn again."""
    while True:
        drawn = DrawnSchema(chance)
        files = (SchemaFile("drawn.xsd", drawn.written().encode()),)
        family = Family("drawn", "", "root", schemas=files, key=("name(/*)",))
        try:
            reader = DocumentReader(family)
        except SchemaRefused:
            continue
        contents = [drawn.document(chance) for _ in range(20)]
        for one in contents:
            reader.read(one.encode())
        return family, [etree.ElementTree(etree.fromstring(one)) for one in contents]


def judge(seed: int) -> Counter[str]:
    """How many filters were taken and refused, and how often the answers were yes and no."""
    chance = random.Random(seed)
    family, documents = drawn_family(chance)
    families = {"drawn": FamilyPaths(family)}
    asking = Asking(chance, documents)
    seen: Counter[str] = Counter()
    good: list[tuple[str, str]] = []
    for _ in range(60):
        said, meant = asking.condition()
        try:
            read_selection(f"family drawn where {said}", families)
        except UnknownPath:
            seen["unknown"] += 1
            path = meant.partition("(")[2].partition(")")[0] if meant.startswith("(") else None
            if path is not None and "(" not in path:
                assert not any(one.xpath(path) for one in documents), (seed, said)
        except ImpossibleCondition:
            seen["impossible"] += 1
        except (XPathSyntaxError, XPathTooCostly):
            seen["no path"] += 1
        else:
            good.append((said, meant))
    texts = [asking.joined(chance.sample(good, min(len(good), chance.randint(1, 4)))) for _ in range(20)]
    selections = [read_selection(f"family drawn where {said}", families) for said, _ in texts]
    paths = {path.expression: path for one in selections for path in one.new_paths.get("drawn", ())}
    reader = DocumentReader(with_paths(family, tuple(paths.values())))
    for document in documents:
        notification = Notification(reader.read(etree.tostring(document)).attributes)
        for (said, meant), selection in zip(texts, selections, strict=True):
            answer = selection.filter.matches(notification)
            assert answer == document.xpath(f"boolean({meant})"), (seed, said, etree.tostring(document))
            seen["yes" if answer else "no"] += 1
    seen["many"] += sum(path.many for path in paths.values())
    return seen


@pytest.mark.parametrize("seed", sliced(range(200), 5))
def test_documents_are_selected_as_lxml_selects_them(seed):
    judge(seed)


def test_the_drawn_filters_are_of_all_sorts():
    seen = sum(map(judge, range(1_000, 1_006)), Counter())
    assert min(seen[one] for one in ("yes", "no", "many", "unknown", "impossible")) > 10, seen
