"""The short way to values finds what the long way does, or leaves it to that. The long way is the oracle."""

from __future__ import annotations

import random
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.documents import DocumentRefused, DocumentTooLarge, FamilyPath, parse_document
from palio.documents.conversion import NIL
from palio.documents.family import KINDS
from palio.documents.finding import PathFinding
from palio.documents.xpath import read_xpath
from tests.documents.generated_paths import PREFIXES, DocumentMaker, PathMaker

etree = pytest.importorskip("lxml.etree")
quick = pytest.importorskip("palio.documents.quick")
SEEDS = st.integers(0, 2**32)
TEXTS = {
    "int": (
        "1",
        " -7\n",
        "+03",
        "-0",
        "123456789012345678",
        "-9223372036854775808",
        "9223372036854775808",
        "1.0",
    ),
    "float": (
        "2",
        "+3.50",
        " .5",
        "5.",
        "-0.0",
        "1e3",
        "0.1234567890123456",
        "99999999.9999999",
        "1e999",
        "1.2.3",
    ),
    "bool": ("true", "\tfalse", "1", "0", "True", "tru"),
    "time": ("2026-07-02T10:45:00Z", " 2026-07-02T10:45:00.5+02:00 ", "2026-07-02T10:45:00"),
    "string": ("x", " x  y ", "é€𝄞", "1"),
}


def outcome(finding: PathFinding, document: str) -> object:
    """The values with their types, or how the document is refused."""
    try:
        values = finding.values(parse_document(document.encode()))
    except (DocumentRefused, DocumentTooLarge) as problem:
        return type(problem), str(problem)
    return [(repr(value), type(value)) for value in values]


def family(*paths: tuple[str, str, bool]) -> list[tuple[object, FamilyPath]]:
    return [(read_xpath(text, PREFIXES), FamilyPath(text, kind, many)) for text, kind, many in paths]


def both_ways(paths: list[tuple[object, FamilyPath]], document: str) -> object:
    short, long = outcome(PathFinding(paths), document), outcome(PathFinding(paths, short=False), document)
    assert short == long, document
    return short


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_both_ways_find_the_same(seed):
    draw, maker = random.Random(seed), PathMaker(seed, axes=())
    kind = draw.choice(KINDS)
    right = draw.choice((TEXTS[kind], TEXTS[kind][:2]))

    def text(_: re.Match[str]) -> str:
        return draw.choice(right) if draw.random() < 0.98 else draw.choice(TEXTS[draw.choice(KINDS)])

    document = re.sub(
        r"(?<=>)[^<>]+(?=<)|(?<=\"|')[12x y]*(?=[\"'][ />])", text, DocumentMaker(seed).document()
    )
    said = [maker.path() for _ in range(8)]
    said += [f"{maker.path()} | {maker.path()}", "//@x", "//text()", "//b"]
    paths = [(one, draw.choice((kind, kind, kind, "string")), draw.random() < 0.9) for one in said]
    both_ways(family(*paths), document)


def test_most_documents_go_the_short_way(monkeypatch):
    monkeypatch.setattr("palio.documents.finding._values", None)
    finding = PathFinding(family(("/a/b", "float", True), ("//c/@x", "int", False), ("/a", "string", False)))
    tree = parse_document(b"<a><b>1</b><c x='2'/><b> 3.25 </b><!--x-->!</a>")
    assert finding.values(tree) == [(1.0, 3.25), 2, "1 3.25 !"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_becomes_the_same_value_or_is_refused_in_the_same_way(kind):
    for text in [one for several in TEXTS.values() for one in several] + [
        "",
        " ",
        "-",
        "+",
        ".",
        "e",
        "0" * 50,
    ]:
        both_ways(family(("/a", kind, False)), f"<a>{text}</a>")
        both_ways(family(("/a/@x", kind, True)), f"<a x='{text}'/>")


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"\A[+-]?[0-9]{0,17}(\.[0-9]{0,17})?\Z"))
def test_decimals_are_rounded_as_python_does(text):
    both_ways(family(("/a", "float", False)), f"<a>{text}</a>")


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        (f"<a xmlns:i='{NIL[1:-4]}'><b i:nil='true'/><b>1</b></a>", ("/a/b", "int", True)),
        ("<a><b>1</b><b>2</b></a>", ("/a/b", "int", False)),
        ("<a>" + "<b>1</b>" * 1_024 + "</a>", ("//b", "int", True)),
        ("<a>" + "<b>1</b>" * 1_025 + "</a>", ("//b", "int", True)),
        ("<a>" + "x" * 65_535 + "</a>", ("/a", "string", False)),
        ("<a>" + "é" * 40_000 + "</a>", ("/a", "string", False)),
        ("<a>" + "<b>" * 200 + "1" + "</b>" * 200 + "</a>", ("//b", "string", True)),
        ("<a>" * 200 + "x<b/>" * 10_000 + "</a>" * 200, ("//a", "string", True)),
        ("<a>1<![CDATA[2]]>3<!--4-->5</a>", ("/a/text()", "int", True)),
        ("<a x='&lt;&#10;&quot;'/>", ("/a/@x", "string", False)),
        ("<a x='1' y='2'/>", ("/a/@* | /a/@x", "int", True)),
        (
            "<p:a xmlns:p='urn:p' p:x='1' x='2'><q xmlns='urn:q'/><p:b>3</p:b></p:a>",
            ("//p:* | //@p:x", "string", True),
        ),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_as_the_long_way_says(document, paths):
    both_ways(family(paths), document)


def test_paths_that_are_not_plain_stand_beside_those_that_are():
    paths = family(
        ("/a/b[2]", "int", False),
        ("/a/b", "int", True),
        ("count(/a/b)", "int", False),
        ("/a/b[@x = '1']", "int", True),
        ("/a/c", "string", False),
    )
    values = both_ways(paths, "<a><b>1</b><b x='1'>2</b><c>x</c></a>")
    assert values == [("2", int), ("(1, 2)", tuple), ("2", int), ("(2,)", tuple), ("'x'", str)]
    assert both_ways(paths, "<a><b>1</b><b x='1'>x</b><c>x</c></a>")[0] is DocumentRefused


def test_ways_that_make_ever_more_places_are_forgotten():
    """Each set of states that an element comes to is a place; here each way down makes others."""
    letters = "abcdefghijkl"
    paths = family(*[(f"//{one}//{other}", "string", True) for one, other in pairwise(letters)])
    finding, long = PathFinding(paths), PathFinding(paths, short=False)
    draw, most = random.Random(1), 0
    for _ in range(400):
        document = nested([draw.choice(letters) for _ in range(40)])
        assert outcome(finding, document) == outcome(long, document)
        places = len(finding._quick.__self__)
        assert places <= 4_096
        if places < most:
            return
        most = places
    pytest.fail(f"There are {most} places, and none was forgotten.")


def nested(names: list[str]) -> str:
    return "".join(f"<{one}>" for one in names) + "1" + "".join(f"</{one}>" for one in reversed(names))


def test_several_threads_walk_at_a_time():
    paths = family(*[(f"//{one}//{other}", "int", True) for one in "abcd" for other in "abcd"])
    draw, finding = random.Random(2), PathFinding(paths)
    documents = [nested([draw.choice("abcd") for _ in range(30)]) for _ in range(60)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: outcome(finding, one), documents * 3))
    long = PathFinding(paths, short=False)
    assert found == [outcome(long, one) for one in documents] * 3
