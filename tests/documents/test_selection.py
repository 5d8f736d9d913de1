"""Filters about documents: what they mean, and what is refused, with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from palio.documents import (
    Family,
    FamilyPath,
    FamilyPaths,
    FamilyRefused,
    ImpossibleCondition,
    UnknownFamily,
    UnknownPath,
    UnnamedFamily,
    read_selection,
)
from palio.documents.selection_text import read_selection_text
from palio.documents.xpath import UnknownPrefix, XPathSyntaxError, XPathTooCostly
from palio.language import UnknownFamilies, is_selection, read_filter
from palio.model.errors import FilterSyntaxError
from palio.model.filter import Filter
from tests.documents.schemas import schema, schema_files

pytest.importorskip("lxml.etree", reason="lxml is not installed")

CARD_SCHEMA = schema(
    "<xs:element name='card'><xs:complexType><xs:sequence>"
    "<xs:element name='code' type='xs:string'/>"
    "<xs:element name='brand' type='xs:string' maxOccurs='unbounded'/>"
    "<xs:element name='price' type='xs:decimal'/><xs:element name='stock' type='xs:int' minOccurs='0'/>"
    "<xs:element name='since' type='xs:dateTime' minOccurs='0'/>"
    "<xs:element name='rating' type='xs:int' minOccurs='0' maxOccurs='9'/>"
    "</xs:sequence><xs:attribute name='sold' type='xs:boolean'/></xs:complexType></xs:element>",
    "urn:test:card",
)
CARD = Family(
    "card",
    "urn:test:card",
    "card",
    {"": "urn:test:card", "k": "urn:test:card"},
    schema_files({"card.xsd": CARD_SCHEMA}),
    ("/card/code",),
    (
        FamilyPath("/card/price", "float", name="price"),
        FamilyPath("/card/brand", many=True, name="brand"),
        FamilyPath("/card/since", "time", name="since"),
    ),
)
FREE = Family("free", "", "free", paths=(FamilyPath("/free/a", name="a"),))
FAMILIES = {"card": FamilyPaths(CARD), "free": FamilyPaths(FREE)}


def plain(text: str) -> str:
    """The plain filter that a text means."""
    selection = read_selection(text, FAMILIES)
    assert selection.filter.source is not None
    assert selection.filter == Filter.parse(selection.filter.source)
    return selection.filter.source


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("family card", 'xml.family = "card"'),
        ("FAMILY `card` ", 'xml.family = "card"'),
        (
            'family card where xpath("/card/price") < 10 and xpath("/card/brand") = "Acme"',
            'xml.family = "card" and `/card/price` < 10 and `/card/brand` has "Acme"',
        ),
        (
            'family "card" WHERE card.price < 10 or not card.brand in (\'a\', "b")',
            'xml.family = "card" and (`/card/price` < 10 or not `/card/brand` has in ("a", "b"))',
        ),
        # Of whatever spelling, it is one path.
        (
            'xml.family = "card" and xpath("child::k:card / k:price") between 1 and 2',
            'xml.family = "card" and `/card/price` between 1 and 2',
        ),
        (
            'family card where `/k:card/k:price` = 5 and 5 < xpath("/card/price")',
            'xml.family = "card" and `/card/price` = 5 and `/card/price` > 5',
        ),
        ("family card where card.brand != 'x'", 'xml.family = "card" and `/card/brand` has not "x"'),
        ("family card where card.brand contains 'x'", 'xml.family = "card" and `/card/brand` has contains "x"'),
        (
            "family card where card.brand has not like 'x_'",
            'xml.family = "card" and `/card/brand` has not like "x_"',
        ),
        (
            "family card where card.brand = 'x' ignoring case",
            'xml.family = "card" and `/card/brand` has "x" ignoring case',
        ),
        (
            "family card where exists(card.brand) and xpath('/card/stock') is null",
            'xml.family = "card" and exists(`/card/brand`) and absent(`/card/stock`)',
        ),
        ('family card where xpath("/card/@sold")', 'xml.family = "card" and `/card/@sold` = true'),
        (
            'family card where xpath("count(/card/brand)") > 1 and not (xpath("/card/price < 5"))',
            'xml.family = "card" and `count(/card/brand)` > 1 and not `/card/price < 5` = true',
        ),
        (
            'family card where (xpath("/card/price") + 1) * 2 > xpath("/card/stock")',
            'xml.family = "card" and `/card/stock` < (`/card/price` + 1) * 2',
        ),
        ("family card where int xpath('/card/stock') > 5", 'xml.family = "card" and int `/card/stock` > 5'),
        ("family card where list card.brand exists", ""),
        (
            'family card where region = "north" and card.price > 1',
            'xml.family = "card" and region = "north" and `/card/price` > 1',
        ),
        # Without a schema a new path may occur several times; those of the family are what it says.
        ('family free where xpath("/free/b") = "1" and xpath("/free/a") = "2" and free.x', ""),
        (
            'xml.family = "card" and card.price < 1 or (r = "n" and (xml.family = "free" and free.a = "1"))',
            'xml.family = "card" and `/card/price` < 1 or r = "n" and xml.family = "free" and `/free/a` = "1"',
        ),
        # An attribute may still be called so.
        ('family = "card" and xpath > 1', 'family = "card" and xpath > 1'),
        (
            'family is null or family like "a%" or family regex "a"',
            'absent(family) or family starts with "a" or family = "a"',
        ),
        ("family", "family = true"),
    ],
)
def test_a_text_about_documents_is_a_plain_filter(text, means):
    if not means:
        with pytest.raises((UnknownPath, FilterSyntaxError)):
            plain(text)
        return
    assert Filter.parse(plain(text)) == Filter.parse(means)


def test_all_ways_to_write_a_path_are_the_same_filter():
    ways = [
        'family card where xpath("/card/brand") = "Acme" and xpath("/card/price") < 10',
        'xml.family = "card" and card.brand = "Acme" and card.price < 10',
        'family card where `/card/price` < 10 and `/card/brand` has "Acme"',
        "10 > xpath('/child::k:card/self::node()/price') and xml.family = 'card' and card.brand = 'Acme'",
    ]
    first, *others = [read_selection(text, FAMILIES).filter for text in ways]
    assert all(first == one for one in others)


def test_whatever_is_a_plain_filter_means_what_it_does():
    for text in ('symbol = "ACME" and price > 100', "x = 1 or not `a b` has 3", "true", "bid > ask * 2"):
        assert read_selection(text, FAMILIES).filter == Filter.parse(text)


def test_a_new_path_is_told_with_its_kind():
    text = 'family card where xpath("/card/stock") > 1 and xpath("/card/rating") = 5 and card.price > 2'
    paths = (FamilyPath("/card/stock", "int"), FamilyPath("/card/rating", "int", many=True))
    assert read_selection(text, FAMILIES).new_paths == {"card": paths}
    untyped = read_selection('family free where xpath("/free/b") = "1" and xpath("/free/a") = "2"', FAMILIES)
    assert untyped.new_paths == {"free": (FamilyPath("/free/b", many=True, said=True),)}
    assert untyped.filter.source == 'xml.family = "free" and `/free/b` has "1" and `/free/a` = "2"'


def test_a_family_has_no_more_paths_than_it_may():
    paths = tuple(FamilyPath(f"/free/a{number}") for number in range(255))
    full = {"free": FamilyPaths(Family("free", "", "free", paths=paths))}
    assert read_selection('family free where xpath("/free/x") = "1"', full).new_paths
    with pytest.raises(FamilyRefused, match="257 paths; the limit is 256"):
        read_selection('family free where xpath("/free/x") = "1" or xpath("/free/y") = "1"', full)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("family kard", UnknownFamily, "no family of documents called 'kard'; there are card, free"),
        ('xml.family in ("card", "other")', UnknownFamily, "'other'"),
        ('not xml.family = "other"', UnknownFamily, "'other'"),
        ('family card where xpath("/card/colour") = "red"', UnknownPath, "/card/colour selects nothing"),
        ('family card where xpath("/card/prize") < 1', UnknownPath, "Did you mean /card/price?"),
        ("family card where `/card/prize` < 1", UnknownPath, "Did you mean /card/price?"),
        ("family card where card.prize < 1", UnknownPath, "Did you mean card.price?"),
        ('family card where xpath("/card/x:price") < 1', UnknownPrefix, "`x` is bound to no namespace"),
        ('family card where xpath("/card[") < 1', XPathSyntaxError, "a name is expected"),
        (
            'family card where xpath("//*[.//*[.//*[.//*]]]") = "1"',
            XPathTooCostly,
            "could take some",
        ),
        (
            'family card where xpath("/card/code") = 5',
            ImpossibleCondition,
            "The values of /card/code are strings, never the number 5. Write a string in quotes.",
        ),
        ("family card where card.price != 'a'", ImpossibleCondition, 'are numbers, never the string "a"'),
        ("family card where card.price in (1, 'a')", ImpossibleCondition, 'never the string "a"'),
        ("family card where card.brand has in (1, 2)", ImpossibleCondition, "never the number 1"),
        ("family card where card.brand has not 1", ImpossibleCondition, "never the number 1"),
        ("family card where card.price", ImpossibleCondition, "are numbers, never the bool true"),
        ("family card where not card.price contains 'x'", ImpossibleCondition, "numbers, never the string"),
        ("family card where card.price = 'x' ignoring case", ImpossibleCondition, "never the string"),
        ("family card where xpath('/card/@sold') = 'true'", ImpossibleCondition, "are true or false"),
        ("family card where xpath('/card/since') > '2026-01-01'", ImpossibleCondition, "without quotes"),
        ("family card where xpath('/card/stock') = 2.5", ImpossibleCondition, "integers, and none is so"),
        ("family card where float xpath('/card/stock') > 2.5", ImpossibleCondition, "none is so"),
        ("family card where exists(int card.price)", ImpossibleCondition, "are numbers"),
        ("family card where card.price has 5", ImpossibleCondition, "occurs once at most"),
        ("family card where card.brand * 2 > 5", ImpossibleCondition, "several times, and cannot be computed"),
        (
            "family card where region * xpath('/card/code') > 5",
            ImpossibleCondition,
            "are strings, which cannot",
        ),
        ('xpath("/card/price") < 10', UnnamedFamily, "Begin the filter with `family NAME where`"),
        ("card.price < 10", UnnamedFamily, '`xml.family = "card"`'),
        ('xml.family = "card" or xpath("/card/price") < 10', UnnamedFamily, "which family"),
        ('xml.family in ("card") and xpath("/card/price") < 10', UnnamedFamily, "which family"),
        ("family card and x = 1", FilterSyntaxError, "expected `where` behind the name of the family"),
        ("family card where", FilterSyntaxError, "found the end of the text"),
        ("family card where xpath(/card) = 1", FilterSyntaxError, "an XPath in quotes"),
        ('family card where xpath("/card"', FilterSyntaxError, r"expected `\)`"),
        ("family card where x = 1 2", FilterSyntaxError, "end of the filter"),
    ],
)
def test_what_can_select_nothing_is_refused_with_the_reason(text, error, said):
    with pytest.raises(error, match=said):
        plain(text)


def test_names_know_where_they_stood():
    expression: Any = read_selection_text('family card where x = 1 and xpath("/a") = 2').expression
    names = [one.attribute for one in expression.operands]
    assert [(one, one.column, one.xpath) for one in names] == [("x", 19, None), ('xpath("/a")', 35, "/a")]


@pytest.mark.parametrize(
    "text", ["family card", "  FAMILY `x` where y", 'a = 1 and xpath("/b")', 'xml.family = "c"']
)
def test_only_who_knows_the_families_reads_such_a_text(text):
    assert is_selection(text)
    if "xml." in text:
        read_filter(text)
        return
    with pytest.raises(UnknownFamilies, match="A broker knows them"):
        read_filter(text)


@pytest.mark.parametrize(
    "text", ['symbol = "ACME"', "family = 1", "families > 2", "my_xpath > 1", "card.price < 1"]
)
def test_plain_filters_are_nobody_elses_business(text):
    assert not is_selection(text)
    with pytest.raises(FilterSyntaxError):
        read_filter(f"{text} nonsense")
