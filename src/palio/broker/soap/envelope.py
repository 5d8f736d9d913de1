"""SOAP envelopes, of the versions 1.1 and 1.2: read from requests, and written around answers and faults.

1. An envelope is parsed like every document from outside: without DOCTYPE, entities or addresses, within
   limits.
2. The version of a request is that of its envelope's namespace, and it is answered in the same one.
3. A header that must be understood and is not known refuses the request.
"""

from __future__ import annotations

from enum import Enum

import msgspec
from lxml import etree

from palio.broker.soap.elements import Element, child, children, make, sayable, text_of
from palio.broker.soap.faults import (
    CLIENT_FAULT,
    NOT_AUTHORIZED,
    SERVER_FAULT,
    fault_detail,
    http_status,
    is_denied,
)
from palio.broker.soap.names import SOAP_11, SOAP_12, TEV, TT, WSA, WSNT, WSSE, qualified
from palio.documents.parsing import DocumentLimits, parse_document
from palio.model.errors import PalioError, cut

XML = "text/xml; charset=utf-8"
# Parts of the schemas of WS-Notification and ONVIF nest a few levels, and so do the documents that they carry.
ENVELOPE_LIMITS = DocumentLimits(depth=64)
_DECLARED = {"wsa": WSA, "wsnt": WSNT, "tev": TEV, "tt": TT}


class SoapVersion(Enum):
    """A version of SOAP: its namespace, and the media type of its messages."""

    V11 = (SOAP_11, XML)
    V12 = (SOAP_12, "application/soap+xml; charset=utf-8")

    @property
    def namespace(self) -> str:
        return self.value[0]

    @property
    def media_type(self) -> str:
        return self.value[1]


class WrongEnvelope(PalioError):
    """A body that is no envelope of SOAP."""

    reason: str
    sentence = "This is no SOAP envelope: {reason}"


class NotUnderstood(PalioError):
    """A header of SOAP that must be understood, and is not known here."""

    header: str = cut(200)
    sentence = "The header {header!r} must be understood, and is not known here."


class SoapRequest(msgspec.Struct, frozen=True):
    """A request: its version, what shall be done (an element), and what its headers say."""

    version: SoapVersion
    operation: Element
    message_id: str
    security: Element | None

    @property
    def name(self) -> str:
        """The qualified name of what shall be done."""
        return str(self.operation.tag)


def version_of(content_type: str) -> SoapVersion:
    """The version that a request is of by its media type, or that of its parts; what says none is of 1.2."""
    return SoapVersion.V11 if "text/xml" in content_type.lower() else SoapVersion.V12


def read_envelope(content: bytes) -> SoapRequest:
    """What a request asks for. Raises `WrongEnvelope`, `NotUnderstood`, and what is wrong with the XML."""
    root = parse_document(content, ENVELOPE_LIMITS).getroot()
    version = next((one for one in SoapVersion if root.tag == qualified(one.namespace, "Envelope")), None)
    if version is None:
        raise WrongEnvelope(f"Its root is {str(root.tag)[:200]!r}, and not an Envelope of SOAP 1.1 or 1.2.")
    body = child(root, version.namespace, "Body")
    asked = [] if body is None else list(children(body))
    if len(asked) != 1:
        raise WrongEnvelope("It needs a Body with one element in it, which says what shall be done.")
    header = child(root, version.namespace, "Header")
    _require_understood(header, version)
    message_id = text_of(child(header, WSA, "MessageID"))
    return SoapRequest(version, asked[0], message_id, child(header, WSSE, "Security"))


def _require_understood(header: Element | None, version: SoapVersion) -> None:
    for one in () if header is None else children(header):
        must = one.get(qualified(version.namespace, "mustUnderstand"), "0").strip()
        known = one.tag == qualified(WSSE, "Security") or etree.QName(one).namespace == WSA
        if must in ("1", "true") and not known:
            raise NotUnderstood(str(one.tag))


def write_envelope(
    version: SoapVersion, content: Element | None, *, action: str = "", to: str = "", relates_to: str = ""
) -> bytes:
    """An envelope around an answer, a notification or a fault."""
    spaces = {"s": version.namespace, **_DECLARED}
    root = etree.Element(qualified(version.namespace, "Envelope"), nsmap=spaces)
    header = etree.SubElement(root, qualified(version.namespace, "Header"))
    for name, text in (("Action", action), ("To", to), ("RelatesTo", relates_to)):
        if text:
            header.append(make(WSA, name, text))
    body = etree.SubElement(root, qualified(version.namespace, "Body"))
    if content is not None:
        body.append(content)
    etree.cleanup_namespaces(root, keep_ns_prefixes=[*spaces, "ter"])  # which codes of faults are written with
    written: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def write_fault(version: SoapVersion, problem: PalioError, *, relates_to: str = "") -> tuple[int, bytes]:
    """An error as a fault, and the status that it is sent with."""
    status = http_status(problem)
    senders = status < SERVER_FAULT or isinstance(problem, NotUnderstood)
    write = _fault_11 if version is SoapVersion.V11 else _fault_12
    content = write(problem, senders)
    if version is SoapVersion.V11 and status == CLIENT_FAULT:
        status = SERVER_FAULT  # as SOAP 1.1 sends every fault; what says more is sent as it is
    return status, write_envelope(version, content, action=f"{WSA}/fault", relates_to=relates_to)


def _fault_11(problem: PalioError, senders: bool) -> Element:
    code = "MustUnderstand" if isinstance(problem, NotUnderstood) else "Client" if senders else "Server"
    fault = etree.Element(qualified(SOAP_11, "Fault"), nsmap={"s": SOAP_11})
    etree.SubElement(fault, "faultcode").text = f"s:{code}"
    etree.SubElement(fault, "faultstring").text = sayable(str(problem))
    etree.SubElement(fault, "detail").append(fault_detail(problem))
    return fault


def _fault_12(problem: PalioError, senders: bool) -> Element:
    code = "MustUnderstand" if isinstance(problem, NotUnderstood) else "Sender" if senders else "Receiver"
    namespace, name = NOT_AUTHORIZED
    fault = etree.Element(qualified(SOAP_12, "Fault"), nsmap={"s": SOAP_12, "ter": namespace})
    codes = make(SOAP_12, "Code", make(SOAP_12, "Value", f"s:{code}"))
    if is_denied(problem):
        codes.append(make(SOAP_12, "Subcode", make(SOAP_12, "Value", f"ter:{name}")))
    text = make(SOAP_12, "Text", str(problem))
    text.set(qualified("http://www.w3.org/XML/1998/namespace", "lang"), "en")
    fault.extend([codes, make(SOAP_12, "Reason", text)])
    fault.append(make(SOAP_12, "Detail", fault_detail(problem)))
    return fault
