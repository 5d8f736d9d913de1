"""Schemas that are made to hurt whoever compiles them, or whoever validates with them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from palio.documents import compiling
from palio.documents.compiling import compile_within, try_schemas
from palio.documents.errors import DocumentRefused, SchemaRefused
from palio.documents.parsing import parse_document
from palio.documents.schemas import read_sources
from palio.documents.validating import SchemaValidator
from tests.documents.schemas import schema, schema_files
from tests.documents.test_hostile_documents import Listener
from tests.slices import sliced

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")


def of_pattern(pattern: str) -> str:
    restriction = f"<xs:restriction base='xs:string'><xs:pattern value='{pattern}'/></xs:restriction>"
    return schema(f"<xs:element name='a'><xs:simpleType>{restriction}</xs:simpleType></xs:element>")


def doubled(deep: int) -> str:
    """Groups that have each other twice: a content model of 2^deep elements."""
    groups = [
        f"<xs:group name='g{at}'><xs:sequence>{f'<xs:group ref={chr(39)}g{at + 1}{chr(39)}/>' * 2}"
        "</xs:sequence></xs:group>"
        for at in range(deep)
    ]
    last = f"<xs:group name='g{deep}'><xs:sequence><xs:element name='b'/></xs:sequence></xs:group>"
    root = "<xs:element name='a'><xs:complexType><xs:group ref='g0'/></xs:complexType></xs:element>"
    return schema("".join(groups) + last + root)


def test_a_bomb_ends_the_process_that_tries_it(monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 1.0)
    began = time.monotonic()
    with pytest.raises(SchemaRefused, match="seconds"):
        try_schemas(schema_files({"bomb.xsd": doubled(40)}))
    assert time.monotonic() - began < 10


def test_what_is_wrong_is_told_by_the_process_that_tries_it():
    try_schemas(schema_files({"good.xsd": doubled(3)}))
    with pytest.raises(SchemaRefused, match=r"'bad.xsd', line 1 cannot be used: The pattern .* is ambiguous"):
        try_schemas(schema_files({"bad.xsd": of_pattern("(a|aa)+b")}))


@pytest.mark.parametrize("pattern", sliced(["(x+x+)+y", "(a|aa)+b", r"(\d+\d+)+!"], 1))
def test_an_ambiguous_pattern_is_refused(pattern):
    with pytest.raises(SchemaRefused, match="ambiguous"):
        compile_within(schema_files({"a.xsd": of_pattern(pattern)}))


@pytest.mark.parametrize(
    "pattern", [r"\d{4}-\d\d-\d\dT.*", "[A-Z]{2}[0-9]{6,12}", "(a*)*b", r"([a-z]+\.)*[a-z]+", "é|ü"]
)
def test_an_ordinary_pattern_is_not(pattern):
    compile_within(schema_files({"a.xsd": of_pattern(pattern)}))


def test_a_pattern_that_takes_too_long_refuses_the_document():
    validator = SchemaValidator(read_sources(schema_files({"a.xsd": of_pattern("(ä|ää)+b")})))
    began = time.process_time()
    with pytest.raises(DocumentRefused, match="too long"):
        validator.require_valid(parse_document(f"<a>{'ä' * 60}</a>".encode()))
    assert time.process_time() - began < 10


@pytest.mark.parametrize("kind", ["include", "import namespace='urn:u'"])
def test_nothing_is_fetched_for_a_schema(kind, tmp_path):
    there = tmp_path / "there.xsd"
    there.write_text(schema("", "urn:u" if "urn:u" in kind else None))
    listener = Listener()
    for location in (
        f"http://127.0.0.1:{listener.port}/a.xsd",
        str(there),
        there.as_uri(),
        "//127.0.0.1/a.xsd",
    ):
        with pytest.raises(SchemaRefused, match="not handed over"):
            read_sources(schema_files({"a.xsd": schema(f"<xs:{kind} schemaLocation='{location}'/>")}))
    assert not listener.came.is_set()
    listener.socket.close()


def test_a_location_that_looks_like_ours_is_not_taken_for_it():
    with pytest.raises(SchemaRefused, match="not handed over"):
        read_sources(schema_files({"a.xsd": schema("<xs:include schemaLocation='palio:0'/>")}))


def test_a_document_brings_no_schema_of_its_own(tmp_path):
    own: Path = tmp_path / "own.xsd"
    own.write_text(schema("<xs:element name='b' type='xs:string'/>", "urn:own"))
    listener = Listener()
    content = "<xs:complexType><xs:sequence><xs:any/></xs:sequence></xs:complexType>"
    files = schema_files({"a.xsd": schema(f"<xs:element name='a'>{content}</xs:element>")})
    validator = SchemaValidator(read_sources(files))
    for location in (f"http://127.0.0.1:{listener.port}/own.xsd", str(own)):
        hint = f"xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:schemaLocation='urn:own {location}'"
        with pytest.raises(DocumentRefused, match="No matching global element declaration"):
            validator.require_valid(parse_document(f"<a {hint}><b xmlns='urn:own' {hint}/></a>".encode()))
    assert not listener.came.is_set()
    listener.socket.close()


def test_many_keys_and_attributes_are_validated_soon():
    """What would be quadratic if anybody compared each with each."""
    keys = (
        "<xs:element name='a'><xs:complexType><xs:sequence><xs:element name='b' maxOccurs='unbounded'>"
        "<xs:complexType><xs:attribute name='i'/></xs:complexType></xs:element></xs:sequence>"
        "<xs:anyAttribute processContents='skip'/></xs:complexType>"
        "<xs:unique name='k'><xs:selector xpath='b'/><xs:field xpath='@i'/></xs:unique></xs:element>"
    )
    validator = SchemaValidator(read_sources(schema_files({"a.xsd": schema(keys)})))
    began = time.process_time()
    validator.require_valid(
        parse_document(("<a>" + "".join(f"<b i='{at}'/>" for at in range(40_000)) + "</a>").encode())
    )
    many = " ".join(f"c{at}=''" for at in range(40_000))
    validator.require_valid(parse_document(f"<a {many}><b/></a>".encode()))
    assert time.process_time() - began < 5.0
