"""XPath as names of attributes. The oracle is libxml2, which reads and evaluates the texts by itself."""

from __future__ import annotations

import math
import pickle
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.documents.extraction import Extraction
from palio.documents.xpath import (
    BOOLEAN,
    MAX_PATH_STEPS,
    NODES,
    NUMBER,
    STRING,
    Extent,
    UnknownPrefix,
    XPathSyntaxError,
    XPathTooCostly,
    XPathTooLong,
    path_steps,
    read_path,
    read_xpath,
)
from palio.model.errors import PalioError
from tests.documents.generated_paths import PREFIXES, DocumentMaker, PathMaker

etree = pytest.importorskip("lxml.etree")
SEEDS = st.integers(0, 2**32)
TYPES = {list: NODES, str: STRING, float: NUMBER, bool: BOOLEAN}


def evaluated(text: str, document: str) -> object:
    """What libxml2 says of it; of nodes which ones, and of attributes and texts their values."""
    tree = etree.fromstring(document).getroottree()
    found = etree.XPath(text, namespaces=PREFIXES, smart_strings=False)(tree)
    if isinstance(found, list):
        return [one if isinstance(one, str | tuple) else (one.tag, tree.getpath(one)) for one in found]
    return "nan" if isinstance(found, float) and math.isnan(found) else found


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_the_canonical_text_means_the_same(seed):
    text, document = PathMaker(seed).expression(), DocumentMaker(seed).document()
    path = read_xpath(text, PREFIXES)
    assert evaluated(path.text, document) == evaluated(text, document)


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_the_canonical_text_is_its_own(seed):
    path = read_xpath(PathMaker(seed).expression(), PREFIXES)
    assert read_xpath(path.text, PREFIXES) == path


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_the_type_is_what_it_comes_to(seed):
    text, document = PathMaker(seed).expression(), DocumentMaker(seed).document()
    found = etree.XPath(text, namespaces=PREFIXES, smart_strings=False)(etree.fromstring(document))
    assert read_xpath(text, PREFIXES).type == TYPES[type(found)]


@settings(max_examples=300, deadline=None)
@given(st.text("ab12./@[]()*|=<>!-+:,'\" \n$αdivorn", max_size=24))
def test_what_is_accepted_is_what_libxml2_reads(text):
    column = 1
    try:
        canonical = read_xpath(text, PREFIXES).text
    except XPathSyntaxError as error:
        canonical, column = None, error.column
    assert 1 <= column <= len(text) + 1
    for one in (text, canonical) if canonical else ():
        etree.XPath(one, namespaces=PREFIXES)


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        (("card/price", "/card/price", " / child::card\n/ child::price ", "./card/./price"), "/card/price"),
        (("//b", "/descendant::b", "/descendant-or-self::node()/b", "//./b"), "//b"),
        (("/descendant::b[1]",), "/descendant::b[1]"),
        (("a/@x", "/a/attribute::x"), "/a/@x"),
        (("a[1]", "a[position() = 1]", "a[1=position()]", "a[1.0]"), "/a[1]"),
        (("a[last()]", "a[position()=last()]", "a[last( ) = position( )]"), "/a[last()]"),
        (("a[b='x']", 'a["x" = b]', "a[(b) = ('x')]", "a[./b = 'x']"), '/a[b = "x"]'),
        (("a[5 > b]", "a[b<5]", "a[b < 5.0]"), "/a[b < 5]"),
        (("q:b", "r:b", "/child::r:b"), "/q:b"),
        (("string()", "string(/)", "string(.)"), "string(/)"),
        (("(a/b)/c", "((a)/b/c)", "a/b/c"), "/a/b/c"),
        (("((a)[1])[2]", "(/a)[1][2]"), "(/a)[1][2]"),
        (("1+2*3", "1 + (2 * 3)"), "1 + 2 * 3"),
        (("(1 - 2) - 3", "1 - 2 - 3"), "1 - 2 - 3"),
        (("1 - (2 - 3)",), "1 - (2 - 3)"),
        (("a/text()", "/a/child::text( )"), "/a/text()"),
        (("(/)*2",), "(/) * 2"),
        (("a | b/..", "(a)|b/parent::node()"), "/a | /b/.."),
        (("a[@x or not(@y)]/b//c", "a[attribute::x or not(@y)]/b/descendant::c"), "/a[@x or not(@y)]/b//c"),
        (("""a[. = 'say "x"']""",), """/a[. = 'say "x"']"""),
        (("div div mod", "/div div /mod"), "/div div /mod"),
        (("* * *",), "/* * /*"),
        (("0.50 + .5",), "0.5 + 0.5"),
    ],
)
def test_spellings_of_one_path(spellings, name):
    assert [read_xpath(one, PREFIXES).text for one in spellings] == [name] * len(spellings)


def test_names_without_a_prefix_are_in_the_default_namespace_if_there_is_one():
    path = read_xpath("/card/c:price/@currency", {"": "urn:card", "c": "urn:card"})
    assert path.text == "/card/price/@currency"
    assert path == read_xpath("/c:card/c:price/@currency", {"": "urn:card", "c": "urn:card"})
    assert path.tree != read_xpath("/card/price/@currency", {}).tree


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "the end stands where a name is expected"),
        ("/a[", 4, "the end stands where a name is expected"),
        ("/a[b", 5, "`]` is missing for `[` in column 3"),
        ("/a b", 4, "`b` stands where the expression is at its end"),
        ("/a = '\x13'", 7, "XML has no character U+0013"),
        ("//a\ufffe", 4, "XML has no character U+FFFE"),
        ("/a[. = $x]", 8, "there are no variables"),
        ("cont(/a)", 1, "Did you mean `count`?"),
        ("/a/count(b)", 4, "functions do not stand behind an axis"),
        ("/chid::b", 2, "Did you mean `child`?"),
        ("/a[z:b]", 4, "the prefix `z` is bound to no namespace"),
        ("/a[. = 'x]", 8, "the string that begins with ' has no end"),
        ("'x'/a", 4, "only nodes have steps"),
        ("/a | 1", 4, "`|` joins two sets of nodes"),
        ("count('x')", 1, "`count` takes a set of nodes"),
        ("count(a, b)", 1, "`count` takes 1 operands, not 2"),
        ("position() = 1", 1, "no meaning outside of a predicate"),
        ("/a/.[1]", 5, "`.` takes no predicate"),
        ("/a§", 3, "has no meaning in XPath 1.0"),
        ("(" * 70 + "a" + ")" * 70, 65, "nested more than 64 deep"),
        ("1" + "+1" * 300, 514, "more than 256 operators"),
        ("/a" * 3_000, 4_096, "6,000 characters"),
        ("9" * 400, 1, "larger than any"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text, column, said):
    with pytest.raises(XPathSyntaxError) as caught:
        read_xpath(text, PREFIXES)
    assert caught.value.column == column
    assert said in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_unknown_prefix_says_which_ones_there_are():
    with pytest.raises(UnknownPrefix) as caught:
        read_xpath("/z:a", PREFIXES)
    assert (caught.value.prefix, caught.value.known) == ("z", ("p", "q", "r", "xml"))


def test_a_name_of_an_attribute_is_no_longer_than_that():
    assert len(read_path("/" + "a" * 254, {}).text) == 255
    with pytest.raises(XPathTooLong):
        read_path("/" + "a" * 255, {})


@pytest.mark.parametrize(
    "text",
    [
        "/card/price",
        "//price/@currency",
        "//price[2]",
        "/card[brand = 'Acme' and supplier = 'North']/price",
        "count(//price) > 3",
        "sum(/card/price)",
        "//*[. = 'x']",
        "string(/card)",
        "//a[count(b) = 2]/c",
    ],
)
def test_what_grows_with_the_document_is_allowed(text):
    small, large = (path_steps(read_xpath(text, {}).tree, Extent(nodes, 100)) for nodes in (1_000, 100_000))
    assert read_path(text, {}).text
    assert large <= 110 * small


@pytest.mark.parametrize(
    "text",
    [
        "//a[../b]",
        "//a[following-sibling::a = 'x']",
        "//a[b = //b]",
        "//a/ancestor::b",
        "//*[count(//*) > 3]",
        "//a[.//b[.//c[.//d]]]",
        "count(//*[count(preceding::*) > 3])",
        "//a != //b",
        "//*[//*[//*[//*]]]",
    ],
)
def test_what_grows_faster_than_the_document_is_refused(text):
    with pytest.raises(XPathTooCostly) as caught:
        read_path(text, {})
    assert caught.value.steps > caught.value.limit == MAX_PATH_STEPS
    assert read_path(text, {}, Extent(10, 5), most=10**12).text  # but may be where documents are small


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 1_000), st.integers(1, 1_000), st.integers(1, 50))
def test_the_bound_grows_with_the_document(seed, some, more, depth):
    tree = read_xpath(PathMaker(seed).path(), PREFIXES).tree
    assert 0 < path_steps(tree, Extent(some, depth)) <= path_steps(tree, Extent(some + more, depth + 1))


@pytest.mark.parametrize("name", ["a\ufffd", "\u2c00", "\U00010000", "\u037f", "é", "a\u0300"])
def test_names_that_libxml2_cannot_look_for_are_for_plain_paths(name):
    """It reads names of XML's fifth edition in documents, and those of the fourth in expressions."""
    tree = etree.fromstring(f"<{name}><b/></{name}>").getroottree()
    [found] = Extraction([read_path(f"/{name}/b", PREFIXES)]).found(tree).results
    assert len(found) == 1
    text = f"count(/{name}/b)"
    try:
        etree.XPath(text)
    except etree.XPathSyntaxError:
        with pytest.raises(XPathSyntaxError, match="a name that libxml2 cannot look for"):
            read_path(text, PREFIXES)
    else:
        assert Extraction([read_path(text, PREFIXES)]).found(tree).results == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        "|".join(["/a/.."] * 200),
        "|".join(["a/following::b"] * 200),
        " = ".join(["(a | b/..)"] * 200),
        "(" * 15 + "a/.." + "[b] | c/..)" * 15,
        "a/..[" * 60 + "b" + "]" * 60,
    ],
)
def test_what_a_path_costs_is_known_soon(text):
    began = time.process_time()
    with suppress(PalioError):
        read_path(text, PREFIXES)
    assert time.process_time() - began < 0.5
