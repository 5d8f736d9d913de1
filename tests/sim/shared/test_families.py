"""Families of documents in the simulator: five brokers that change them at the same time, join, crash and part.

Each broker does what a live one does with its records (`broker.documents.registry`), without its threads. What
has to be so in the end is said by a model of its own: from who put what upon what, it follows which families
may be there; and from the paths of which somebody was told that the network has them, which must be.
"""

from __future__ import annotations

from functools import cache
from random import Random

import msgspec
import pytest

from palio.documents import making
from palio.documents.compiling import compile_within
from palio.documents.family import Family, SchemaFile
from palio.documents.making import WantedPath, make_family, typed_path, typing_of
from palio.documents.records import (
    FAMILIES,
    PATHS,
    FamilyRecord,
    KnownFamily,
    PathRecord,
    family_change,
    known_families,
    path_change,
    read_family_record,
)
from palio.sim.shared.script import PutRecord, SharedScenario, drawn
from palio.sim.shared.world import SharingWorld, SimulatedBroker
from tests.broker.documents.schema_of_cards import CARD_SCHEMA

pytest.importorskip("lxml.etree", reason="lxml is not installed")

SEEDS = 25
MANY = 600
NAMES = ("card", "note")
TEXTS = ("/card/price", "/card/brand", "/card/stock", "count(/card/brand)", "/card/price + 1")
# Of the second, prices and brands are of other kinds.
SCHEMAS = (
    CARD_SCHEMA,
    CARD_SCHEMA.replace(b'"xs:decimal"', b'"xs:int"').replace(b' maxOccurs="unbounded"', b""),
)


@cache
def family(name: str, schema: int, revision: int, paths: tuple[str, ...] = ()) -> Family:
    files = (SchemaFile("card.xsd", SCHEMAS[schema]),)
    return make_family(name, files, paths, ["/card/code"], revision=revision)


@cache
def typed(schema: int, text: str):
    one = family("card", schema, 1)
    return typed_path("card", WantedPath(text), one.prefixes, typing_of(one))


def schema_of(known: KnownFamily) -> int:
    return SCHEMAS.index(known.declared.schemas[0].content)


class FamilyWorld(SharingWorld):
    """Where shared records are those of families."""

    def __init__(self, scenario: SharedScenario) -> None:
        super().__init__(scenario)
        self._drawn = Random(f"families {scenario.seed}")
        self._numbers = iter(range(10_000, 10**9))
        self.paths: list[tuple[int, str, str, str]] = []  # number, family, mark, path
        self.declared: dict[tuple[str, str], list[Family]] = {}
        self.did: set[str] = set()

    def _put(self, broker: SimulatedBroker, number: int, key: str, *, removes: bool, everywhere: bool) -> None:
        if broker.router is None:
            return
        records, chance = broker.router.shared, self._drawn
        name = chance.choice(NAMES)
        known = known_families(records.of(FAMILIES), records.of(PATHS)).get(name)
        changes: list[tuple[str, str, bytes | None]] = []
        if known is None:
            mark = f"mark {number}"
            changes = [self._declare(name, mark, family(name, chance.randrange(2), 1))]
            self.did.add("add")
        elif removes and chance.random() < 0.5:
            changes = [(FAMILIES, name, None)]
            self.did.add("remove")
        elif chance.random() < 0.4:
            new = family(name, chance.randrange(2), known.declared.revision + 1, tuple(chance.sample(TEXTS, 1)))
            changes = [self._declare(name, known.mark, new)]
            self.did.add("change")
        else:
            text = chance.choice(TEXTS)
            record = PathRecord(name, known.mark, known.basis, typed(schema_of(known), text))
            changes = [path_change(record)]
            self.did.add("path")
        for place, change in enumerate(changes):
            one = number if place == 0 else next(self._numbers)
            made = records.changed((change,))
            if made and change[0] == PATHS and change[2] is not None and known is not None:
                self.paths.append((one, name, known.mark, text))
            self.oracle.puts(broker, one, change[1], made[0] if made else None, self.now, everywhere=everywhere)
            self._carry_out(broker, broker.router.share(made, one, self.now, everywhere=everywhere))

    def _declare(self, name: str, mark: str, one: Family) -> tuple[str, str, bytes | None]:
        self.declared.setdefault((name, mark), []).append(one)
        return family_change(FamilyRecord(mark, one))

    # What has to be so in the end

    def families(self, broker: SimulatedBroker) -> dict[str, KnownFamily]:
        assert broker.router is not None
        return known_families(broker.router.shared.of(FAMILIES), broker.router.shared.of(PATHS))

    def judge(self) -> list[str]:
        """What is wrong with the families, when all is repaired."""
        wrong: list[str] = []
        seen: dict[frozenset[str], dict[str, Family]] = {}
        told = {number for number, change in self.oracle._by_number.items() if change.told}
        for broker in self.brokers:
            if broker.older or broker.router is None:
                continue
            found = self.families(broker)
            whole = {name: known.complete() for name, known in found.items()}
            near = frozenset(one.name for one in self.oracle._reached(broker.name, self.now))
            if seen.setdefault(near, whole) != whole:
                wrong.append(f"{broker.name} does not have the families that others have.")
            for name, known in found.items():
                wrong += self._wrong_with(broker, name, known, whole[name])
            for number, name, mark, text in self.paths:
                now = found.get(name)
                is_near = self.oracle._by_number[number].by in near
                if (
                    number in told
                    and is_near
                    and now is not None
                    and now.mark == mark
                    and not self._gone(number)
                ):
                    expression = typed(0, text).expression
                    if whole[name].path(expression) is None:
                        wrong.append(f"{broker.name} has lost the path {text} of {name}, which was confirmed.")
        return wrong

    def _wrong_with(self, broker: SimulatedBroker, name: str, known: KnownFamily, whole: Family) -> list[str]:
        if known.declared not in self.declared[name, known.mark]:
            return [f"{broker.name} has a family {name} that nobody has declared."]
        anew = msgspec.structs.replace(known.declared, paths=())
        typing = typing_of(anew)
        wrong = []
        for path in whole.paths:
            expected = typed_path(name, WantedPath(path.expression), anew.prefixes, typing)
            if (path.kind, path.many) != (expected.kind, expected.many):
                wrong.append(f"{broker.name} holds {path.expression} as {path.kind}, not as {expected.kind}.")
        return wrong

    def _gone(self, number: int) -> bool:
        """Whether the record of a path was changed again later: by who removed a family that came back."""
        change = self.oracle._by_number[number]
        return any(change.is_earlier_than(one) and one.value is None for one in self.oracle._by_number.values())


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(making, "try_schemas", compile_within)


def played(seed: int) -> tuple[FamilyWorld, list[str]]:
    scenario = drawn(seed)
    world = FamilyWorld(scenario)
    return world, world.play() + world.judge()


def test_all_brokers_come_to_the_same_families_with_all_that_was_confirmed():
    did: set[str] = set()
    paths = 0
    for seed in range(1, SEEDS + 1):
        world, wrong = played(seed)
        assert not wrong, f"seed {seed}"
        did |= world.did
        paths += len(world.paths)
    assert did == {"add", "remove", "change", "path"}
    assert paths > SEEDS


@pytest.mark.slow
def test_they_do_in_many_runs():
    for seed in range(20_001, 20_001 + MANY):
        assert not played(seed)[1], f"seed {seed}"


def test_paths_in_the_record_of_their_family_would_be_lost(monkeypatch):
    """With one record for all of a family, some of what was confirmed is gone."""

    def put_into_the_family(world, broker, number, key, *, removes, everywhere):
        records = broker.router.shared
        known = known_families(records.of(FAMILIES), {}).get("card")
        text = world._drawn.choice(TEXTS)
        if known is None:
            change = world._declare("card", "m", family("card", 0, 1))
        else:
            paths = {one.expression: one for one in known.declared.paths} | {text: typed(0, text)}
            whole = msgspec.structs.replace(known.declared, paths=tuple(paths.values()))
            change = world._declare("card", "m", whole)
            world.paths.append((number, "card", "m", text))
        made = records.changed((change,))
        world.oracle.puts(
            broker, number, change[1], made[0] if made else None, world.now, everywhere=everywhere
        )
        world._carry_out(broker, broker.router.share(made, number, world.now, everywhere=everywhere))

    def put(world, broker, number, key, **more):
        if broker.router is not None:
            put_into_the_family(world, broker, number, key, **more)

    monkeypatch.setattr(FamilyWorld, "_put", put)
    assert any("has lost the path" in one for seed in range(1, 200) for one in played(seed)[1])


def test_a_run_is_the_same_each_time():
    one, other = played(7)[0], played(7)[0]
    assert (one.paths, one.did) == (other.paths, other.did)
    assert [one.families(broker).keys() for broker in one.brokers] == [
        other.families(broker).keys() for broker in other.brokers
    ]
    assert any(isinstance(one, PutRecord) for one in drawn(7).happenings)
    value = family_change(FamilyRecord("m", family("card", 0, 1)))[2]
    assert value is not None
    assert read_family_record("card", value).mark == "m"
