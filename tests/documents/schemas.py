"""Schemas as tests write them."""

from __future__ import annotations

from palio.documents.family import SchemaFile


def schema(declarations: str, namespace: str | None = None, more: str = "") -> str:
    """A schema with these declarations; `t` is its namespace, `u` is urn:u."""
    target = f" targetNamespace='{namespace}' xmlns:t='{namespace}'" if namespace else ""
    return (
        f"<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:u='urn:u' elementFormDefault='qualified'"
        f"{target}{more}>{declarations}</xs:schema>"
    )


def schema_files(files: dict[str, str], *first: str) -> tuple[SchemaFile, ...]:
    """Files in their order, but some first."""
    names = [*first, *(name for name in files if name not in first)]
    return tuple(SchemaFile(name, files[name].encode()) for name in names)


def mutual(number: int) -> str:
    """A schema of elements `e0`, `e1` …, each of which may have all of them, any number of times, and `a`."""
    names = [f"e{one}" for one in range(number)]
    every = "".join(f"<xs:element ref='{name}'/>" for name in names)
    content = (
        "<xs:complexType mixed='true'><xs:group ref='g' minOccurs='0' maxOccurs='unbounded'/>"
        "<xs:attribute name='a'/></xs:complexType>"
    )
    elements = "".join(f"<xs:element name='{name}'>{content}</xs:element>" for name in names)
    return schema(f"<xs:group name='g'><xs:choice>{every}</xs:choice></xs:group>{elements}")
