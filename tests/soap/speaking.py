"""Speaking SOAP by hand: envelopes written as text, and answers looked through with lxml."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Any

import aiohttp
from lxml import etree

S11, S12 = "http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"
TYPES = {S11: "text/xml; charset=utf-8", S12: "application/soap+xml; charset=utf-8"}
SPACES = {
    "wsnt": "http://docs.oasis-open.org/wsn/b-2",
    "tev": "http://www.onvif.org/ver10/events/wsdl",
    "tds": "http://www.onvif.org/ver10/device/wsdl",
    "tt": "http://www.onvif.org/ver10/schema",
    "wsa": "http://www.w3.org/2005/08/addressing",
    "bf": "http://docs.oasis-open.org/wsrf/bf-2",
    "r": "http://docs.oasis-open.org/wsrf/r-2",
    "wsse": "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd",
    "wsu": "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd",
    "palio": "urn:palio:error",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "tns1": "http://www.onvif.org/ver10/topics",
}
PROFILE = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0"
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
CONCRETE_SET = "http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet"
FULL = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full"


def envelope(body: str, header: str = "", version: str = S12) -> bytes:
    declared = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in SPACES.items())
    head = f"<s:Header>{header}</s:Header>" if header else ""
    return f'<s:Envelope xmlns:s="{version}" {declared}>{head}<s:Body>{body}</s:Body></s:Envelope>'.encode()


def username_token(name: str, password: str, created: str = "", nonce: bytes | None = None) -> str:
    """With a time: by a digest; without: as it is."""
    if not created:
        said = f"<wsse:Password>{password}</wsse:Password>"
    else:
        nonce = secrets.token_bytes(16) if nonce is None else nonce
        digest = hashlib.sha1(nonce + created.encode() + password.encode()).digest()
        written = base64.b64encode(digest).decode()
        said = (
            f'<wsse:Password Type="{PROFILE}#PasswordDigest">{written}</wsse:Password>'
            f"<wsse:Nonce>{base64.b64encode(nonce).decode()}</wsse:Nonce><wsu:Created>{created}</wsu:Created>"
        )
    return (
        '<wsse:Security s:mustUnderstand="1"><wsse:UsernameToken>'
        f"<wsse:Username>{name}</wsse:Username>{said}</wsse:UsernameToken></wsse:Security>"
    )


class Said:
    """An answer."""

    def __init__(self, status: int, version: str, root: Any) -> None:
        self.status = status
        self.version = version
        self.root = root

    def find(self, path: str) -> Any:
        return self.root.find(f".//{path}", SPACES)

    def text(self, path: str) -> str:
        found = self.find(path)
        assert found is not None, etree.tostring(self.root)
        return found.text or ""

    def items(self) -> list[dict[str, str]]:
        """The items of all messages."""
        messages = self.root.iterfind(".//tt:Message", SPACES)
        return [
            {item.get("Name"): item.get("Value") for item in one.iterfind(".//tt:SimpleItem", SPACES)}
            for one in messages
        ]

    @property
    def reason(self) -> str:
        found = self.root.find(f".//{{{S12}}}Text")
        return (found if found is not None else self.root.find(".//faultstring")).text

    @property
    def fault(self) -> str:
        """The name of what the detail of a fault has in it."""
        detail = self.root.find(f".//{{{S12}}}Detail")
        detail = detail if detail is not None else self.root.find(".//detail")
        return "" if detail is None else etree.QName(detail[0]).localname


async def speak(
    session: aiohttp.ClientSession, where: str, body: str, *, header: str = "", version: str = S12
) -> Said:
    """Sends a request, and checks that the answer is SOAP of the same version."""
    sent = envelope(body, header, version)
    async with session.post(where, data=sent, headers={"Content-Type": TYPES[version]}) as answer:
        content = await answer.read()
        root = etree.fromstring(content)
        assert root.tag == f"{{{version}}}Envelope"
        assert answer.headers["Content-Type"] == TYPES[version]
        said = Said(answer.status, version, root)
        assert (answer.status == 200) == (root.find(f".//{{{version}}}Fault") is None), content
        if answer.status != 200:
            assert said.reason.endswith((".", "?")), said.reason
        return said


EVENTS = "/onvif/event_service"


def create(filter: str = "", end: str = "PT60S") -> str:
    ended = f"<tev:InitialTerminationTime>{end}</tev:InitialTerminationTime>" if end else ""
    return f"<tev:CreatePullPointSubscription>{filter}{ended}</tev:CreatePullPointSubscription>"


def by_topic(expression: str, dialect: str = CONCRETE_SET) -> str:
    topic = f'<wsnt:TopicExpression Dialect="{dialect}">{expression}</wsnt:TopicExpression>'
    return f"<tev:Filter>{topic}</tev:Filter>"


def by_content(expression: str, dialect: str = "urn:palio:filter") -> str:
    return (
        f'<tev:Filter><wsnt:MessageContent Dialect="{dialect}">{expression}</wsnt:MessageContent></tev:Filter>'
    )


def pull(timeout: str = "PT5S", most: int = 10) -> str:
    return (
        f"<tev:PullMessages><tev:Timeout>{timeout}</tev:Timeout>"
        f"<tev:MessageLimit>{most}</tev:MessageLimit></tev:PullMessages>"
    )
