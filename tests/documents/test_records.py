"""Families as records: whoever has the same records has the same family, and it is that made anew."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.documents import making
from palio.documents.compiling import compile_within
from palio.documents.errors import SchemaRefused, UnknownPath
from palio.documents.family import MAX_PATHS, Family, SchemaFile
from palio.documents.making import WantedPath, make_family, typed_path, typing_of
from palio.documents.records import (
    FAMILIES,
    MOST_PATHS,
    PATHS,
    FamilyRecord,
    KnownFamily,
    PathRecord,
    UnreadableRecord,
    basis_of,
    family_change,
    known_families,
    path_change,
    path_key,
    read_family_record,
    read_path_record,
)
from palio.documents.structure import MAX_NESTING
from tests.broker.documents.schema_of_cards import CARD_SCHEMA
from tests.documents.schemas import schema

pytest.importorskip("lxml.etree", reason="lxml is not installed")

# Schemas of which the paths have other kinds, or are not there at all.
SCHEMAS = (
    CARD_SCHEMA,
    CARD_SCHEMA.replace(b'"xs:decimal"', b'"xs:int"').replace(b' maxOccurs="unbounded"', b""),
    CARD_SCHEMA.replace(b'name="stock" type="xs:int"', b'name="rest" type="xs:int"'),
)
POSSIBLE = (
    "/card/price",
    "/card/brand",
    "/card/stock",
    "/card/rest",
    "count(/card/brand)",
    ":string=/card/price",
    "price=/card/price",
    "price=/card/brand",
)


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(making, "try_schemas", compile_within)


def declared(number: int, paths: list[str] = []) -> Family:  # noqa: B006
    """A family of one of the schemas, with those of the paths that it has."""
    files = (SchemaFile("card.xsd", SCHEMAS[number]),)
    bare = make_family("card", files, (), ["/card/code"])
    return msgspec.structs.replace(bare, paths=tuple(added(bare, paths)))


def added(family: Family, paths: list[str]):
    typing = typing_of(family)
    found = {}
    for text in paths:
        try:
            path = typed_path("card", WantedPath.parse(text), family.prefixes, typing)
        except UnknownPath:
            continue
        found.setdefault(path.expression, path)
    return found.values()


def records(family: Family, mark: str, paths) -> list[PathRecord]:
    return [PathRecord("card", mark, basis_of(family), one) for one in paths]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2),
    st.lists(st.sampled_from(POSSIBLE[:5]), unique=True, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(POSSIBLE))),
    st.randoms(use_true_random=False),
)
def test_a_family_follows_from_its_records_alone(schema, paths, others, chance):
    """Paths were added when the family had any of the schemas; the last record of a path counts."""
    family = declared(schema, paths)
    said = {}
    for number, text in others:
        for record in records(declared(number), "m", added(declared(number), [text])):
            said[path_key("card", "m", record.path.expression)] = record
    changes = [family_change(FamilyRecord("m", family)), *map(path_change, said.values())]
    chance.shuffle(changes)
    of_kind = {kind: {key: value for one, key, value in changes if one == kind} for kind in (FAMILIES, PATHS)}
    found = known_families(of_kind[FAMILIES], of_kind[PATHS])["card"]
    # From scratch: all paths that the schema has, typed by it.
    wanted = {one.expression: WantedPath.of(one) for one in family.paths}
    for record in sorted(said.values(), key=lambda one: one.path.expression):
        wanted.setdefault(record.path.expression, WantedPath.of(record.path))
    typing = typing_of(family)
    complete = found.complete()
    there = {one.expression: (one.kind, one.many, one.said) for one in complete.paths}
    expected = {}
    for expression, want in wanted.items():
        try:
            path = typed_path("card", want, family.prefixes, typing)
        except UnknownPath:
            continue
        expected[expression] = (path.kind, path.many, path.said)
    assert there == expected
    assert complete.paths[: len(family.paths)] == family.paths
    names = [one.name for one in complete.paths if one.name is not None]
    assert len(set(names)) == len(names)
    assert msgspec.structs.replace(complete, paths=family.paths) == family


def test_what_has_the_kinds_of_its_schema_is_complete_at_once():
    family, other = declared(0, ["/card/price"]), declared(1)
    record = FamilyRecord("m", family)
    assert KnownFamily(record, records(family, "m", added(family, ["/card/brand"]))).is_complete
    assert not KnownFamily(record, records(other, "m", added(other, ["/card/brand"]))).is_complete
    assert KnownFamily(record, records(other, "m", added(other, ["/card/price"]))).is_complete  # it is declared


def test_paths_of_another_family_of_that_name_mean_nothing():
    family = declared(0)
    paths = {
        key: value for _, key, value in map(path_change, records(family, "old", added(family, ["/card/price"])))
    }
    kind, key, value = family_change(FamilyRecord("new", family))
    assert kind == FAMILIES
    assert known_families({key: value}, paths)["card"].complete().paths == ()
    assert known_families({}, paths) == {}


def test_brokers_that_were_apart_may_have_added_many_but_not_any_number():
    family = declared(0, ["/card/price"])
    texts = [f"/card/price + {number}" for number in range(MOST_PATHS + 10)]
    known = KnownFamily(FamilyRecord("m", family), records(family, "m", added(family, texts)))
    assert len(known.complete().paths) == MOST_PATHS == 3 * MAX_PATHS
    assert known.complete().paths[0] == family.paths[0]


def test_all_paths_that_were_added_for_another_schema_have_one_bound(monkeypatch):
    """What is beyond it is left out, at all brokers alike."""
    family, other = declared(0), declared(1)
    texts = [f"/card/price + {number}" for number in range(100, 200)]
    known = [KnownFamily(FamilyRecord("m", other), records(family, "m", added(family, texts))) for _ in "ab"]
    monkeypatch.setattr(making, "MOST_STEPS", 5_000)
    [some, again] = [one.complete() for one in known]
    assert 1 < len(some.paths) < 90
    assert [one.expression for one in some.paths] == texts[: len(some.paths)]
    assert again == some


def test_a_path_into_what_a_schema_nests_too_deep_is_left_out():
    """A schema is read as far as paths lead, and so it is found out late."""
    inside = "<xs:group name='g{}'><xs:sequence><xs:group ref='g{}' minOccurs='0'/></xs:sequence></xs:group>"
    last = 2 * MAX_NESTING
    deep = "".join(inside.format(one, one + 1) for one in range(last))
    deep += f"<xs:group name='g{last}'><xs:sequence/></xs:group>"
    families = []
    for inner in ("<xs:element name='c' type='xs:int'/>", "<xs:group ref='g0'/>"):
        written = (
            "<xs:element name='a'><xs:complexType><xs:sequence><xs:element ref='b'/></xs:sequence>"
            "<xs:attribute name='id' use='required'/></xs:complexType></xs:element>"
            f"<xs:element name='b'><xs:complexType><xs:sequence>{inner}</xs:sequence></xs:complexType>"
            "</xs:element>"
        )
        files = (SchemaFile("a.xsd", schema(written + deep).encode()),)
        families.append(make_family("card", files, ["/a/@id"], ["/a/@id"]))
    before, after = families
    paths = [typed_path("card", WantedPath("/a/b/c"), {}, typing_of(before))]
    with pytest.raises(SchemaRefused, match="fewer levels"):
        typed_path("card", WantedPath("/a/b/c"), {}, typing_of(after))
    assert KnownFamily(FamilyRecord("m", after), records(before, "m", paths)).complete() == after


@pytest.mark.parametrize("value", [b"", b"x", zlib.compress(b"x"), zlib.compress(b"\x90"), b"\x90"])
def test_what_cannot_be_read_is_left_out(value):
    family = declared(0)
    _, key, good = family_change(FamilyRecord("m", family))
    [(_, place, path)] = map(path_change, records(family, "m", added(family, ["/card/price"])))
    with pytest.raises(UnreadableRecord, match="a newer version of Palio"):
        read_family_record("card", value)
    with pytest.raises(UnreadableRecord):
        read_path_record(place, value)
    with pytest.raises(UnreadableRecord):
        read_family_record("other", good)
    with pytest.raises(UnreadableRecord):
        read_path_record("other", path)
    known = known_families({key: good, "other": value}, {place: path, "x": value})
    assert list(known) == ["card"]
    assert len(known["card"].complete().paths) == 1


def test_a_record_that_unpacks_to_more_than_it_may_is_not_unpacked():
    with pytest.raises(UnreadableRecord):
        read_family_record("card", zlib.compress(b"\xc6" + b"\x00" * 100_000_000, 9))


def test_a_record_is_small():
    family = declared(0, list(POSSIBLE[:3]))
    _, _, value = family_change(FamilyRecord("m", family))
    assert len(value) < 700
    assert read_family_record("card", value).family == family
