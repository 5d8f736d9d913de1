"""An XPath as a filter about documents: what it becomes, and against lxml, which evaluates it as it is."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from palio.documents import (
    DocumentReader,
    FamilyPaths,
    ImpossibleCondition,
    UnknownPath,
    UnnamedFamily,
    read_selection,
    with_paths,
    xpath_selection,
)
from palio.documents.xpath import XPathSyntaxError, XPathTooCostly
from palio.model.filter import Filter
from palio.model.notification import Notification
from tests.documents.test_selection import FAMILIES
from tests.documents.test_selection_oracle import Asking, drawn_family
from tests.slices import sliced

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")

PREFIXES = {"c": "urn:test:card", "x": "urn:other"}


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("/c:card/c:price < 10", "`/card/price` < 10"),
        (
            "boolean(10 > /c:card/c:price) and not(/c:card/c:brand = 'A')",
            "`/card/price` < 10 and not `/card/brand` has 'A'",
        ),
        ("/c:card/c:brand != 'A' or /c:card/@sold", "`/card/brand` has not 'A' or exists(`/card/@sold`)"),
        # Where XPath converts, or looks at the first node only, it is a truth by itself.
        ("/c:card/c:price = '10'", '`/card/price = "10"` = true'),
        ("/c:card/c:stock != 5", "`/card/stock != 5` = true"),
        ("contains(/c:card/c:brand, 'A')", '`contains(/card/brand, "A")` = true'),
        ("count(/c:card/c:brand)", "`boolean(count(/card/brand))` = true"),
        ("/c:card/c:price + 1 > 2", "`/card/price + 1 > 2` = true"),
        ("(/c:card/c:price)[1] < 10", "`(/card/price)[1]` < 10"),
    ],
)
def test_what_an_xpath_becomes(text, means):
    written = xpath_selection(text, PREFIXES, FAMILIES)
    wanted = Filter.parse(f'xml.family = "card" and ({means})')
    assert read_selection(written, FAMILIES).filter == wanted


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("/card/price < 10", UnnamedFamily, "begins with the root of its documents"),
        ("//c:price < 10", UnnamedFamily, "begins with the root"),
        ("/c:card/c:prize < 10", UnknownPath, "Did you mean /card/price"),
        ("/c:card/x:price < 10", XPathSyntaxError, "no prefix for the namespace 'urn:other'"),
        ("/d:card < 10", XPathSyntaxError, "bound to no namespace"),
        ("/c:card/[", XPathSyntaxError, "Column 9"),
    ],
)
def test_what_is_about_no_document_is_refused(text, error, said):
    with pytest.raises(error, match=said):
        read_selection(xpath_selection(text, PREFIXES, FAMILIES), FAMILIES)


def judge(seed: int) -> Counter[str]:
    """How often the answers were yes and no, and how many paths were truths by themselves."""
    chance = random.Random(seed)
    family, documents = drawn_family(chance)
    families = {"drawn": FamilyPaths(family)}
    asking = Asking(chance, documents)
    seen: Counter[str] = Counter()
    taken = []
    while len(taken) < 20:
        parts = [asking.condition() for _ in range(chance.randint(1, 3))]
        _, text = asking.joined(parts)
        try:
            taken.append((text, read_selection(xpath_selection(text, {}, families), families)))
        except (ImpossibleCondition, UnknownPath, UnnamedFamily, XPathSyntaxError, XPathTooCostly):
            seen["refused"] += 1
    paths = {path.expression: path for _, one in taken for path in one.new_paths.get("drawn", ())}
    seen["truths"] += sum(path.kind == "bool" for path in paths.values())
    seen["paths"] += sum(path.kind != "bool" for path in paths.values())
    reader = DocumentReader(with_paths(family, tuple(paths.values())))
    for document in documents:
        notification = Notification(reader.read(etree.tostring(document)).attributes)
        for text, selection in taken:
            answer = selection.filter.matches(notification)
            assert answer == document.xpath(f"boolean({text})"), (seed, text, etree.tostring(document))
            seen["yes" if answer else "no"] += 1
    return seen


@pytest.mark.parametrize("seed", sliced(range(200), 4))
def test_documents_are_selected_as_lxml_selects_them(seed):
    judge(seed)


def test_the_drawn_expressions_are_of_all_sorts():
    seen = sum(map(judge, range(1_000, 1_004)), Counter())
    assert min(seen[one] for one in ("yes", "no", "truths", "paths")) > 10, seen
