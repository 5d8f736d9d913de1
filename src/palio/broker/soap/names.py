"""Namespaces and dialects of SOAP, WS-Addressing, WS-Notification, WS-Security and ONVIF."""

from __future__ import annotations

SOAP_11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP_12 = "http://www.w3.org/2003/05/soap-envelope"
WSA = "http://www.w3.org/2005/08/addressing"
WSNT = "http://docs.oasis-open.org/wsn/b-2"
BR = "http://docs.oasis-open.org/wsn/br-2"
WSRF_BF = "http://docs.oasis-open.org/wsrf/bf-2"
WSRF_R = "http://docs.oasis-open.org/wsrf/r-2"
WSTOP = "http://docs.oasis-open.org/wsn/t-1"
WSSE = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
WSU = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
USERNAME_TOKEN = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0"
TDS = "http://www.onvif.org/ver10/device/wsdl"
TEV = "http://www.onvif.org/ver10/events/wsdl"
TT = "http://www.onvif.org/ver10/schema"
TER = "http://www.onvif.org/ver10/error"
XOP = "http://www.w3.org/2004/08/xop/include"
PALIO = "urn:palio:error"

# Dialects of topic expressions, and of filters over the content of messages.
TOPIC_SIMPLE = f"{WSTOP}/TopicExpression/Simple"
TOPIC_CONCRETE = f"{WSTOP}/TopicExpression/Concrete"
TOPIC_FULL = f"{WSTOP}/TopicExpression/Full"
TOPIC_CONCRETE_SET = "http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet"
CONTENT_ITEMS = "http://www.onvif.org/ver10/tev/messageContentFilter/ItemFilter"
CONTENT_XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"
CONTENT_PALIO = "urn:palio:filter"  # by itself our own language, with `:NAME` behind it one of the dialects

TOPIC_DIALECTS = (TOPIC_CONCRETE, TOPIC_CONCRETE_SET, TOPIC_SIMPLE, TOPIC_FULL)

# How these are written where a prefix is wanted.
PREFIXES = {
    "wsa": WSA,
    "wsnt": WSNT,
    "wsn-br": BR,
    "wsrf-bf": WSRF_BF,
    "wsrf-r": WSRF_R,
    "wstop": WSTOP,
    "tds": TDS,
    "tev": TEV,
    "tt": TT,
    "ter": TER,
}


def qualified(namespace: str, name: str) -> str:
    """A name as lxml writes it."""
    return f"{{{namespace}}}{name}"
