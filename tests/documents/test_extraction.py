"""Values of paths. The oracle is libxml2, which evaluates the text of each path by itself, as it is written."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.documents import DocumentRefused, DocumentTooLarge, parse_document
from palio.documents.extraction import Extraction
from palio.documents.xpath import read_xpath
from tests.documents.generated_paths import PREFIXES, DocumentMaker, PathMaker

etree = pytest.importorskip("lxml.etree")
SEEDS = st.integers(0, 2**32)


def extracted(texts: list[str], document: str) -> list[object]:
    """What we find; of elements which ones and what their string is."""
    tree = parse_document(document.encode())
    found = Extraction([read_xpath(text, PREFIXES) for text in texts]).found(tree)
    return [
        [_shown(tree, node, found.string_of(node)) for node in result]
        if isinstance(result, list)
        else _number(result)
        for result in found.results
    ]


def expected(texts: list[str], document: str) -> list[object]:
    tree = etree.ElementTree(etree.fromstring(document, etree.XMLParser(strip_cdata=True)))
    results = [etree.XPath(text, namespaces=PREFIXES, smart_strings=False)(tree) for text in texts]
    return [
        [_shown(tree, node, _string(node)) for node in result] if isinstance(result, list) else _number(result)
        for result in results
    ]


def _shown(tree: object, node: object, said: str) -> tuple[str, str]:
    return ("" if isinstance(node, str) else tree.getpath(node)), said


def _string(node: object) -> str:
    if isinstance(node, str):
        return node
    return str(node.xpath("string()")) if isinstance(node.tag, str) else node.text or ""


def _number(result: object) -> object:
    return "nan" if isinstance(result, float) and math.isnan(result) else result


@settings(max_examples=250, deadline=None)
@given(SEEDS)
def test_paths_that_are_walked_together_find_what_each_finds_alone(seed):
    maker, document = PathMaker(seed, axes=()), DocumentMaker(seed).document()
    texts = [maker.path() for _ in range(12)]
    texts.append(f"{maker.path()} | {maker.path()}")
    assert extracted(texts, document) == expected(texts, document)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_expressions_of_any_kind_come_to_what_libxml2_says(seed):
    maker, document = PathMaker(seed), DocumentMaker(seed).document()
    texts = [maker.expression() for _ in range(6)]
    assert extracted(texts, document) == expected(texts, document)


def test_most_generated_paths_are_walked():
    maker = PathMaker(1, axes=())
    paths = [read_xpath(maker.path(), PREFIXES) for _ in range(400)]
    assert 150 < len(paths) - len(Extraction(paths).alone) < 400


MIXED = "<a>1<b>2<c/>3</b><!--no-->4<?no no?>5<b x='y'>6</b><![CDATA[7]]></a>"
NAMED = "<a xmlns='urn:p' xmlns:q='urn:q' x='1' q:x='2'><b/><q:b>q</q:b><b xmlns=''>none</b></a>"
NESTED = "<a><b>1<b>2</b><b>3</b></b><c><b>4</b></c><b>5</b></a>"


@pytest.mark.parametrize(
    ("text", "document", "values"),
    [
        ("/a", MIXED, ["1234567"]),
        ("/a/text()", MIXED, ["1", "4", "5", "7"]),
        ("//text()", MIXED, list("1234567")),
        ("/a/b", MIXED, ["23", "6"]),
        ("/a/b[text() = '3']/c", MIXED, [""]),
        ("/a/b[@x = 'y']", MIXED, ["6"]),
        ("//@x", MIXED, ["y"]),
        ("/a/b | /a/text()", MIXED, ["1", "23", "4", "5", "6", "7"]),
        ("/p:a/@x", NAMED, ["1"]),
        ("/p:a/@q:x", NAMED, ["2"]),
        ("/p:a/@*", NAMED, ["1", "2"]),
        ("/p:a/@q:x | /p:a/@x", NAMED, ["1", "2"]),
        ("/a", NAMED, []),
        ("/p:a/b", NAMED, ["none"]),
        ("/p:a/*", NAMED, ["", "q", "none"]),
        ("/p:a/q:*", NAMED, ["q"]),
        ("/p:a/*[2]", NAMED, ["q"]),
        ("//b[2]", NESTED, ["3", "5"]),
        ("/descendant::b[2]", NESTED, ["2"]),
        ("//b[last()]", NESTED, ["3", "4", "5"]),
        ("//b//b", NESTED, ["2", "3"]),
        ("//b[b]", NESTED, ["123"]),
        ("//b[b = '3']/b[1]", NESTED, ["2"]),
        ("/a/b[. = '5']", NESTED, ["5"]),
        ("/a/*[b and b = '4']/b", NESTED, ["4"]),
        ("/a[1]/b[2]", NESTED, ["5"]),
        ("/a[2]", NESTED, []),
        ("//b[. = '3'][1]", NESTED, ["3"]),
        ("//b[1][. = '3']", NESTED, []),
        ("/a/x", NESTED, []),
        ("/text()", NESTED, []),
        ("/@x", MIXED, []),
    ],
)
def test_values_of_paths(text, document, values):
    extraction = Extraction([read_xpath(text, PREFIXES)])
    found = extraction.found(parse_document(document.encode()))
    assert [found.string_of(node) for node in found.results[0]] == values
    assert [value for _, value in expected([text], document)[0]] == values
    assert ("descendant" in text) == bool(extraction.alone)


def test_parts_that_no_path_enters_are_not_looked_at(monkeypatch):
    seen = []
    inner = "".join(f"<x><y>{number}</y></x>" for number in range(1_000))
    tree = parse_document(f"<a><b><c>1</c></b>{inner}</a>".encode())
    extraction = Extraction([read_xpath("/a/b/c", {})])
    monkeypatch.setattr("palio.documents.walk._Going.element", _counted(seen))
    extraction.found(tree)
    assert seen == ["a", "b", "c"]


def _counted(seen: list[str]):
    from palio.documents.walk import _Going

    inner = _Going.element

    def element(self, place, element):
        seen.append(element.tag)
        inner(self, place, element)

    return element


def test_names_of_strangers_are_not_kept():
    extraction = Extraction([read_xpath("//a[b = '1']//c", {}), read_xpath("//p:*", PREFIXES)])
    for start in range(0, 20_000, 1_000):
        names = "".join(f"<n{start + number}><c/></n{start + number}>" for number in range(1_000))
        extraction.found(parse_document(f"<a><b>1</b>{names}</a>".encode()))
    walk = extraction._walk
    assert len(walk.names) <= 4_096
    assert sum(len(place.next) for place in walk._places.values()) < 50


@pytest.mark.parametrize("text", ["//b", "//b/text()", "//b/@x", "//b[not(c)]", "/a/b | /a/c"])
def test_more_nodes_than_a_list_can_have_are_refused(text):
    def document(number: int) -> bytes:
        return b"<a>" + b'<b x="1">2</b>' * number + b"</a>"

    extraction = Extraction([read_xpath(text, {})])
    assert len(extraction.found(parse_document(document(1_024))).results[0]) == 1_024
    with pytest.raises(DocumentRefused, match=r"finds more than 1,024 nodes"):
        extraction.found(parse_document(document(1_025)))


def test_all_strings_together_are_bounded():
    document = "<a>" * 200 + "x<b/>" * 10_000 + "</a>" * 200
    found = Extraction([read_xpath("//a", {})]).found(parse_document(document.encode()))
    with pytest.raises(DocumentTooLarge) as caught:
        [found.string_of(node) for node in found.results[0]]
    assert caught.value.what == "values"
