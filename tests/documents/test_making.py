"""Families are made right or not at all; a change is told what it breaks."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.documents import making
from palio.documents.changing import MAX_TOLD, change_family, changed, compatibility
from palio.documents.compiling import compile_within
from palio.documents.errors import FamilyIncompatible, FamilyRefused, SchemaRefused, UnknownPath
from palio.documents.family import MAX_PATHS, Family, FamilyPath, SchemaFile
from palio.documents.making import WantedPath, make_family, typing_of
from palio.documents.reading import DocumentReader
from palio.documents.xpath import XPathSyntaxError, XPathTooCostly
from tests.broker.documents.schema_of_cards import CARD_SCHEMA, FILES, PATHS
from tests.documents.drawn_schemas import DrawnSchema
from tests.documents.schemas import mutual, schema

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")

UNQUALIFIED = CARD_SCHEMA.replace(b'elementFormDefault="qualified"', b"")


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Schemas are compiled in this process: what the other one does is tested with it."""
    monkeypatch.setattr(making, "try_schemas", compile_within)


def made(paths=PATHS, key=("/card/code",), files=FILES, **more) -> Family:
    return make_family("card", files, paths, key, **more)


def test_what_is_not_said_follows_from_the_schema():
    assert made() == Family(
        "card",
        "urn:test:card",
        "card",
        {"": "urn:test:card"},
        FILES,
        ("/card/code",),
        (FamilyPath("/card/price", "float", name="price"), FamilyPath("/card/brand", many=True, name="brand")),
    )


def test_however_a_path_is_spelt_it_has_one_text():
    family = made(["price=card/price", "/child::card/child::brand", "count( /card/brand )"], ["card/code"])
    assert [one.expression for one in family.paths] == ["/card/price", "/card/brand", "count(/card/brand)"]
    assert family.key == ("/card/code",)


def test_prefixes_are_those_of_the_schema_and_those_that_are_said():
    bound = CARD_SCHEMA.replace(b"<xs:schema", b"<xs:schema xmlns:c='urn:test:card' xmlns:other='urn:o'")
    family = made(files=(SchemaFile("card.xsd", bound),))
    assert family.prefixes == {"": "urn:test:card", "c": "urn:test:card", "other": "urn:o"}
    assert made(["/c:card/c:price"], files=(SchemaFile("card.xsd", bound),)).path("/card/price")
    said = made(["/k:card/k:price"], ["/k:card/k:code"], prefixes={"k": "urn:test:card"})
    assert said.path("/card/price")
    local = make_family("card", (SchemaFile("c.xsd", UNQUALIFIED),), ["/card:card/price"], ["/card:card/code"])
    assert (local.prefixes, local.root) == ({"card": "urn:test:card"}, "card")
    content = b"<c:card xmlns:c='urn:test:card'><code>x</code><brand/><price>2</price></c:card>"
    assert DocumentReader(local).read(content).attributes["/card:card/price"] == 2.0


def test_a_family_may_do_without_a_schema():
    family = make_family("note", (), ["to=/note/to", "n:int=/note/n", "t:many=/note/t"], ["/note/@id"])
    assert (family.namespace, family.root) == ("", "note")
    assert [(one.kind, one.many) for one in family.paths] == [
        ("string", False),
        ("int", False),
        ("string", True),
    ]
    spaced = make_family("note", (), (), ["/note/@id"], namespace="urn:n")
    assert (spaced.namespace, spaced.prefixes) == ("urn:n", {"": "urn:n"})
    assert make_family("note", (), (), ["//@id"], root="note").root == "note"


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("/a/b", WantedPath("/a/b")),
        (" b = /a/b ", WantedPath("/a/b", name="b")),
        ("b:int=/a/b", WantedPath("/a/b", "int", None, "b")),
        ("b:int,many=/a/b", WantedPath("/a/b", "int", True, "b")),
        (":single=/a/b", WantedPath("/a/b", None, False)),
        ("/a[@x=1]/b", WantedPath("/a[@x=1]/b")),
        ("n=count(/a[b = 2])", WantedPath("count(/a[b = 2])", name="n")),
        ("count(/a) = 1", WantedPath("count(/a) = 1")),
    ],
)
def test_paths_as_people_write_them(written, wanted):
    found = WantedPath.parse(written)
    assert found == wanted


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"paths": ["/card/colour"]}, UnknownPath, "Did you mean /card/code"),
        ({"paths": ["count(/card/colour)"]}, UnknownPath, "selects nothing"),
        ({"paths": ["/card["]}, XPathSyntaxError, "name is expected"),
        ({"paths": ["//*[//*[//*]]"]}, XPathTooCostly, "could take some"),
        ({"paths": ["/card/price", "card/price"]}, FamilyRefused, "is there twice"),
        ({"paths": ["a=/card/price", "a=/card/brand"]}, FamilyRefused, "Two of its paths are called 'a'"),
        ({"paths": [WantedPath("/card/price", name="a.b")]}, FamilyRefused, "cannot be called 'a.b'"),
        ({"paths": ["a:bool=count(/card/brand)"]}, FamilyRefused, "held as float or int"),
        ({"paths": ["a:many=count(/card/brand)"]}, FamilyRefused, "there is one only"),
        ({"paths": ["a:colour=/card/price"]}, FamilyRefused, "says 'colour'"),
        ({"paths": [f"/card/price + {n}" for n in range(MAX_PATHS + 1)]}, FamilyRefused, "limit is 256"),
        ({"key": ["/card/brand"]}, FamilyRefused, "a key finds one"),
        ({"key": []}, FamilyRefused, "A key has 1 to 8"),
        ({"key": ["/card/code"] * 9}, FamilyRefused, "A key has 1 to 8"),
        ({"key": ["/card/code", "card/code"]}, FamilyRefused, "the same path"),
        ({"key": ["/card/colour"]}, UnknownPath, "selects nothing"),
        ({"key": ["string(/card/code)"]}, FamilyRefused, "Name its root"),
        ({"root": "other"}, FamilyRefused, "there are: card"),
        ({"prefixes": {"a b": "urn:x"}}, FamilyRefused, "cannot be a prefix"),
        ({"prefixes": {"xml": "urn:x"}}, FamilyRefused, "cannot be a prefix"),
        ({"prefixes": {"a": ""}}, FamilyRefused, "1 to 1,000 characters"),
        ({"prefixes": {f"p{n}": "urn:x" for n in range(64)}}, FamilyRefused, "the limit is 64"),
        ({"files": (SchemaFile("a.xsd", b"<a"),)}, SchemaRefused, "a.xsd"),
    ],
)
def test_what_is_wrong_is_told(more, error, said):
    with pytest.raises(error, match=said.replace("(", r"\(")):
        made(**more)


@pytest.mark.parametrize("name", ["", "a-b", "a.b", "1a", "xml", "a" * 65, "é", "a b", "a/b"])
def test_names_that_no_filter_could_say_are_refused(name):
    with pytest.raises(FamilyRefused, match="Its name must be"):
        make_family(name, FILES, (), ["/card/code"])


def test_a_schema_is_tried_in_another_process_first(monkeypatch):
    monkeypatch.undo()
    tried = []
    monkeypatch.setattr(making, "try_schemas", tried.append)
    made()
    assert tried == [FILES]


# Drawn families


def drawn(seed: int) -> tuple[DrawnSchema, SchemaFile, random.Random]:
    """A schema that libxml2 does not find ambiguous."""
    chance = random.Random(seed)
    while True:
        one = DrawnSchema(chance)
        file = SchemaFile("drawn.xsd", one.written().encode())
        try:
            compile_within((file,))
        except SchemaRefused:
            continue
        return one, file, chance


def drawn_family(file: SchemaFile, chance: random.Random) -> Family:
    bare = make_family("drawn", (file,), (), ["name(/root)"], root="root", namespace="")
    listed = [one.expression for one in typing_of(bare).paths()][:60]
    some = chance.sample(listed, min(len(listed), 8))
    return make_family("drawn", (file,), some, ["name(/root)"], root="root", namespace="")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_made_reads_every_document_of_its_schema(seed):
    schema, file, chance = drawn(seed)
    family = drawn_family(file, chance)
    again = make_family(
        "drawn",
        family.schemas,
        map(WantedPath.of, family.paths),
        family.key,
        prefixes=family.prefixes,
        root="root",
        namespace="",
    )
    assert again == family
    reader = DocumentReader(family)
    for _ in range(5):
        content = schema.document(chance).encode()
        attributes = reader.read(content).attributes
        tree = etree.fromstring(content)
        for path in family.paths:
            nodes = tree.xpath(path.expression)
            value = attributes.get(path.expression)
            assert (value is None) == (nodes == [])
            assert len(nodes) == (len(value) if path.many and value is not None else len(nodes[:1]))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_what_a_change_would_break_is_what_lxml_finds(seed):
    """Types of the schema are changed; documents of the old one are held against the new one by lxml alone."""
    schema, file, chance = drawn(seed)
    old = drawn_family(file, chance)
    schema.simple = {name: chance.choice(["xs:int", "xs:string"]) for name in schema.simple}
    other = SchemaFile("drawn.xsd", schema.written().encode())
    try:
        new = change_family(old, schemas=(other,))
    except SchemaRefused:
        return
    assert new.revision == old.revision + 1
    documents = [one.document(random.Random(seed + n)).encode() for n, one in enumerate([drawn(seed)[0]] * 5)]
    told = compatibility(old, new, [one.expression for one in old.paths], documents)
    invalid = etree.XMLSchema(etree.fromstring(other.content))
    broken = sum(not invalid.validate(etree.fromstring(one)) for one in documents)
    assert sum("would be none of the family" in sentence for sentence in told) == broken
    typing = typing_of(new)
    for path in old.paths:
        now = typing.type(making.read_path(path.expression, new.prefixes))
        differs = (now.kind, now.many) != (path.kind, path.many)
        assert any(f"The path {path.expression} would be" in one for one in told) == differs


# Changes


def test_what_is_not_said_stays():
    family = made()
    more = change_family(family, paths=["stock=/card/stock"])
    assert (more.revision, [one.name for one in more.paths]) == (2, ["price", "brand", "stock"])
    less = change_family(more, without=["brand", "card/stock"])
    assert (less.revision, [one.name for one in less.paths]) == (3, ["price"])
    assert (less.schemas, less.key, less.prefixes) == (family.schemas, family.key, family.prefixes)
    renamed = change_family(family, paths=["cost=/card/price"])
    assert [one.name for one in renamed.paths] == ["cost", "brand"]
    with pytest.raises(UnknownPath):
        change_family(family, without=["/card/stock"])
    with pytest.raises(UnknownPath):
        change_family(family, without=["/card["])


def test_a_kind_that_was_said_stays_and_others_follow_the_schema():
    family = made(["price:string=/card/price", "/card/stock"])
    text = CARD_SCHEMA.replace(b'name="stock" type="xs:int"', b'name="stock" type="xs:string"')
    text = text.replace(b'type="xs:decimal"', b'type="xs:int"')
    after = change_family(family, schemas=(SchemaFile("card.xsd", text),))
    assert [one.kind for one in after.paths] == ["string", "string"]
    assert compatibility(family, after, ["/card/price", "/card/stock"]) == (
        "The path /card/stock would be one string, and is one int.",
    )


def test_each_thing_that_breaks_is_told():
    family = made()
    document = b"<card xmlns='urn:test:card'><code>c1</code><brand>B</brand><price>1.5</price></card>"
    none = b"<other/>"
    strict = SchemaFile("card.xsd", CARD_SCHEMA.replace(b'type="xs:decimal"', b'type="xs:int"'))
    broken = compatibility(family, change_family(family, schemas=(strict,)), ["price"], [document, none])
    assert broken[0] == "The path /card/price would be one int, and is one float."
    assert broken[1].startswith("The document 'c1' would be none of the family: ")
    assert len(broken) == 2
    keyed = change_family(family, key=["/card/price"])
    assert "would be /card/price, not /card/code" in compatibility(family, keyed, ())[0]
    assert compatibility(family, change_family(family, without=["brand"]), ["/card/price"]) == ()
    unnamed = change_family(family, paths=["/card/price"])
    assert "would be without a short name" in compatibility(family, unnamed, ["/card/price"])[0]
    assert (
        len(compatibility(family, change_family(family, schemas=(strict,)), (), [document] * 200)) == MAX_TOLD
    )


def test_a_change_that_breaks_something_is_refused_unless_it_is_forced():
    family = made()
    less = change_family(family, without=["brand"])
    with pytest.raises(FamilyIncompatible, match="would be gone") as caught:
        changed(family, less, ())
    assert caught.value.broken == ("The path /card/brand would be gone.",)
    assert changed(family, less, (), force=True).new == less
    dry = changed(family, less, (), dry=True)
    assert (dry.new, dry.shown, dry.broken) == (None, less, caught.value.broken)
    same = changed(family, change_family(family), ())
    assert (same.new, same.shown) == (None, family)
    assert msgspec.structs.replace(change_family(family), revision=1) == family


def test_a_schema_of_several_namespaces_is_named_by_what_it_binds():
    parts = schema("<xs:element name='total' type='xs:decimal'/>", "urn:u")
    main = schema(
        "<xs:import namespace='urn:u' schemaLocation='u.xsd'/><xs:element name='bill'><xs:complexType>"
        "<xs:sequence><xs:element ref='u:total'/></xs:sequence><xs:attribute name='id'/></xs:complexType>"
        "</xs:element>",
        "urn:bill",
    )
    files = (SchemaFile("bill.xsd", main.encode()), SchemaFile("u.xsd", parts.encode()))
    family = make_family("bill", files, ["total=/bill/u:total"], ["/bill/@id"])
    assert (family.paths[0].kind, family.prefixes["u"]) == ("float", "urn:u")


def test_a_schema_that_stays_is_not_tried_again(monkeypatch):
    family = made()
    tried = []
    monkeypatch.setattr(making, "try_schemas", tried.append)
    change_family(family, paths=["/card/stock"])
    change_family(family, schemas=list(FILES))
    assert tried == []
    other = (SchemaFile("other.xsd", CARD_SCHEMA),)
    change_family(family, schemas=other)
    assert tried == [other]


@pytest.mark.parametrize("path", ["/e0/*/*[*/*/*[*/*[*]]]", "/e0" + "/*" * 100])
def test_a_path_that_takes_too_long_to_follow_through_its_schema_is_refused_in_time(path, monkeypatch):
    file = SchemaFile("g.xsd", mutual(100).encode())
    family = make_family("g", (file,), ["/e0/e1/e2"], ["/e0/@a"])
    assert family.paths[0].many
    monkeypatch.setattr(making, "MOST_STEPS", 500_000)
    with pytest.raises(FamilyRefused, match="takes too long to follow") as caught:
        make_family("g", (file,), [path], ["/e0/@a"])
    assert caught.value.name == "g"
    with pytest.raises(FamilyRefused, match="takes too long to follow"):
        change_family(family, paths=[path])
