"""Schemas are handed over and looked up by name. The oracle is libxml2, which loads them from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from palio.documents.errors import DocumentRefused, SchemaRefused
from palio.documents.family import SchemaFile
from palio.documents.parsing import parse_document
from palio.documents.schemas import read_sources
from palio.documents.validating import SchemaValidator
from tests.documents.schemas import schema, schema_files

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")

INCLUDED = {
    "main.xsd": schema("<xs:include schemaLocation='parts/b.xsd'/><xs:element name='a' type='t:B'/>", "urn:t"),
    "parts/b.xsd": schema(
        "<xs:include schemaLocation='../c.xsd'/><xs:complexType name='B'><xs:sequence>"
        "<xs:element name='b' type='t:C'/></xs:sequence></xs:complexType>",
        "urn:t",
    ),
    # Without a namespace: it gets that of whoever includes it.
    "c.xsd": schema(
        "<xs:simpleType name='C'><xs:restriction base='D'/></xs:simpleType>"
        "<xs:simpleType name='D'><xs:restriction base='xs:int'/></xs:simpleType>"
    ),
}
IMPORTED = {
    "main.xsd": schema(
        "<xs:import namespace='urn:u' schemaLocation='http://example.com/xsd/u.xsd'/>"
        "<xs:import namespace='http://www.w3.org/XML/1998/namespace'/>"
        "<xs:element name='a'><xs:complexType><xs:sequence><xs:element ref='u:b'/></xs:sequence>"
        "<xs:attribute ref='xml:lang'/></xs:complexType></xs:element>",
        "urn:t",
    ),
    "u.xsd": schema("<xs:element name='b' type='xs:int'/>", "urn:u"),
}


def documents(namespace: str, inner: str) -> dict[str, bool]:
    """Documents, and whether they are valid."""
    return {
        f"<a xmlns='urn:t'><b xmlns='{inner}'>1</b></a>": True,
        f"<a xmlns='urn:t'><b xmlns='{inner}'>x</b></a>": False,
        f"<a xmlns='urn:t'><c xmlns='{inner}'>1</c></a>": False,
        f"<a><b xmlns='{inner}'>1</b></a>": False,
    }


def validator(files: dict[str, str], *names: str) -> SchemaValidator:
    return SchemaValidator(read_sources(schema_files(files, *names)))


def holds(validator: SchemaValidator, document: str | bytes) -> bool:
    content = document.encode() if isinstance(document, str) else document
    try:
        validator.require_valid(parse_document(content))
    except DocumentRefused:
        return False
    return True


def on_disk(files: dict[str, str], folder: Path) -> Any:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    return etree.XMLSchema(file=str(folder / "main.xsd"))


def test_what_is_included_is_what_lies_in_the_folder(tmp_path):
    alone, ours = on_disk(INCLUDED, tmp_path), validator(INCLUDED)
    for document, valid in documents("urn:t", "urn:t").items():
        assert holds(ours, document) is valid is alone.validate(etree.fromstring(document))


def test_names_may_be_flat():
    flat = {name.rpartition("/")[2]: content for name, content in INCLUDED.items()}
    assert holds(validator(flat), "<a xmlns='urn:t'><b>1</b></a>")


def test_an_address_is_a_name_to_look_up():
    ours = validator(IMPORTED)
    for document, valid in documents("urn:t", "urn:u").items():
        assert holds(ours, document) is valid
    assert holds(ours, "<a xmlns='urn:t' xml:lang='de'><b xmlns='urn:u'>1</b></a>")
    assert not holds(ours, "<a xmlns='urn:t' xml:lang='!'><b xmlns='urn:u'>1</b></a>")


def test_an_import_may_leave_its_location_out():
    files = {
        name: one.replace(" schemaLocation='http://example.com/xsd/u.xsd'", "")
        for name, one in IMPORTED.items()
    }
    assert holds(validator(files), "<a xmlns='urn:t'><b xmlns='urn:u'>1</b></a>")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "No schema was handed over"),
        ({"main.xsd": INCLUDED["main.xsd"]}, "refers to 'parts/b.xsd', which was not handed over"),
        (
            {"main.xsd": IMPORTED["main.xsd"]},
            "refers to 'http://example.com/xsd/u.xsd', which was not handed over",
        ),
        ({**IMPORTED, "u.xsd": schema("", "urn:other")}, "is of 'urn:other'"),
        ({"main.xsd": "<!DOCTYPE a><a/>"}, "DOCTYPE"),
        ({"main.xsd": "<a/>"}, "root is a"),
        ({"main.xsd": "<a"}, "main.xsd', line 1"),
        ({"main.xsd": schema("<xs:redefine schemaLocation='main.xsd'/>")}, "xs:redefine is not read"),
        ({"main.xsd": schema("<xs:element name='a' type='xs:nothing'/>")}, "xs:nothing"),
        ({"main.xsd": schema("<xs:element name='a' type='B'/>")}, "B"),
        ({f"{at}.xsd": schema("") for at in range(257)}, "the limit is 256"),
        ({"main.xsd": schema("<!--" + "x" * 4_200_000 + "-->")}, "4,194,304"),
    ],
)
def test_schemas_that_cannot_be_used_are_refused(files, says):
    with pytest.raises(SchemaRefused, match=says):
        validator(files)


def test_two_files_of_one_name_are_refused():
    with pytest.raises(SchemaRefused, match="same name"):
        read_sources((SchemaFile("a", b"<a/>"), SchemaFile("a", b"<b/>")))


def test_a_mistake_in_an_included_file_is_told_with_its_name():
    files = INCLUDED | {"c.xsd": INCLUDED["c.xsd"].replace("base='D'", "base='E'")}
    with pytest.raises(SchemaRefused) as refused:
        validator(files)
    assert refused.value.name == "c.xsd"


def test_what_is_wrong_with_a_document_is_told_with_its_line():
    with pytest.raises(
        DocumentRefused, match=r"line 3: Element '{urn:t}b': 'x' is not a valid value"
    ) as refused:
        validator(INCLUDED).require_valid(parse_document(b"<a xmlns='urn:t'>\n\n<b>x</b></a>"))
    assert refused.value.line == 3


def test_real_alerts_are_valid_as_libxml2_says(shared):
    folder = shared / "data/xml/cap"
    valid = []
    for version in ("11", "12"):
        ours = validator({f"cap{version}.xsd": (folder / f"cap{version}.xsd").read_text()})
        alone = etree.XMLSchema(file=str(folder / f"cap{version}.xsd"))
        for alert in sorted(folder.glob("*.cap")):
            if alert.name == "xee.cap":
                continue
            verdict = holds(ours, alert.read_bytes())
            assert verdict is alone.validate(etree.parse(str(alert))), alert.name
            valid += [alert.name] * verdict
    assert len(valid) >= 9
    assert not {"invalid.cap", "noaa_errors.cap"} & set(valid)
