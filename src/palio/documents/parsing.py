"""Bytes of a stranger become a tree, or an error: before there is a tree, they are known to be harmless.

1. Nothing that a document says makes anybody open a file or a connection, and nothing in it stands for
   something else: any DOCTYPE is refused where it begins, before libxml2 sees it, so there are no entities but
   the five and no default attributes. Nobody asks for XInclude here, so its elements are elements.
2. The encoding is one of a short list in which markup is where its ASCII bytes are. UTF-16 is turned into UTF-8
   first. So whatever counts bytes of markup below counts at least what the parser will find.
3. A document within the limits is parsed once. `<` and `=` are counted before that: there are no more elements
   and attributes than those. Only where that proves too little, because a document is close to a limit or the
   limits are lower than libxml2's own, a parser that makes no tree counts exactly, and stops soon after
   the first thing too many (`_Counter`).
4. Depth, names and texts have limits within libxml2, which stop it in the middle: 256, 50,000 and 10,000,000.

The time needs no limit of its own: it is linear in the size, some 10 ms for the largest. But a thread keeps
every name that it has ever parsed, for lxml shares them among its documents; `thread_is_worn` tells a pool when
to take a new one.
"""

from __future__ import annotations

import re
import threading
from typing import Any, Final

import msgspec

from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.libxml import etree_module
from palio.model.values import MAX_PAYLOAD_BYTES

LIBXML_DEPTH: Final = 256
LIBXML_NAME: Final = 50_000
LIBXML_TEXT: Final = 10_000_000
WORN: Final = 8 * 1_048_576  # bytes parsed; in names, they are up to 40 MiB, and a new thread costs 0.1 ms

_PIECE: Final = 65_536  # what a document is counted by, so that it stops within one
_RESOURCES: Final = (110, 114)  # libxml2's codes: a name too long, a limit of resources
_DECLARATION: Final = re.compile(rb"<\?xml\s[^>]{0,200}?\bencoding\s*=\s*[\"']([^\"']{0,40})[\"']")
_PROLOG: Final = re.compile(rb"(?:[ \t\r\n]+|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_UTF16: Final = {b"\xfe\xff": "utf-16", b"\xff\xfe": "utf-16", b"\x00<": "utf-16-be", b"<\x00": "utf-16-le"}
_BYTES: Final = re.compile(
    r"utf-?8|us-ascii|ascii|iso-?8859-?\d{1,2}|latin-?1|windows-125\d|cp125\d", re.IGNORECASE
)
_read = threading.local()


class DocumentLimits(msgspec.Struct, frozen=True):
    """How much a document may have. What is not said is the most that Palio or libxml2 take anyway, or room
    for any document of that size that is not made of markup only.
    """

    size: int = MAX_PAYLOAD_BYTES  # bytes; it is the payload of an event
    depth: int = LIBXML_DEPTH
    nodes: int = 100_000  # elements, comments and instructions; an invoice of 420 KB has 360
    attributes: int = 50_000  # with declarations of namespaces; that invoice has 60
    names: int = LIBXML_NAME  # characters of one name
    text: int = LIBXML_TEXT  # characters of one text, comment or attribute


_USUAL: Final = DocumentLimits()


def parse_document(content: bytes, limits: DocumentLimits = _USUAL) -> Any:
    """The tree of a document (`lxml.etree._ElementTree`). Raises `DocumentRefused` or `DocumentTooLarge`."""
    if len(content) > limits.size:
        raise DocumentTooLarge("size", limits.size)
    etree = etree_module()
    content, encoding = _in_ascii(content)
    _require_no_doctype(content, encoding)
    _read.size = getattr(_read, "size", 0) + len(content)
    if not _surely_within(content, limits):
        _count(etree, content, encoding, limits)
    parser = etree.XMLParser(encoding=encoding, collect_ids=False, **_SAFE)
    try:
        tree = etree.ElementTree(etree.fromstring(content, parser))
    except etree.XMLSyntaxError as problem:
        raise _refusal(problem, limits) from None
    if tree.docinfo.internalDTD is not None:  # what was looked for above, so this is a mistake of ours
        raise DocumentRefused("A DOCTYPE is not allowed.")
    return tree


def thread_is_worn() -> bool:
    """Whether this thread has parsed so much that a pool that reads for strangers should end it, and with it
    the names that it keeps.
    """
    return getattr(_read, "size", 0) > WORN


_SAFE: Final[dict[str, Any]] = {
    "attribute_defaults": False,
    "dtd_validation": False,
    "huge_tree": False,
    "load_dtd": False,
    "no_network": True,
    "recover": False,
    "resolve_entities": False,
}


def _in_ascii(content: bytes) -> tuple[bytes, str | None]:
    """The document with its markup in ASCII; and its encoding, if it declares none or another."""
    if wide := _UTF16.get(content[:2]):
        if content[2:4] == b"\x00\x00" or content[:4] == b"\x00\x00\xfe\xff":
            raise DocumentRefused("Its encoding, UTF-32, is not read; write it as UTF-8.")
        try:
            return content.decode(wide).encode(), "utf-8"
        except UnicodeError:
            raise DocumentRefused("It begins like UTF-16, but is not; write it as UTF-8.") from None
    begins = content[3:] if content.startswith(b"\xef\xbb\xbf") else content
    if not begins.lstrip(b" \t\r\n").startswith(b"<"):
        raise DocumentRefused("It does not begin with `<`, as XML does.", 1, 1)
    declared = _DECLARATION.match(begins)
    if declared and not _BYTES.fullmatch(declared[1].decode("latin-1")):
        name = declared[1].decode("latin-1")
        raise DocumentRefused(f"Its encoding, {name!r}, is not read; write it as UTF-8.", 1, 1)
    if declared is None and re.match(rb"<\?xml\s[^>]*encoding", begins[:1_000]):
        raise DocumentRefused("Its XML declaration cannot be read.", 1, 1)
    return content, None if declared else "utf-8"


def _require_no_doctype(content: bytes, encoding: str | None) -> None:
    """A DOCTYPE can only stand before the root, among comments and instructions."""
    start = 3 if content.startswith(b"\xef\xbb\xbf") else 0
    prolog = _PROLOG.match(content, start)
    at = prolog.end() if prolog else start
    if content.startswith(b"<!DOCTYPE", at):
        before = content[start:at]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        raise DocumentRefused("A DOCTYPE is not allowed; leave it and its entities out.", line, column)


def _surely_within(content: bytes, limits: DocumentLimits) -> bool:
    """Whether no way to read these bytes could exceed a limit that libxml2 does not keep by itself."""
    size = len(content)
    return (
        content.count(b"<") <= limits.nodes
        and content.count(b"=") <= limits.attributes
        and (limits.depth >= LIBXML_DEPTH or content.count(b"</") < limits.depth)
        and (limits.names >= LIBXML_NAME or size <= limits.names)
        and (limits.text >= LIBXML_TEXT or size <= limits.text)
    )


class _Counter:
    """What a parser tells instead of making a tree: it counts, and stops at what is too much."""

    def __init__(self, limits: DocumentLimits) -> None:
        self._limits = limits
        self._nodes = self._attributes = self._depth = self._text = 0

    def start(self, name: str, attributes: dict[str, str], namespaces: dict[str | None, str]) -> None:
        limits = self._limits
        self._text = 0
        self._depth += 1
        self._attributes += len(attributes) + len(namespaces)
        if self._depth > limits.depth:
            raise DocumentTooLarge("depth", limits.depth)
        if self._attributes > limits.attributes:
            raise DocumentTooLarge("attributes", limits.attributes)
        if any(
            len(one.rpartition("}")[2]) > limits.names for one in (name, *attributes, *filter(None, namespaces))
        ):
            raise DocumentTooLarge("names", limits.names)
        if any(len(one) > limits.text for one in (*attributes.values(), *namespaces.values())):
            raise DocumentTooLarge("text", limits.text)
        self._count_node()

    def end(self, name: str) -> None:
        self._depth -= 1
        self._text = 0

    def data(self, text: str) -> None:
        self._text += len(text)
        if self._text > self._limits.text:
            raise DocumentTooLarge("text", self._limits.text)

    def comment(self, text: str) -> None:
        self._count_node(len(text))

    def pi(self, target: str, data: str | None) -> None:
        if len(target) > self._limits.names:
            raise DocumentTooLarge("names", self._limits.names)
        self._count_node(len(data or ""))

    def close(self) -> None: ...

    def _count_node(self, text: int = 0) -> None:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise DocumentTooLarge("nodes", self._limits.nodes)
        if text > self._limits.text:
            raise DocumentTooLarge("text", self._limits.text)


def _count(etree: Any, content: bytes, encoding: str | None, limits: DocumentLimits) -> None:
    """Raises `DocumentTooLarge` for what is too much, soon after it is read."""
    parser = etree.XMLParser(encoding=encoding, target=_Counter(limits), **_SAFE)
    try:
        for at in range(0, len(content), _PIECE):
            parser.feed(content[at : at + _PIECE])
        parser.close()
    except etree.XMLSyntaxError as problem:
        raise _refusal(problem, limits) from None


def _refusal(problem: Any, limits: DocumentLimits) -> DocumentRefused | DocumentTooLarge:
    said = problem.msg or "It is not well-formed."
    if problem.code in _RESOURCES:
        for word, what, limit in (
            ("depth", "depth", LIBXML_DEPTH),
            ("Name", "names", LIBXML_NAME),
            ("", "text", LIBXML_TEXT),
        ):
            if word in said:
                return DocumentTooLarge(what, limit)
    line, column = problem.position
    reason = re.sub(r", line \d+, column \d+$", "", said).strip()
    return DocumentRefused(f"{reason}.", line or None, column or None)
