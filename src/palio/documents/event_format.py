"""CloudEvents written in XML: structured mode and batches, as `application/cloudevents+xml`.

The elements of the format's namespace are the event: each says its type (`xsi:type`) unless the specification
has it. They become the document that the same event is in JSON, so that what is checked and what becomes an
attribute is said in one place, `model/cloudevents`. Comments, other attributes and elements of other namespaces
are passed over. XML data is the payload: an element of its own, with the namespaces that it stands in.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from palio.documents.libxml import etree_module
from palio.documents.parsing import DocumentLimits, parse_document
from palio.model import jsontext
from palio.model.errors import InvalidNotification
from palio.model.formats import Format, Message, Occurrence, Reading, is_json, media_type_of
from palio.model.formats.structured import event_of
from palio.model.moments import parse_time
from palio.model.notification import Notification

EVENTS = "http://cloudevents.io/xmlformat/V1"
_SCHEMA = "http://www.w3.org/2001/XMLSchema"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_EVENT, _BATCH = f"{{{EVENTS}}}event", f"{{{EVENTS}}}batch"
_TYPE = f"{{{_INSTANCE}}}type"
# Prefixes that the specification writes without declaring them.
_USUAL = {"xs": _SCHEMA, "ce": EVENTS}

# What the specification has: these may say their types, extensions must.
_TYPES = {
    "id": "string",
    "source": "uriRef",
    "type": "string",
    "datacontenttype": "string",
    "dataschema": "uri",
    "subject": "string",
    "time": "timestamp",
}
_EXTENSION_TYPES = frozenset(("boolean", "integer", "string", "binary", "uri", "uriRef", "timestamp"))
_DATA_TYPES = frozenset(("string", "base64Binary", "any"))

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S*", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
# What a context attribute, which is one line, and what XML at all cannot hold.
_NO_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEFAULT_XML = "application/xml"


class XmlEvent(msgspec.Struct, frozen=True):
    """One event."""

    media_types: tuple[str, ...] = ("application/cloudevents+xml",)
    limits: DocumentLimits = DocumentLimits()

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        root = parse_document(message.body, self.limits).getroot()
        if root.tag != _EVENT:
            raise InvalidNotification("$", f"An event is an element `event` of the namespace {EVENTS}.")
        yield Notification.from_cloudevent(
            _event(root, "$"), strict=reading.strict, by_source=reading.by_source
        )

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        return [_message(self.media_types[0], _written(event_of(one), _NAMESPACES)) for one in occurrences]


class XmlBatch(msgspec.Struct, frozen=True):
    """Several events in an element `batch`; one bad event refuses all."""

    media_types: tuple[str, ...] = ("application/cloudevents-batch+xml",)
    limits: DocumentLimits = DocumentLimits()

    def read(self, message: Message, reading: Reading) -> Iterator[Notification]:
        root = parse_document(message.body, self.limits).getroot()
        if root.tag != _BATCH:
            raise InvalidNotification("$", f"A batch is an element `batch` of the namespace {EVENTS}.")
        children = _children(root, "$")
        reading.require_few(len(children))
        for at, child in enumerate(children):
            if child.tag != _EVENT:
                raise InvalidNotification(
                    f"$[{at}]", "A batch has events, and nothing else of their namespace."
                )
        events = [_event(child, f"$[{at}]") for at, child in enumerate(children)]
        yield from Notification.from_cloudevents(events, strict=reading.strict, by_source=reading.by_source)

    def write(self, occurrences: Sequence[Occurrence]) -> list[Message]:
        events = b"".join([_written(event_of(one)) for one in occurrences])
        return [_message(self.media_types[0], b"<ce:batch%s>%s</ce:batch>" % (_NAMESPACES, events))]


def _event(element: Any, path: str) -> dict[str, Any]:
    """The document that an element is in JSON."""
    event: dict[str, Any] = {}
    if (version := element.get("specversion")) is not None:
        event["specversion"] = version
    data: Any | None = None
    for child in _children(element, path):
        name = child.tag.partition("}")[2]
        where = f"{path}.{name[:64]}"
        if name in event or (name == "data" and data is not None):
            raise InvalidNotification(where, "This is there twice in one event.")
        if name == "data":
            data = child
        else:
            event[name] = _context_value(name, child, where)
    if data is not None:
        _put_data(event, data, f"{path}.data")
    return event


def _children(element: Any, path: str) -> list[Any]:
    """The elements of the format's namespace; there is no text beside them."""
    found = []
    beside = [element.text]
    for child in element:
        beside.append(child.tail)
        if isinstance(child.tag, str) and child.tag.startswith(f"{{{EVENTS}}}"):
            found.append(child)
    if any(text and text.strip() for text in beside):
        raise InvalidNotification(path, "There is text beside the elements.")
    return found


def _text(element: Any, path: str) -> str:
    """The text of an element that has nothing else but comments."""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            raise InvalidNotification(path, "This is a text, and has no elements.")
        parts.append(child.tail or "")
    return "".join(parts)


def _type(element: Any, namespace: str, known: frozenset[str]) -> str | None:
    """The type that an element says it has, without its prefix; None for one that is not known there."""
    prefix, _, name = element.get(_TYPE, "").strip().rpartition(":")
    meant = element.nsmap.get(prefix or None, _USUAL.get(prefix))
    return name if meant == namespace and name in known else None


def _context_value(name: str, element: Any, path: str) -> Any:
    kind = _TYPES.get(name)
    if kind is None or element.get(_TYPE) is not None:
        said = _type(element, EVENTS, _EXTENSION_TYPES)
        if said is None:
            known = ", ".join(f"ce:{one}" for one in sorted(_EXTENSION_TYPES))
            raise InvalidNotification(path, f"The xsi:type of an extension is one of {known}.")
        if kind not in (None, said):
            raise InvalidNotification(path, f"The type of this attribute is ce:{kind}, not ce:{said}.")
        kind = said
    text = _text(element, path)
    if _NO_LINE.search(text):
        raise InvalidNotification(path, "A context attribute is one line, without control characters.")
    match kind:
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "uri" if text == "" or _URI.fullmatch(text):  # what may not be empty is refused as in JSON
            return text
        case "uriRef" if not re.search(r"\s", text):
            return text
        case "binary" if _bytes(text) is not None:
            return text
        case "timestamp":
            _require_time(text, path)
            return text
        case "string":
            return text
    raise InvalidNotification(path, f"{text[:80]!r} is no value of the type ce:{kind}.")


def _require_time(text: str, path: str) -> None:
    try:
        parse_time(text)
    except ValueError as problem:
        raise InvalidNotification(path, str(problem)) from None


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _put_data(event: dict[str, Any], element: Any, path: str) -> None:
    match _type(element, _SCHEMA, _DATA_TYPES):
        case "string":
            text = _text(element, path)
            event["data"] = jsontext.read(text) if _is_json(event) else text
        case "base64Binary":
            data = _bytes("".join(_text(element, path).split()))
            if data is None:
                raise InvalidNotification(path, "This is not base64.")
            event["data_base64"] = base64.b64encode(data).decode()
        case "any":
            document = _only_element(element, path)
            event.setdefault("datacontenttype", _DEFAULT_XML)
            event["data_base64"] = base64.b64encode(_serialized(document)).decode()
        case _:
            raise InvalidNotification(path, "The xsi:type of data is xs:string, xs:base64Binary or xs:any.")


def _is_json(event: dict[str, Any]) -> bool:
    return is_json(media_type_of(event.get("datacontenttype", "")))


def _only_element(element: Any, path: str) -> Any:
    children = [child for child in element if isinstance(child.tag, str)]
    beside = [element.text, *[child.tail for child in element]]
    if len(children) != 1 or any(text and text.strip() for text in beside):
        raise InvalidNotification(path, "Data of the type xs:any is one element, and nothing beside it.")
    return children[0]


def _serialized(element: Any) -> bytes:
    return bytes(etree_module().tostring(element, encoding="UTF-8", xml_declaration=False, with_tail=False))


_NAMESPACES = b' xmlns:ce="%s" xmlns:xsi="%s" xmlns:xs="%s"' % tuple(
    one.encode() for one in (EVENTS, _INSTANCE, _SCHEMA)
)


def _message(media_type: str, body: bytes) -> Message:
    return Message((("Content-Type", f"{media_type}; charset=utf-8"),), body)


def _written(event: dict[str, Any], namespaces: bytes = b"") -> bytes:
    """The element of an event. Raises `InvalidNotification` for what XML cannot hold."""
    parts = []
    for name, value in event.items():
        if name in ("specversion", "data", "data_base64"):
            continue
        kind = ""
        if name not in _TYPES:
            kind = "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "string"
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if _NO_LINE.search(text):
            raise InvalidNotification(f"$.{name}", "In XML a context attribute has no line breaks.")
        parts.append(_element(name, f"ce:{kind}" if kind else "", text))
    if "data_base64" in event:
        parts.append(_element("data", "xs:base64Binary", event["data_base64"]))
    elif "data" in event:
        data = event["data"]
        said = "datacontenttype" in event
        if isinstance(data, str) and not _is_json(event):
            parts.append(_element("data", "xs:string", data))
        else:
            if not said:
                parts.append(_element("datacontenttype", "", "application/json"))
            text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
            parts.append(_element("data", "xs:string", text))
    return b'<ce:event%s specversion="1.0">%s</ce:event>' % (namespaces, "".join(parts).encode())


def _element(name: str, kind: str, text: str) -> str:
    if _NO_XML.search(text):
        raise InvalidNotification(f"$.{name}", "XML cannot hold a character of this text.")
    typed = f" xsi:type={quoteattr(kind)}" if kind else ""
    return f"<ce:{name}{typed}>{escape(text, {chr(13): '&#13;'})}</ce:{name}>"


XML_EVENT = XmlEvent()
XML_BATCH = XmlBatch()
XML_FORMATS: tuple[Format, ...] = (XML_EVENT, XML_BATCH)
