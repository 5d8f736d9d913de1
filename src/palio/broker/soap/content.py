"""Filters over the content of messages (`MessageContent`), in one of the dialects that are known here.

XPath 1.0, as the standard has it, asks documents of a family (`documents.xpath_selection`). `urn:palio:filter`
is our own language, and `urn:palio:filter:NAME` one of the dialects of others; ONVIF's clients use ItemFilter.
"""

from __future__ import annotations

from collections.abc import Mapping

from palio.broker.soap.faults import SoapProblem
from palio.broker.soap.items import item_filter
from palio.broker.soap.names import CONTENT_ITEMS, CONTENT_PALIO
from palio.documents import FamilyPaths, xpath_selection
from palio.language import DIALECTS, PALIO, read_filter, write_filter
from palio.model.errors import FilterError, PalioError

_FAULT = "InvalidMessageContentExpressionFault"


def document_filter(text: str, prefixes: Mapping[str | None, str], families: Mapping[str, FamilyPaths]) -> str:
    """The filter about documents that an XPath over the content is. Raises `SoapProblem`."""
    declared = {prefix: namespace for prefix, namespace in prefixes.items() if prefix}
    try:
        return xpath_selection(text, declared, families)
    except PalioError as problem:
        raise SoapProblem(_FAULT, str(problem)) from None


def content_filter(text: str, dialect: str, prefixes: Mapping[str | None, str]) -> str:
    """The filter that an expression over the content is, in our own language. Raises `SoapProblem`."""
    if dialect == CONTENT_ITEMS:
        try:
            return write_filter(item_filter(text, prefixes))
        except PalioError as problem:
            raise SoapProblem(_FAULT, str(problem)) from None
    name = dialect.removeprefix(CONTENT_PALIO).removeprefix(":") or PALIO
    if not dialect.startswith(CONTENT_PALIO) or name not in DIALECTS:
        raise SoapProblem("InvalidFilterFault", f"The dialect {dialect[:200]!r} of contents is not known here.")
    try:
        return text if name == PALIO else write_filter(read_filter(text, name))
    except FilterError as problem:
        raise SoapProblem(_FAULT, str(problem)) from None
