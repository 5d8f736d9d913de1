"""Attachments: a request of several parts (`multipart/related`), an envelope and what it refers to.

SOAP with Attachments and MTOM differ in how the envelope refers to a part, by an address `cid:ID` in an
attribute `href` of any element, or in that of `xop:Include`. Both name the part by its Content-ID, and its
bytes are taken as they are.

1. A part is a piece of the body and never decoded: what says that it is written in another way than as bytes is
   refused.
2. There are at most `MOST_PARTS`, each with a head of at most `LONGEST_HEAD` bytes. Parts within parts are not
   looked into. The body has its limit before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import Message
from email.parser import BytesHeaderParser
from urllib.parse import unquote

import msgspec

from palio.broker.soap.elements import Element
from palio.broker.soap.names import XOP, qualified
from palio.model.errors import PalioError, cut

MOST_PARTS = 16
LONGEST_HEAD = 4_096
RELATED = "multipart/related"
# What RFC 2046 allows in a boundary.
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_AS_IT_IS = ("", "7bit", "8bit", "binary")


class WrongAttachments(PalioError):
    """A request of several parts that cannot be taken apart."""

    reason: str
    sentence = "The parts of this request cannot be read: {reason}"


class UnknownAttachment(PalioError):
    """A reference to a part that is not there."""

    reference: str = cut(200)
    sentence = "There is no part {reference!r} in this request; a part is named by its Content-ID, as cid:ID."


class SoapParts(msgspec.Struct, frozen=True):
    """The envelope of a request, and its other parts by their Content-IDs."""

    envelope: bytes
    others: Mapping[str, bytes]


def read_parts(content_type: str, body: bytes) -> SoapParts:
    """What a body consists of; one that has no parts is an envelope. Raises `WrongAttachments`."""
    if not content_type.strip().lower().startswith(RELATED):
        return SoapParts(body, {})
    head = Message()
    head["Content-Type"] = content_type
    boundary, start = head.get_param("boundary"), head.get_param("start")
    if not isinstance(boundary, str) or _BOUNDARY.fullmatch(boundary) is None:
        raise WrongAttachments("Its Content-Type needs a boundary of at most 70 characters.")
    found: dict[str, bytes] = {}
    for number, (id, content) in enumerate(_parts(b"--" + boundary.encode(), body)):
        id = id or f"part-{number}"
        if id in found:
            raise WrongAttachments("Two of them have the same Content-ID.")
        found[id] = content
    if not found:
        raise WrongAttachments("There is none that begins and ends with the boundary.")
    root = _bare(start) if isinstance(start, str) else next(iter(found))
    if root not in found:
        raise WrongAttachments("There is no part with the Content-ID that `start` names.")
    envelope = found.pop(root)
    return SoapParts(envelope, found)


def _parts(delimiter: bytes, body: bytes) -> list[tuple[str, bytes]]:
    pieces = re.split(
        rb"(?:^|\r?\n)" + re.escape(delimiter) + rb"(?=--|[ \t]*\r?\n)", body, maxsplit=MOST_PARTS + 2
    )
    found: list[tuple[str, bytes]] = []
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return found
        if len(found) == MOST_PARTS:
            raise WrongAttachments(f"There are more than {MOST_PARTS}.")
        split = re.split(rb"\r?\n\r?\n", piece, maxsplit=1)
        if len(split) < 2 or len(split[0]) > LONGEST_HEAD:
            raise WrongAttachments(f"A part needs a head of at most {LONGEST_HEAD:,} bytes, and an empty line.")
        said = BytesHeaderParser().parsebytes(split[0].lstrip())
        encoding = str(said.get("Content-Transfer-Encoding", "")).strip().lower()
        if encoding not in _AS_IT_IS:
            raise WrongAttachments(
                f"A part with the encoding {encoding[:40]!r} is not taken; send it as it is."
            )
        found.append((_bare(str(said.get("Content-ID", ""))), split[1]))
    raise WrongAttachments("The boundary that ends them is missing.")


def _bare(id: str) -> str:
    return id.strip().removeprefix("<").removesuffix(">")


def referred(element: Element, others: Mapping[str, bytes]) -> bytes | None:
    """The part that an element, or the `xop:Include` in it, refers to. Raises `UnknownAttachment`."""
    include = element.find(qualified(XOP, "Include"))
    reference = (element if include is None else include).get("href", "")
    if include is None and not reference.startswith("cid:"):
        return None
    id = unquote(reference.removeprefix("cid:"))
    if id not in others:
        raise UnknownAttachment(reference)
    return others[id]
