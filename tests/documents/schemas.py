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
