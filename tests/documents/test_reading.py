"""Documents read as notifications: planted ones, each with what must be read of it or why it is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from palio.documents import DocumentRefused, DocumentTooLarge, Family, FamilyPath, SchemaFile
from palio.documents.parsing import DocumentLimits
from palio.documents.reading import DocumentReader

pytest.importorskip("lxml")
SHARED = Path(__file__).resolve().parents[3] / "shared/data/xml"

CARD = SchemaFile(
    "card.xsd",
    b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="urn:test:card" xmlns="urn:test:card"
    elementFormDefault="qualified">
<xs:element name="card"><xs:complexType><xs:sequence>
  <xs:element name="code" type="xs:token"/>
  <xs:element name="brand" type="xs:string" maxOccurs="unbounded"/>
  <xs:element name="price" type="xs:decimal" nillable="true" minOccurs="0"/>
  <xs:element name="stock" type="xs:integer" minOccurs="0"/>
  <xs:element name="sold" type="xs:boolean" minOccurs="0"/>
  <xs:element name="since" type="xs:dateTime" minOccurs="0"/>
</xs:sequence></xs:complexType></xs:element></xs:schema>""",
)
FAMILY = Family(
    name="card",
    namespace="urn:test:card",
    root="card",
    prefixes={"c": "urn:test:card"},
    schemas=(CARD,),
    key=("/c:card/c:code",),
    paths=(
        FamilyPath("/c:card/c:brand", "string", many=True, name="brand"),
        FamilyPath("/c:card/c:price", "float", name="price"),
        FamilyPath("/c:card/c:stock", "int"),
        FamilyPath("/c:card/c:sold", "bool"),
        FamilyPath("/c:card/c:since", "time"),
        FamilyPath("count(/c:card/c:brand)", "int"),
        FamilyPath("/c:card/c:price > 10", "bool"),
    ),
    revision=3,
)


def card(rest: str = "", code: str = "c1", brands: tuple[str, ...] = ("Acme",)) -> bytes:
    said = "".join(f"<brand>{brand}</brand>" for brand in brands)
    return f'<card xmlns="urn:test:card">\n<code>{code}</code>{said}\n{rest}</card>'.encode()


@pytest.fixture(scope="module")
def reader() -> DocumentReader:
    return DocumentReader(FAMILY)


def test_a_document_is_read_as_attributes(reader):
    content = card(
        "<price>12.50</price><stock>+007</stock><sold> 1 </sold><since>2026-03-01T12:00:00+02:00</since>",
        brands=("Acme", "Zeta"),
    )
    read = reader.read(content)
    assert (read.family, read.key, read.payload) == ("card", "c1", content)
    assert read.attributes == {
        "xml.family": "card",
        "xml.key": "c1",
        "xml.revision": 3,
        "/c:card/c:brand": ("Acme", "Zeta"),
        "/c:card/c:price": 12.5,
        "/c:card/c:stock": 7,
        "/c:card/c:sold": True,
        "/c:card/c:since": datetime(2026, 3, 1, 10, tzinfo=UTC),
        "count(/c:card/c:brand)": 2,
        "/c:card/c:price > 10": True,
    }
    assert type(read.attributes["/c:card/c:stock"]) is int


def test_what_is_not_there_is_no_attribute_and_one_of_many_is_a_list(reader):
    read = reader.read(card())
    assert read.attributes["/c:card/c:brand"] == ("Acme",)
    assert "/c:card/c:price" not in read.attributes
    assert read.attributes["/c:card/c:price > 10"] is False


def test_an_element_that_is_nil_has_no_value(reader):
    nil = '<price xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/>'
    assert "/c:card/c:price" not in reader.read(card(nil)).attributes


@pytest.mark.parametrize(
    ("document", "line", "said"),
    [
        (card("<price>cheap</price>"), 3, "price"),
        (card("<colour/>"), 3, "colour"),
        (card("<stock>99999999999999999999</stock>"), 3, "does not fit into 64 bits"),
        (card("<since>2026-03-01T12:00:00</since>"), 3, "no time with a zone"),
        (card(code=" "), None, "is a part of the key, and finds a text that is empty"),
        (card(code="x" * 2_000), None, "Its key has 2,000 characters"),
        (card(brands=("x" * 70_000,)), 2, "a string has at most 65,536 bytes"),
        (b"<card><code>c1</code></card>", 1, "begin with <card> in the namespace 'urn:test:card', not <card>"),
        (b"<card", 1, "refused at line 1"),
    ],
)
def test_what_cannot_be_held_is_refused_with_its_line(reader, document, line, said):
    with pytest.raises(DocumentRefused, match=said) as caught:
        reader.read(document)
    assert caught.value.line == line


def test_limits_are_kept():
    with pytest.raises(DocumentTooLarge):
        DocumentReader(FAMILY, DocumentLimits(size=100)).read(card("<stock>1</stock>" + " " * 100))


def test_keys_are_joined_so_that_no_two_are_one():
    family = Family("pair", "", "pair", key=("/pair/@a", "/pair/b"), paths=())
    reader = DocumentReader(family)

    def key(one: str, two: str) -> str:
        return reader.read(f'<pair a="{one}"><b>{two}</b></pair>'.encode()).key

    assert key("x", "y") == "x/y"
    assert key(" x \n z", "y") == "x z/y"
    assert key("x/y", "z%2F") == "x%2Fy/z%252F"
    assert len({key("a/b", "c"), key("a", "b/c"), key("a%2Fb", "c")}) == 3


def test_a_key_path_finds_one_node():
    reader = DocumentReader(Family("a", "", "a", key=("/a/b",)))
    with pytest.raises(DocumentRefused, match="finds nothing"):
        reader.read(b"<a/>")
    with pytest.raises(DocumentRefused, match="finds 2 nodes"):
        reader.read(b"<a><b>1</b><b>2</b></a>")


def test_a_path_that_has_one_value_is_refused_with_two():
    reader = DocumentReader(Family("a", "", "a", key=("/a/@k",), paths=(FamilyPath("/a/b"),)))
    with pytest.raises(DocumentRefused, match="finds 2 nodes, and its family says that there is one"):
        reader.read(b"<a k='1'><b>1</b><b>2</b></a>")


def test_a_number_that_is_none_is_no_attribute():
    paths = (FamilyPath("number(/a/b)", "float"), FamilyPath("sum(/a/b) div 0", "float"))
    reader = DocumentReader(Family("a", "", "a", key=("/a/@k",), paths=paths[:1]))
    assert "number(/a/b)" not in reader.read(b"<a k='1'/>").attributes
    assert reader.read(b"<a k='1'><b>2.5</b></a>").attributes["number(/a/b)"] == 2.5
    reader = DocumentReader(Family("a", "", "a", key=("/a/@k",), paths=paths[1:]))
    with pytest.raises(DocumentRefused, match="is infinite"):
        reader.read(b"<a k='1'><b>1</b></a>")


def test_real_alerts_are_read():
    if not SHARED.is_dir():
        pytest.skip("the alerts of ../shared/data/xml are not there")
    prefixes = {"cap": "urn:oasis:names:tc:emergency:cap:1.2"}
    family = Family(
        name="alert",
        namespace=prefixes["cap"],
        root="alert",
        prefixes=prefixes,
        schemas=(SchemaFile("cap12.xsd", (SHARED / "cap/cap12.xsd").read_bytes()),),
        key=("/cap:alert/cap:sender", "/cap:alert/cap:identifier"),
        paths=(
            FamilyPath("/cap:alert/cap:sent", "time"),
            FamilyPath("/cap:alert/cap:info/cap:severity", many=True),
            FamilyPath('/cap:alert/cap:info[cap:language = "fr-CA"]/cap:event', many=True),
        ),
    )
    reader = DocumentReader(family)
    read = reader.read((SHARED / "cap/canada.cap").read_bytes())
    assert read.attributes["/cap:alert/cap:sent"].tzinfo is UTC
    assert len(read.attributes["/cap:alert/cap:info/cap:severity"]) == 2
    assert len(read.attributes['/cap:alert/cap:info[cap:language = "fr-CA"]/cap:event']) == 1
    with pytest.raises(DocumentRefused, match="This element is not expected"):
        reader.read((SHARED / "cap/invalid.cap").read_bytes())
