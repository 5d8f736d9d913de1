"""Documents become trees within their limits. What a document has is known to the generator that wrote it."""

from __future__ import annotations

import random
import threading
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.documents import parsing
from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.parsing import DocumentLimits, parse_document, thread_is_worn

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")


class WrittenDocument:
    """A document that counts what it writes."""

    def __init__(self, chance: random.Random, most: int) -> None:
        self.chance = chance
        self.most = most
        self.nodes = self.attributes = self.depth = self.names = self.text = 0
        self.written = self.element(1)

    def element(self, depth: int) -> str:
        name, chance = self.name(), self.chance
        self.nodes += 1
        self.depth = max(self.depth, depth)
        attributes = "".join(
            f" {self.name(f'{at}_')}={quoteattr(self.characters())}" for at in range(chance.randrange(3))
        )
        if chance.random() < 0.2:
            attributes += f" xmlns:n{depth}='urn:{'x' * chance.randrange(9)}:'"
            self.attributes += 1
        parts = [self.part(depth) for _ in range(chance.randrange(5))]
        return f"<{name}{attributes}>{''.join(parts)}</{name}>"

    def part(self, depth: int) -> str:
        kind = self.chance.randrange(6)
        if self.nodes >= self.most:
            return ""
        if kind < 3:
            return f"{self.element(depth + 1)}\n"
        if kind == 3:
            self.nodes += 1
            return f"<!--{self.characters()}=&lt;-->"
        if kind == 4:
            self.nodes += 1
            return f"<?{self.name('', counted=False)} {self.characters()}?>"
        return f"<i>{escape(self.characters())}<![CDATA[<a b='c'>]]></i>" if self.inner(depth) else ""

    def inner(self, depth: int) -> bool:
        self.nodes += 1
        self.depth = max(self.depth, depth + 1)
        self.text = max(self.text, 40)
        return True

    def name(self, before: str = "", *, counted: bool = True) -> str:
        self.attributes += bool(before)
        name = f"e{before}{'x' * self.chance.randrange(12)}"
        self.names = max(self.names, len(name))
        return name

    def characters(self) -> str:
        return "".join(self.chance.choices("ab =é", k=self.chance.randrange(12)))


@given(
    st.integers(0, 2**32), st.sampled_from(["nodes", "attributes", "depth", "names"]), st.sampled_from([-1, 0])
)
def test_a_document_is_refused_exactly_for_what_exceeds_a_limit(seed, what, off):
    written = WrittenDocument(random.Random(seed), 60)
    has = getattr(written, what)
    limits = DocumentLimits(**{what: max(0, has + off)})
    content = written.written.encode()
    if off == 0 or has == 0:
        assert parse_document(content, limits).getroot().tag == ElementTree.fromstring(content).tag
    else:
        with pytest.raises(DocumentTooLarge) as refused:
            parse_document(content, limits)
        assert refused.value.fields == {"what": what, "limit": has + off}


def test_the_size_is_bounded():
    content = b"<a>" + b"x" * 93 + b"</a>"
    assert parse_document(content, DocumentLimits(size=100)).getroot().text == "x" * 93
    with pytest.raises(DocumentTooLarge, match="the limit of 99 for its size"):
        parse_document(content, DocumentLimits(size=99))


@pytest.mark.parametrize(
    "content",
    [
        b"<a>12345</a>",
        b"<a><b/>12<![CDATA[345]]></a>",
        b"<a b='12345'/>",
        b"<a><!--12345--></a>",
        b"<a><?b 12345?></a>",
    ],
)
def test_texts_are_bounded(content):
    assert parse_document(content, DocumentLimits(text=5))
    with pytest.raises(DocumentTooLarge, match="for its text"):
        parse_document(content, DocumentLimits(text=4))


def test_the_limits_of_libxml2_are_within_ours():
    for content, what in [
        (b"<a>" * 257 + b"</a>" * 257, "depth"),
        (b"<" + b"a" * 50_001 + b"/>", "names"),
        (b"<a " + b"b" * 50_001 + b"='1'/>", "names"),
        (b"<a>" + b"b" * 10_000_001 + b"</a>", "text"),
        (b"<a b='" + b"b" * 10_000_001 + b"'/>", "text"),
    ]:
        with pytest.raises(DocumentTooLarge) as refused:
            parse_document(content, DocumentLimits(size=1 << 30))
        assert refused.value.what == what
    assert parse_document(b"<a>" * 256 + b"</a>" * 256)
    assert parse_document(b"<" + b"a" * 49_999 + b"/>")


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "cp1252"]
)
@pytest.mark.parametrize("declared", [True, False])
def test_encodings(encoding, declared):
    if not declared and encoding in ("iso-8859-1", "cp1252"):
        pytest.skip("Without a declaration it is UTF-8.")
    named = "windows-1252" if encoding == "cp1252" else encoding.removesuffix("-sig")
    head = f"<?xml version='1.0' encoding='{named}'?>" if declared else ""
    root = parse_document(f"{head}<größe b='é'>Maß</größe>".encode(encoding)).getroot()
    assert (root.tag, root.get("b"), root.text) == ("größe", "é", "Maß")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<a/>".encode("utf-32"), "UTF-32"),
        (b"<?xml version='1.0' encoding='utf-7'?>+ADw-a/+AD4-", "'utf-7', is not read"),
        (b"<?xml version='1.0' encoding='iso-2022-jp'?><a/>", "'iso-2022-jp', is not read"),
        ("<?xml version='1.0' encoding='cp037'?><a/>".encode("cp037"), "does not begin with `<`"),
        (b"\xff\xfe<\x00a", "but is not"),
        (b"<?xml version='1.0' encoding='" + b"x" * 999 + b"'?><a/>", "declaration cannot be read"),
        (b"<?xml version='1.0' encoding='iso-8859-99'?><a/>", "ncoding"),
        (b"", "does not begin"),
        (b"{}", "does not begin"),
        (b"<a>\xff</a>", "tf-8|UTF-8|encoding"),
    ],
)
def test_other_encodings_are_refused(content, says):
    with pytest.raises(DocumentRefused, match=says):
        parse_document(content)


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (b"<a><b></a>", 1, 11),
        (b"<a>\n<b c=1/></a>", 2, 6),
        (b"<a/>\n<b/>", 2, 1),
        (b"<a>\n  &b;</a>", 2, 6),
        (b"<a><b:c/></a>", 1, 8),
    ],
)
def test_what_is_not_well_formed_is_refused_where_it_is(content, line, column):
    with pytest.raises(DocumentRefused, match=f"at line {line}, column {column}: ") as refused:
        parse_document(content)
    assert (refused.value.line, refused.value.column) == (line, column)


def test_a_thread_is_worn_by_what_it_has_parsed(monkeypatch):
    monkeypatch.setattr(parsing, "WORN", 100)
    worn = []

    def read() -> None:
        worn.append(thread_is_worn())
        for _ in range(2):
            parse_document(b"<a>" + b"x" * 60 + b"</a>")
            worn.append(thread_is_worn())

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert worn == [False, False, True]
