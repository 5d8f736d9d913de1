"""WSDL: what an endpoint does, described for the tools that make clients.

The messages are in a file of types beside this one; ports, and their bindings for both versions of SOAP, follow
from the operations of the endpoint, so that what is described is what is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from lxml import etree

from palio.broker.soap.elements import Element
from palio.broker.soap.service import SoapOperation

_WSDL = "http://schemas.xmlsoap.org/wsdl/"
_BINDINGS = {
    "Soap11": "http://schemas.xmlsoap.org/wsdl/soap/",
    "Soap12": "http://schemas.xmlsoap.org/wsdl/soap12/",
}
_OURS = "urn:palio:wsn"
_HTTP = "http://schemas.xmlsoap.org/soap/http"


@cache
def _types(file: str) -> bytes:
    return files(__package__).joinpath(file).read_bytes()


def wsdl(
    ports: Mapping[str, Iterable[SoapOperation]],
    addresses: Mapping[str, str],
    types: str = "notification_types.xml",
) -> bytes:
    """The description of ports by their names. Those with an address are services, too."""
    spaces = {"wsdl": _WSDL, "ours": _OURS, "soap11": _BINDINGS["Soap11"], "soap12": _BINDINGS["Soap12"]}
    root = etree.Element(_name("definitions"), name="Palio", targetNamespace=_OURS, nsmap=spaces)
    root.append(etree.fromstring(_types(types)))
    described = {port: tuple(operations) for port, operations in ports.items()}
    elements = [
        element
        for operations in described.values()
        for operation in operations
        for element in _elements(operation)[: 1 if operation.one_way else 2]
    ]
    for element in dict.fromkeys(elements):
        name, namespace = etree.QName(element).localname, etree.QName(element).namespace
        message = etree.SubElement(root, _name("message"), name=name)
        spaces = {"m": namespace} if namespace else {}
        part = etree.SubElement(message, _name("part"), name="parameters", nsmap=spaces)
        part.set("element", f"m:{name}" if namespace else name)
    for port, operations in described.items():
        _port(root, port, operations)
    for port, operations in described.items():
        for version, namespace in _BINDINGS.items():
            _binding(root, f"{port}{version}", port, namespace, operations)
    for port, address in addresses.items():
        service = etree.SubElement(root, _name("service"), name=port)
        for version, namespace in _BINDINGS.items():
            bound = etree.SubElement(
                service, _name("port"), name=f"{port}{version}", binding=f"ours:{port}{version}"
            )
            etree.SubElement(bound, f"{{{namespace}}}address", location=address)
    written: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=True)
    return written


def _name(local: str) -> str:
    return f"{{{_WSDL}}}{local}"


def _elements(operation: SoapOperation) -> tuple[str, str]:
    return operation.asked, operation.answered


def _messages(operation: SoapOperation) -> tuple[str, str]:
    return operation.name, str(etree.QName(operation.answered).localname)


def _port(root: Element, port: str, operations: Iterable[SoapOperation]) -> None:
    described = etree.SubElement(root, _name("portType"), name=port)
    for operation in operations:
        asked, answered = _messages(operation)
        one = etree.SubElement(described, _name("operation"), name=operation.name)
        etree.SubElement(one, _name("input"), message=f"ours:{asked}")
        if not operation.one_way:
            etree.SubElement(one, _name("output"), message=f"ours:{answered}")


def _binding(root: Element, name: str, port: str, namespace: str, operations: Iterable[SoapOperation]) -> None:
    binding = etree.SubElement(root, _name("binding"), name=name, type=f"ours:{port}")
    etree.SubElement(binding, f"{{{namespace}}}binding", style="document", transport=_HTTP)
    for operation in operations:
        one = etree.SubElement(binding, _name("operation"), name=operation.name)
        etree.SubElement(
            one, f"{{{namespace}}}operation", soapAction=f"{operation.port}/{operation.name}Request"
        )
        for way in ("input",) if operation.one_way else ("input", "output"):
            etree.SubElement(etree.SubElement(one, _name(way)), f"{{{namespace}}}body", use="literal")
