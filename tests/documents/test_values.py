"""Documents that are older than a path: the same values as if their family had had it from the start."""

from __future__ import annotations

import random
from itertools import product

import msgspec
import pytest

from palio.documents import (
    DocumentReader,
    DocumentRefused,
    FamilyCompletion,
    FamilyPath,
    PathValues,
)
from palio.documents.reserved import REVISION
from tests.documents.test_reading import FAMILY, card

pytest.importorskip("lxml")

FREE = msgspec.structs.replace(FAMILY, schemas=())  # so that there are more ways to be refused
RESTS = ("", "<price>7.5</price>", "<price>12</price><stock>3</stock>", "<stock>x</stock>", "<sold>1</sold>")
DOCUMENTS = [
    card(rest, code, brands)
    for rest, code, brands in product(RESTS, ("c1",), (("Acme",), ("Acme", "Zeta"), ()))
]
MORE = (
    FamilyPath("/c:card/c:brand[1]"),
    FamilyPath("/c:card/c:brand[last()]", many=True),
    FamilyPath("/c:card/c:code/preceding-sibling::*", many=True),
    FamilyPath("sum(/c:card/c:price)", "float", name="sum"),
)


def read_or_refused(read, *given):
    try:
        return read(*given)
    except DocumentRefused as problem:
        return problem.reason


def test_what_is_completed_is_what_a_family_with_the_paths_from_the_start_has_read():
    compared = refused = 0
    for seed in range(8):
        chance = random.Random(seed)
        paths = chance.sample((*FREE.paths, *MORE), 7)
        then = msgspec.structs.replace(FREE, paths=tuple(chance.sample(paths, chance.randrange(7))))
        # A path that a subscription adds comes without a new revision.
        now = msgspec.structs.replace(FREE, paths=tuple(paths), revision=chance.choice((3, 4)))
        reader, earlier, completion = DocumentReader(now), DocumentReader(then), FamilyCompletion(now)
        for content in DOCUMENTS:
            known = read_or_refused(earlier.read, content)
            if isinstance(known, str):
                continue
            attributes = known.attributes | {"region": "north"}
            expected = read_or_refused(reader.read, content)
            found = read_or_refused(completion.complete, attributes, content)
            compared += 1
            refused += isinstance(expected, str)
            if not isinstance(expected, str):
                expected = expected.attributes | {"region": "north", REVISION: 3}
                found = attributes if found is None else found
            assert found == expected, (seed, content)
    assert compared > 80
    assert refused > 5


def test_a_path_of_another_kind_counts_as_it_is_now():
    then = msgspec.structs.replace(FREE, paths=(FamilyPath("/c:card/c:price"),), revision=3)
    now = msgspec.structs.replace(FREE, paths=(FamilyPath("/c:card/c:price", "float", many=True),), revision=4)
    content = card("<price>7.50</price>")
    known = DocumentReader(then).read(content).attributes
    assert known["/c:card/c:price"] == "7.50"
    completed = FamilyCompletion(now).complete(known, content)
    assert completed == known | {"/c:card/c:price": (7.5,)}


def test_what_needs_nothing_is_left_as_it_is():
    content = card("<price>7.5</price>")
    known = DocumentReader(FAMILY).read(content).attributes
    later = msgspec.structs.replace(FAMILY, revision=4)
    assert FamilyCompletion(FAMILY).complete(known, content) is None
    assert FamilyCompletion(later).complete(known, content) is None
    assert FamilyCompletion(later).complete(known | {"xml.family": "other"}, content) is None
    assert FamilyCompletion(later).complete(known | {"xml.withdrawn": True}, None) is None
    assert FamilyCompletion(later).complete({"symbol": "ACME"}, content) is None


def test_values_are_in_the_order_of_the_paths():
    paths = (FamilyPath("count(//c:brand)", "int"), FamilyPath("//c:brand", many=True), FamilyPath("//c:none"))
    values = PathValues([*paths, paths[0]], FAMILY.prefixes)
    assert values.of(card(brands=("A", "B"))) == [2, ("A", "B"), None, 2]
