"""What a schema says of a path."""

from __future__ import annotations

import time
from typing import Any

import pytest

from palio.documents.errors import FamilyRefused, UnknownPath
from palio.documents.listing import MAX_LISTED
from palio.documents.reach import VISIT
from palio.documents.schemas import read_sources
from palio.documents.typing import MOST_GUESSING, PathTyping
from palio.documents.xpath.path import naming_of, read_xpath
from palio.model.effort import Meter, metered
from palio.model.errors import TooHard
from tests.documents.schemas import mutual, schema, schema_files

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")


def typing(files: dict[str, str] | str, root: str = "a", namespace: str = "", **prefixes: str) -> PathTyping:
    named = {"main.xsd": files} if isinstance(files, str) else files
    bound = {"" if key == "none" else key: value for key, value in prefixes.items()}
    made = PathTyping("card", read_sources(schema_files(named)), namespace, root, naming_of(bound))
    made.bound = bound  # type: ignore[attr-defined]
    return made


def said(made: PathTyping, path: str) -> str:
    """`int`, or `many int`."""
    found = made.type(read_xpath(path, made.bound))  # type: ignore[attr-defined]
    return ("many " if found.many else "") + found.kind


def element(name: str, type: str = "xs:string", more: str = "") -> str:
    return f"<xs:element name='{name}' type='{type}' {more}/>"


def content(name: str, inner: str, attributes: str = "", more: str = "", group: str = "sequence") -> str:
    within = f"<xs:complexType {more}><xs:{group}>{inner}</xs:{group}>{attributes}</xs:complexType>"
    return f"<xs:element name='{name}'>{within}</xs:element>"


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        *[(f"xs:{one}", "int") for one in ("integer", "int", "unsignedByte", "nonNegativeInteger", "long")],
        *[(f"xs:{one}", "float") for one in ("decimal", "double", "float")],
        ("xs:boolean", "bool"),
        *[
            (f"xs:{one}", "string")
            for one in ("string", "date", "time", "anyURI", "dateTime", "QName", "NMTOKENS")
        ],
        ("Year", "int"),
        ("Later", "int"),
        ("Sent", "time"),
        ("SentLater", "time"),
        ("Local", "string"),
        ("Either", "float"),
        ("Mixed", "string"),
        ("Ints", "string"),
        ("Priced", "float"),
        ("Repriced", "float"),
    ],
)
def test_kinds_follow_the_types(type, kind):
    types = """
        <xs:simpleType name='Year'><xs:restriction base='xs:gYear'/></xs:simpleType>
        <xs:simpleType name='Later'><xs:restriction base='Years'></xs:restriction></xs:simpleType>
        <xs:simpleType name='Years'><xs:restriction base='xs:short'/></xs:simpleType>
        <xs:simpleType name='Sent'><xs:restriction base='xs:dateTime'><xs:pattern value='.*(Z|[+\\-]..:..)'/>
        </xs:restriction></xs:simpleType>
        <xs:simpleType name='SentLater'><xs:restriction base='Sent'/></xs:simpleType>
        <xs:simpleType name='Local'><xs:restriction base='xs:dateTime'><xs:pattern value='2.*'/>
        </xs:restriction></xs:simpleType>
        <xs:simpleType name='Either'><xs:union memberTypes='xs:int xs:decimal'/></xs:simpleType>
        <xs:simpleType name='Mixed'><xs:union memberTypes='xs:int xs:boolean'/></xs:simpleType>
        <xs:simpleType name='Ints'><xs:list itemType='xs:int'/></xs:simpleType>
        <xs:complexType name='Priced'><xs:simpleContent><xs:extension base='xs:decimal'>
        <xs:attribute name='currency' type='xs:string'/></xs:extension></xs:simpleContent></xs:complexType>
        <xs:complexType name='Repriced'><xs:simpleContent><xs:restriction base='Priced'/></xs:simpleContent>
        </xs:complexType>""".replace("base='xs:gYear'", "base='xs:integer'")
    made = typing(
        schema(
            types
            + content(
                "a",
                element("b", type),
                f"<xs:attribute name='c' type='{type}'/>" if "riced" not in type else "",
            )
        )
    )
    assert said(made, "/a/b") == said(made, "//b") == said(made, "(//b)[1]") == kind
    if "riced" not in type:
        assert said(made, "/a/@c") == said(made, "/a/b/text()") == kind


PARTS = schema(
    content(
        "a",
        element("one")
        + element("some", "xs:int", "minOccurs='0' maxOccurs='unbounded'")
        + element("two", "xs:int", "maxOccurs='2'")
        + f"<xs:choice>{element('x', 'xs:int')}{element('y', 'xs:decimal')}<xs:sequence>{element('z')}"
        f"{element('v')}</xs:sequence></xs:choice>"
        + content("part", element("code", "xs:int") + element("one"), "<xs:attribute name='id' type='xs:int'/>")
        + content("parts", content("code", element("b"), group="all"), more="", group="choice").replace(
            "name='parts'", "name='parts' maxOccurs='9'"
        )
        + content("p", element("b", "xs:int", "maxOccurs='2'"), more="mixed='true'"),
        "<xs:attribute name='id' type='xs:long'/><xs:attribute name='code'/>",
    )
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a/one", "string"),
        ("/a/some", "many int"),
        ("/a/some[1]", "int"),
        ("/a/some[last()]", "int"),
        ("/a/some[. > 1]", "many int"),
        ("/a/two", "many int"),
        ("/a/x", "int"),
        ("/a/*[self::x]", "int"),
        ("/a/*[self::x or self::y]", "float"),
        ("/a/*[code and not(one)]/code", "many string"),
        ("/a/x | /a/y", "many float"),
        ("/a/*", "many string"),
        ("/a/*[1]", "string"),
        ("/*/part/code", "int"),
        ("/a/parts/code", "many string"),
        ("/a/parts[1]/code/b", "string"),
        ("//code", "many string"),
        ("//x", "int"),
        ("//one", "many string"),
        ("(//one)[1]", "string"),
        ("//part/@id", "int"),
        ("//@id", "many int"),
        ("/a/@*", "many string"),
        ("/a/x/..", "string"),
        ("/a/part/code/../@id", "int"),
        ("/a/x/preceding-sibling::two", "many int"),
        ("/a/x/following::*", "many string"),
        ("//b/ancestor::parts", "many string"),
        ("/a/p", "string"),
        ("/a/p/text()", "many string"),
        ("/a/comment()", "many string"),
        ("/a", "string"),
        ("/a/x | /a/two/w", "int"),
        ("/a/part[kode or code]/code", "int"),
        ("/a/part[not(kode)]/code", "int"),
        ("/a/part[kode = false()]/code", "int"),
        ("/a/*[code = (1 > 2)]/self::x", "int"),
        ("/", "string"),
        ("count(/a/some)", "float"),
        ("/a/some = 3", "bool"),
        ("string(/a/x)", "string"),
        ("sum(/a/some)", "float"),
        ("/a[@id = 3]/part[code]/one", "string"),
    ],
)
def test_how_often_a_path_selects(path, kind):
    assert said(typing(PARTS), path) == kind


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/a/colour", None),
        ("/b", "/a/p/b"),
        ("/a/prt/code", "/a/part/code"),
        ("/a/@idd", "/a/@id"),
        ("/a/part/@code", "/a/part/code"),
        ("/a/b", "/a/p/b"),
        ("/a/one/parent::*[three]/one", None),
        ("/a/part[kode = 3]/one", "/a/part[code = 3]/one"),
        ("count(/a/soome)", "count(/a/some)"),
        ("/a/part/text()", None),
        ("//partz/code", "//part/code"),
        ("/u:a/one", "/a/one"),
        ("/a/*[self::x and self::y]", None),
    ],
)
def test_a_path_that_can_select_nothing_is_refused_with_what_is_near(path, nearest):
    made = typing(PARTS, u="urn:u")
    with pytest.raises(UnknownPath) as refused:
        said(made, path)
    if nearest is not None:
        assert refused.value.nearest == nearest
    if refused.value.nearest is not None:
        assert said(made, refused.value.nearest)


def test_what_an_instance_may_do_that_its_declaration_does_not_say():
    made = typing(
        schema(
            "<xs:complexType name='B'><xs:sequence>"
            + element("x", "xs:int")
            + "</xs:sequence></xs:complexType>"
            "<xs:complexType name='C'><xs:complexContent><xs:extension base='B'><xs:sequence>"
            + element("x", "xs:int")
            + element("y")
            + "</xs:sequence><xs:attribute name='z'/></xs:extension></xs:complexContent></xs:complexType>"
            + element("h", "xs:decimal", "abstract='true'")
            + element("h1", "xs:int", "substitutionGroup='h'")
            + element("h2", "xs:decimal", "substitutionGroup='h1'")
            + content("a", element("b", "B") + "<xs:element ref='h'/>")
        )
    )
    assert said(made, "/a/b/x") == "many int"  # with xsi:type='C'
    assert said(made, "/a/b/y") == "string"
    assert said(made, "/a/b/@z") == "string"
    assert said(made, "/a/h1") == "int"
    assert said(made, "/a/h2") == said(made, "/a/*[2]").replace("string", "float") == "float"
    with pytest.raises(UnknownPath):
        said(made, "/a/h")


def test_wildcards_let_in_what_they_say():
    main = schema(
        "<xs:import namespace='urn:u' schemaLocation='u.xsd'/>"
        + content(
            "a",
            "<xs:any namespace='##other' processContents='lax'/>"
            + content("s", "<xs:any namespace='urn:u'/>", "<xs:anyAttribute namespace='urn:u'/>"),
        ),
        "urn:t",
    )
    made = typing(
        {
            "main.xsd": main,
            "u.xsd": schema(element("n", "xs:int") + "<xs:attribute name='m' type='xs:int'/>", "urn:u"),
        },
        namespace="urn:t",
        none="urn:t",
        u="urn:u",
        w="urn:w",
    )
    assert said(made, "/a/u:n") == said(made, "/a/s/u:n") == said(made, "/a/s/@u:m") == "int"
    assert said(made, "/a/w:free") == "string"
    assert said(made, "/a/w:free/w:deep") == "many string"
    assert said(made, "/a/w:free/@deep") == "string"
    for path in ("/a/s/w:free", "/a/s/u:other", "/a/s/@u:other", "/a/s/@w:m", "/a/other"):
        with pytest.raises(UnknownPath):
            said(made, path)


def test_recursion_is_several():
    made = typing(schema(content("a", "<xs:element ref='a' minOccurs='0'/>" + element("b", "xs:int"))))
    assert said(made, "/a/b") == said(made, "/a/a/a/b") == "int"
    assert said(made, "//b") == "many int"
    assert [one.expression for one in made.paths()] == ["/a/b"]


def test_names_are_in_the_namespaces_that_their_files_say():
    made = typing(
        {
            "main.xsd": schema(
                "<xs:include schemaLocation='c.xsd'/>" + content("a", element("b", "t:C")),
                "urn:t",
                " attributeFormDefault='unqualified'",
            ),
            "c.xsd": schema(
                "<xs:complexType name='C'><xs:sequence>"
                + element("d", "D")
                + element("e", more="form='unqualified'")
                + "</xs:sequence></xs:complexType>"
                "<xs:simpleType name='D'><xs:restriction base='xs:int'/></xs:simpleType>"
            ),
        },
        namespace="urn:t",
        t="urn:t",
    )
    assert said(made, "/t:a/t:b/t:d") == "int"
    assert said(made, "/t:a/t:b/e") == "string"
    assert [one.expression for one in made.paths()] == ["/t:a/t:b/e", "/t:a/t:b/t:d"]
    with pytest.raises(UnknownPath, match="Did you mean /t:a/t:b/t:d"):
        said(made, "/a/b/d")


def test_a_root_that_is_not_declared_is_refused():
    with pytest.raises(FamilyRefused, match=r"declares no root 'b'.*there are: a"):
        typing(PARTS, "b")


def test_without_a_schema_nothing_is_known():
    made = PathTyping("card", (), "", "a", naming_of({}))
    assert made.type(read_xpath("/x/y//z", {})).kind == "string"
    assert not made.type(read_xpath("//z", {})).many
    assert made.type(read_xpath("count(//z)", {})).kind == "float"
    assert list(made.paths()) == []


def test_a_schema_of_endless_ways_is_listed_as_far_as_it_goes():
    every = "".join(
        f"<xs:complexType name='T{one}'><xs:sequence>"
        + "".join(element(f"e{other}", f"T{other}", "minOccurs='0'") for other in range(12))
        + "</xs:sequence><xs:attribute name='i'/></xs:complexType>"
        for one in range(12)
    )
    made = typing(schema(every + element("a", "T0")))
    began = time.process_time()
    assert 1_000 < len(list(made.paths())) <= MAX_LISTED
    assert said(made, "//e3//e4/@i") == "many string"
    assert time.process_time() - began < 10


def steps(made: PathTyping, path: str) -> int:
    """How many are counted while a path is looked at."""
    meter = Meter(20_000_000)
    with metered(meter):
        said(made, path)
    return meter.spent


def test_what_is_known_of_a_predicate_is_not_asked_again_by_each_way_there():
    """Without that, each level takes as many times more steps as there are elements."""
    made = typing(mutual(40), "e0")
    flat = steps(made, "//*[*]/@a")
    level = steps(made, "//*[*[*]]/@a") - flat
    for deep in (3, 7, 11):
        path = f"//*{'[*' * deep}{']' * deep}/@a"
        assert said(made, path) == "many string"
        assert steps(made, path) <= flat + deep * level


def test_what_was_too_hard_leaves_nothing_half_known():
    made = typing(mutual(12), "e0")
    path = "/e0/e1/*[../..]/@a"
    limit = 1_000
    while True:
        try:
            with metered(Meter(limit)):
                found = said(made, path)
            break
        except TooHard:
            limit += 1_000
    assert found == "many string"
    assert limit > 10_000
    assert said(typing(mutual(12), "e0"), path) == found


def test_what_is_meant_is_looked_for_so_long_only():
    made = typing(mutual(200), "e0")
    with metered(Meter(MOST_GUESSING + 1_000_000)), pytest.raises(UnknownPath) as caught:
        said(made, "/e0/nothing")
    assert caught.value.nearest is None
    assert caught.value.path == "/e0/nothing"


def test_many_types_of_one_element_count_each():
    """Of a type that a thousand others extend, any instance may be."""
    more = "".join(
        f"<xs:complexType name='T{one}'><xs:complexContent><xs:extension base='T'/></xs:complexContent>"
        "</xs:complexType>"
        for one in range(1_000)
    )
    made = typing(
        schema(
            f"<xs:complexType name='T'><xs:attribute name='i'/></xs:complexType>{more}"
            + content("a", element("b", "T"))
        )
    )
    assert steps(made, "/a/b") > 1_000 * VISIT
    assert steps(made, "/a/b/@i") > 1_000 * VISIT


def test_the_paths_of_alerts(shared):
    folder = shared / "data/xml/cap"
    made = typing(
        (folder / "cap12.xsd").read_text(),
        "alert",
        "urn:oasis:names:tc:emergency:cap:1.2",
        none="urn:oasis:names:tc:emergency:cap:1.2",
    )
    paths = {one.expression: (one.type.kind, one.type.many) for one in made.paths()}
    assert paths["/alert/sent"] == ("time", False)
    assert paths["/alert/info/severity"] == ("string", True)
    assert paths["/alert/info/resource/size"] == ("int", True)
    assert paths["/alert/info/area/altitude"] == ("float", True)
    assert len(paths) == 47
    assert said(made, "/alert/info[1]/expires") == "time"
    assert said(made, "/alert/info[1]/area/geocode[valueName = 'UGC']/value") == "many string"
    with pytest.raises(UnknownPath, match="Did you mean /alert/info/severity"):
        said(made, "/alert/severity")
