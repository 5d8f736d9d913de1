"""How long it takes to find who wants a document: reading and matching, beside lxml's XPaths one by one.

Ours begins with the bytes of a document and ends with those who want it: parsed, all paths of the family read,
and matched against all filters. The yardstick parses it, too, and then asks each condition, an XPath that lxml
has compiled to a boolean before the clock starts, of those about documents of that family. Both must find the
same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from lxml import etree

import palio
from benchmarks.documents.cards import card_family, cards
from benchmarks.documents.real import FOLDER, RealFamily, real_families
from benchmarks.documents.report import XmlRow
from palio.cli.bench.measuring import best_time
from palio.documents import DocumentReader, Family
from palio.model.notification import Notification

AGAINST_LXML = 50.0
TEN_TIMES_AS_MANY = 5.0  # times the time
MANY_SUBSCRIPTIONS = 1.3
FOR_EACH_ELEMENT = 3.0
PATHS = 50
LEAST_SECONDS = 0.5
ELEMENTS = 10


class XmlCondition(msgspec.Struct, frozen=True):
    """A condition in both languages."""

    family: Family
    filter: str
    xpath: str


Tell = Callable[[str], None]


def on_real(counts: Sequence[int], tell: Tell, absent: list[str]) -> list[XmlRow]:
    """So many different conditions on alerts and invoices; only as many as the first are asked one by one."""
    families = real_families()
    if not families:
        absent.append(f"Alerts and invoices are left out: they are not in {FOLDER.name} beside this checkout")
        return []
    rows: list[XmlRow] = []
    first = 0.0
    for count in counts:
        tell(f"{count:,} conditions")
        conditions = real_conditions(families, count)
        documents = [(one.family, content) for one in families for content in one.documents]
        ours, found = matched(conditions, documents)
        if not rows:
            first = ours
            theirs, same = asked(conditions, documents)
            assert found == same, f"Palio finds {sum(map(len, found))} matches, lxml {sum(map(len, same))}."
            said, ratio, bar = "lxml's compiled XPaths, one by one", theirs / ours, AGAINST_LXML
        else:
            theirs, said, ratio, bar = first, f"{counts[0]:,} conditions", ours / first, TEN_TIMES_AS_MANY
        rows.append(
            XmlRow(
                "conditions",
                f"{count:,} conditions on {len(documents)} alerts and invoices, a document",
                ours,
                theirs,
                said,
                ratio,
                bar,
                at_most=len(rows) > 0,
                unit="s",
                x=count,
            )
        )
    return rows


def real_conditions(families: Sequence[RealFamily], count: int) -> list[XmlCondition]:
    """Equalities, alone and two of them, on all paths alike: every other one with a value that there is."""
    draw = random.Random(5)
    made: dict[str, XmlCondition] = {}
    tries = 0
    while len(made) < count:
        tries += 1
        one = families[tries % len(families)]
        kinds = {path.expression: path.many for path in one.family.paths}
        chosen = draw.sample(sorted(one.values), draw.choice((1, 1, 2)))
        parts, asked = [f'xml.family = "{one.family.name}"'], []
        for path in chosen:
            value = draw.choice(one.values[path])
            value = value if draw.random() < 0.5 else f"{value[:20].strip()} {tries}"
            if "\n" in value or "\t" in value or "\r" in value:
                value = f"{tries}"
            parts.append(f'`{path}` {"has" if kinds[path] else "="} "{value}"')
            asked.append(f'{path} = "{value}"')
        text = " and ".join(parts)
        made.setdefault(text, XmlCondition(one.family, text, " and ".join(asked)))
    return list(made.values())


def matched(
    conditions: Sequence[XmlCondition], documents: Sequence[tuple[Family, bytes]]
) -> tuple[float, list[list[int]]]:
    """Seconds a document from its bytes to those who want it, and who these are."""
    index = palio.MatchIndex(enumerate(palio.Filter.parse(one.filter) for one in conditions))
    readers = {id(family): DocumentReader(family) for family, _ in documents}

    def work() -> list[Any]:
        return [
            index.match(Notification.of_values(readers[id(family)].read(content).attributes))
            for family, content in documents
        ]

    found = [sorted(one) for one in work()]
    return best_time(work, LEAST_SECONDS) / len(documents), found


def asked(
    conditions: Sequence[XmlCondition], documents: Sequence[tuple[Family, bytes]]
) -> tuple[float, list[list[int]]]:
    """The same by lxml: every condition about the family by itself."""
    compiled: dict[int, list[tuple[int, Any]]] = {}
    for number, one in enumerate(conditions):
        xpath = etree.XPath(one.xpath, namespaces=one.family.prefixes)
        compiled.setdefault(id(one.family), []).append((number, xpath))
    began, found = time.perf_counter(), []
    for family, content in documents:
        tree = etree.fromstring(content)
        found.append([number for number, xpath in compiled[id(family)] if xpath(tree)])
    return (time.perf_counter() - began) / len(documents), found


def on_cards(count: int, tell: Tell) -> list[XmlRow]:
    """So many subscriptions on 50 different paths, beside 50 that get the same, and beside lxml."""
    tell(f"{count:,} subscriptions on {PATHS} paths")
    family = card_family(PATHS)
    documents = [(family, content) for content in cards(200, 5, measures=True)]
    few = card_conditions(family, PATHS, 0)
    many = card_conditions(family, PATHS, count - PATHS)
    ours, found = matched(many, documents)
    fewer, same = matched(few, documents)
    assert found == same, "More subscriptions are to get the same."
    theirs, right = asked(many, documents[:20])
    assert found[:20] == right
    what = f"{count:,} subscriptions on {PATHS} paths, a document of 5 KB"
    return [
        XmlRow(
            "subscriptions", what, ours, fewer, f"{PATHS} subscriptions, same deliveries", ours / fewer,
            MANY_SUBSCRIPTIONS, at_most=True, unit="s", x=count,
        ),
        XmlRow(
            "subscriptions", what, ours, theirs, "each one's XPaths by itself, by lxml", theirs / ours,
            AGAINST_LXML, unit="s", x=count,
        ),
    ]  # fmt: skip


def card_conditions(family: Family, paths: int, further: int) -> list[XmlCondition]:
    """One condition a path that half of all cards fulfil, and further ones on the same that none does."""
    made = []
    for number in range(paths + further):
        path = family.paths[number % paths]
        if path.kind == "string":
            value = path.expression[-8:].strip("/c:") + (" 1" if number < paths else f" {1_000 + number}")
            said = f'"{value}"'
            parts = f"`{path.expression}` = {said}", f"{path.expression} = {said}"
        else:
            least = 500 if number < paths else 1_000 + number
            parts = f"`{path.expression}` > {least}", f"{path.expression} > {least}"
        made.append(XmlCondition(family, f'xml.family = "{family.name}" and {parts[0]}', parts[1]))
    return made


def of_elements(count: int, tell: Tell) -> list[XmlRow]:
    """`has` with a text, beside a plain equality: for each element of lists of one and of several."""
    tell(f"{count:,} filters with has")
    draw = random.Random(7)
    equal = palio.MatchIndex(enumerate(palio.Filter.parse(f'tag = "tag {one}"') for one in range(count)))
    has = palio.MatchIndex(enumerate(palio.Filter.parse(f'tags has "tag {one}"') for one in range(count)))
    tags = [f"tag {draw.randrange(count)}" for _ in range(5_000)]
    singles = [Notification({"tag": tag}) for tag in tags]
    theirs = _match_time(equal, singles, len(tags))
    rows = []
    for size in (1, ELEMENTS):
        lists = [Notification({"tags": tags[at : at + size]}) for at in range(0, len(tags), size)]
        ours = _match_time(has, lists, len(tags))
        rows.append(
            XmlRow(
                "has", f'{count:,} filters with `has "…"`, lists of {size}: an element', ours, theirs,
                "plain equalities, an event", ours / theirs, FOR_EACH_ELEMENT, at_most=True, unit="s",
                x=size,
            )
        )  # fmt: skip
    return rows


def _match_time(index: Any, events: Sequence[Notification], pieces: int) -> float:
    assert all(index.match(one) for one in events)
    return best_time(lambda: [index.match(one) for one in events], LEAST_SECONDS) / pieces
