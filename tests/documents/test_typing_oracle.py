"""What a schema says of paths, against what lxml selects in documents that keep to it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from palio.documents.errors import SchemaRefused, UnknownPath
from palio.documents.family import SchemaFile
from palio.documents.schemas import read_sources
from palio.documents.typing import PathTyping
from palio.documents.validating import SchemaValidator
from palio.documents.xpath.errors import XPathSyntaxError
from palio.documents.xpath.path import naming_of, read_xpath
from tests.documents.drawn_schemas import DrawnSchema, drawn_path, path_to
from tests.slices import sliced

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")


def fits(value: str, kind: str) -> bool:
    """Whether a text can be held as a kind; by Python."""
    try:
        match kind:
            case "int":
                int(value)
            case "float":
                float(value)
            case "bool":
                return value.strip() in ("true", "false", "0", "1")
    except ValueError:
        return False
    return True


def text_of(node: Any) -> str:
    return "".join(node.itertext()) if hasattr(node, "itertext") else str(node)


def scene(seed: int) -> tuple[PathTyping, list[Any]]:
    """A schema and documents. What libxml2 finds ambiguous is drawn again."""
    chance = random.Random(seed)
    while True:
        drawn = DrawnSchema(chance)
        try:
            sources = read_sources((SchemaFile("drawn.xsd", drawn.written().encode()),))
            validator = SchemaValidator(sources)
            break
        except SchemaRefused:
            continue
    documents = [etree.ElementTree(etree.fromstring(drawn.document(chance))) for _ in range(30)]
    for one in documents:
        validator.require_valid(one)
    return PathTyping("drawn", sources, "", "root", naming_of({})), documents


def judge(seed: int) -> tuple[int, int, int]:
    """Paths that were taken, of these those with several, and those that were refused, of one drawn schema."""
    typing, documents = scene(seed)
    chance = random.Random(-seed)
    taken = several = refused = 0
    for _ in range(50):
        node = chance.choice(list(chance.choice(documents).iter()))
        written = path_to(node, chance) if chance.random() < 0.5 else drawn_path(chance)
        try:
            path = read_xpath(written, {})
        except XPathSyntaxError:
            continue
        selected = [one.xpath(path.text) for one in documents]
        try:
            type = typing.type(path)
        except UnknownPath as problem:
            refused += 1
            assert not any(selected), (seed, written)
            if problem.nearest is not None:
                typing.type(read_xpath(problem.nearest, {}))
            continue
        taken += 1
        several += type.many
        most = max(len(one) for one in selected)
        assert type.many or most <= 1, (seed, written)
        for nodes in selected:
            for node in nodes:
                assert fits(text_of(node), type.kind), (seed, written, type, text_of(node))
    listed = {one.expression: one.type for one in typing.paths()}
    for expression, type in list(listed.items())[:50]:
        assert typing.type(read_xpath(expression, {})) == type, (seed, expression)
    for document in documents:
        for node in document.iter():
            above = [one.tag for one in node.iterancestors()]
            path = "/" + "/".join([*reversed(above), node.tag])
            if not len(node) and node.text and len({node.tag, *above}) > len(above):  # none is entered again
                assert path in listed, (seed, path)
    return taken, several, refused


@pytest.mark.parametrize("seed", sliced(range(300), 5))
def test_lxml_selects_what_the_schema_says(seed):
    judge(seed)


def test_the_drawn_paths_are_of_all_sorts():
    """The answers are not right only because they are careful."""
    taken, several, refused = map(sum, zip(*map(judge, range(2_000, 2_006)), strict=True))
    assert taken - several > 20
    assert several > 20
    assert refused > 20
