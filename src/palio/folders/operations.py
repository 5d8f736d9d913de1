"""Operations as files: a file whose root element is one of the simple protocol is carried out, not published.

What is asked is put into an envelope and posted to the broker's `/wsn/simple`, and its `result` is the answer;
so what an operation means is said in one place. The id of the request is the token of the file: a request that
is sent again after a crash publishes the same events, and the others are the same however often they are asked.
"""

from __future__ import annotations

import contextlib
import ssl
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener
from xml.parsers import expat

import msgspec

from palio.folders.errors import PeerAway, UnusableFile, WrongPeer

SIMPLE: Final = "/wsn/simple"
_WSNT, _BR = "http://docs.oasis-open.org/wsn/b-2", "http://docs.oasis-open.org/wsn/br-2"
_SOAP, _WSA = "http://www.w3.org/2003/05/soap-envelope", "http://www.w3.org/2005/08/addressing"
_OPERATIONS = frozenset(
    [f"{_BR} {name}" for name in ("RegisterPublisher", "DestroyRegistration")]
    + [f"{_WSNT} {name}" for name in ("Subscribe", "Unsubscribe", "Notify", "GetCurrentMessage")]
)
_WITHIN = 30.0  # seconds for an answer; a subscription waits until all brokers know its paths
_LONGEST_ANSWER = 64 * 1024 * 1024  # bytes: more than a hundred documents of half a megabyte
_LATER = frozenset((408, 425, 429, 502, 503, 504))
_FILE = "file:"


class OperationResult(msgspec.Struct, frozen=True):
    """What was answered: the element itself, what was made by it, and what is wrong if it was not done."""

    content: bytes
    handle: str
    problem: str | None


def operation_of(content: bytes) -> str | None:
    """The operation that a file asks for, if it is one; anything else is a document."""
    found: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")

    def begin(name: str, _: Any) -> None:
        found.append(name)
        raise _Enough

    parser.StartElementHandler = begin
    with contextlib.suppress(_Enough, expat.ExpatError, LookupError, ValueError):
        parser.Parse(content, True)
    return found[0].rpartition(" ")[2] if found and found[0] in _OPERATIONS else None


class _Enough(Exception):
    """The root element has begun, which is all that is looked at."""


def place_of(content: bytes) -> str | None:
    """The folder that a subscription names as its consumer (`file:NAME`), if it does."""
    address = _root(content).findtext(".//{*}ConsumerReference/{*}Address", "").strip()
    return address.removeprefix(_FILE).strip("/") or "." if address.startswith(_FILE) else None


class SimplePeer:
    """The simple protocol of a broker, spoken over HTTP. Blocks; for threads."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """Raises `WrongPeer`."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WrongPeer(url)
        self.url = url.rstrip("/") + ("" if parts.path.rstrip("/") else SIMPLE)
        self._token = token
        self._opener = build_opener(_NoRedirect, HTTPSHandler(context=ssl.create_default_context()))

    def carry_out(self, content: bytes, name: str, id: str) -> OperationResult:
        """Raises `UnusableFile` for what is no operation, and `PeerAway` if nobody answers."""
        headers = {"Content-Type": "application/soap+xml; charset=utf-8"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = Request(self.url, _envelope(content, id), headers, method="POST")
        try:
            with self._opener.open(request, timeout=_WITHIN) as answer:
                return _result(answer.read(_LONGEST_ANSWER), name)
        except HTTPError as problem:
            said = problem.read(_LONGEST_ANSWER)
            if problem.code in _LATER:
                raise PeerAway(self.url, f"it answers with {problem.code}") from None
            raise UnusableFile(name, _fault(said) or f"{self.url} answers with {problem.code}.") from None
        except (OSError, HTTPException) as problem:
            raise PeerAway(self.url, str(getattr(problem, "reason", problem))) from None


class _NoRedirect(HTTPRedirectHandler):
    """A token is for the broker that it was given for, and for nobody whom that names."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _root(content: bytes) -> Any:
    from palio.documents.parsing import DocumentLimits, parse_document  # noqa: PLC0415 (needs lxml)

    return parse_document(content, DocumentLimits()).getroot()


def _envelope(content: bytes, id: str) -> bytes:
    from lxml import etree  # noqa: PLC0415 (operations alone need it)

    envelope = etree.Element(f"{{{_SOAP}}}Envelope", nsmap={"s": _SOAP, "wsa": _WSA})
    header = etree.SubElement(envelope, f"{{{_SOAP}}}Header")
    etree.SubElement(header, f"{{{_WSA}}}MessageID").text = f"urn:palio:file:{id}"
    etree.SubElement(envelope, f"{{{_SOAP}}}Body").append(_root(content))
    written: bytes = etree.tostring(envelope, encoding="utf-8", xml_declaration=True)
    return written


def _result(content: bytes, name: str) -> OperationResult:
    from lxml import etree  # noqa: PLC0415 (operations alone need it)

    result = _root(content).find(".//result")
    if result is None:
        raise UnusableFile(name, "the answer to it has no result.")
    done = result.get("valueACK") == "true"
    written = etree.tostring(result, encoding="utf-8", xml_declaration=True, with_tail=False)
    problem = None if done else f"{result.get('code')}: {result.get('reason')}"
    return OperationResult(written, result.get("handle", ""), problem)


def _fault(content: bytes) -> str:
    try:
        return str(_root(content).findtext(f".//{{{_SOAP}}}Reason/{{{_SOAP}}}Text", ""))
    except Exception:  # noqa: BLE001 (who answers need not be a broker, and what it says no XML)
        return ""
