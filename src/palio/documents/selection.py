"""What a filter about documents means: each XPath becomes the attribute that it is the name of.

    family card where xpath("/card/brand") = "Acme" and card.price < 10
    xml.family = "card" and `/card/brand` has "Acme" and `/card/price` < 10

What comes of it is a plain filter, and nothing behind this knows of XPath.

1. An XPath, and a short name (`card.price`), belongs to the family that is named in front, or beside it: by an
   `xml.family = "…"` that is joined to it, or to what it stands in, by `and`. So one filter can select
   documents of several families.
2. A path that may occur several times is a list. As in XPath, a comparison holds if it does for one of them:
   `=` becomes `has`, `<` becomes `has <`, and `!=` becomes `has not`.
3. What can hold for no document is refused here: a path that the schema has not, a constant of a kind that the
   values of a path never have, an unknown family. So is what would compute with such a value.
4. A path that the family does not have yet is told beside the filter: whoever subscribes adds it first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from palio.documents.errors import FamilyRefused, ImpossibleCondition, UnknownFamily, UnnamedFamily
from palio.documents.family import MAX_PATHS, FamilyPath, PathKind
from palio.documents.family_paths import FamilyPaths
from palio.documents.reserved import FAMILY, RESERVED
from palio.documents.selection_text import WrittenName, read_selection_text
from palio.model.constraint import IGNORING_CASE, Constraint, describe_kind
from palio.model.expression import (
    TRUE,
    And,
    Condition,
    Expression,
    Not,
    Or,
    condition_text,
    conjunction,
    text_of,
)
from palio.model.filter import Filter
from palio.model.formulas.evaluation import implied
from palio.model.formulas.formula import Call, Formula, Variable
from palio.model.formulas.residual import Residual, call
from palio.model.values import KIND_OF_TYPE, KINDS_BY_NAME, Kind
from palio.model.valueset import PRESENT, ValueSet

_SHOWN: Final = 20  # families that are named to whoever asks for another one
_NUMBERS: Final = frozenset((Kind.INT, Kind.FLOAT))
_VALUES: Final[dict[PathKind, str]] = {
    "int": "integers",
    "float": "numbers",
    "bool": "true or false",
    "time": "times",
    "string": "strings",
}
_ADVICE: Final[dict[PathKind, str]] = {
    "time": " Write a time without quotes: 2026-03-28T10:00:00Z.",
    "string": " Write a string in quotes.",
}


class Selection(msgspec.Struct, frozen=True):
    """A filter about documents, and by family the `paths` in it; `new_paths` are not extracted yet.

    The filter's `source` is its text in the filter language, with the conditions in the order of the text.
    """

    filter: Filter
    paths: dict[str, tuple[FamilyPath, ...]]
    new_paths: dict[str, tuple[FamilyPath, ...]]


def read_selection(text: str, families: Mapping[str, FamilyPaths]) -> Selection:
    """The filter that a text about documents of these families means.

    Raises `FilterSyntaxError` or `FilterTooLarge` for what is no filter, `XPathSyntaxError`, `XPathTooLong` or
    `XPathTooCostly` for what is no path; `UnnamedFamily`, `UnknownFamily`, `UnknownPath` and
    `ImpossibleCondition` for what can select nothing; `FamilyRefused` for more paths than a family may have.
    """
    said = read_selection_text(text)
    resolver = _Resolver(families)
    expression = TRUE if said.expression is None else said.expression
    if said.family is None:
        resolved = resolver.resolve(expression, None)
    else:
        front = Condition(FAMILY, Constraint("=", said.family))
        within = expression.operands if isinstance(expression, And) else (expression,)
        inner = () if said.expression is None else within
        resolved = resolver.resolve(conjunction((front, *inner)), None)
    return Selection(Filter.parse(text_of(resolved)), resolver.paths(), resolver.new_paths())


class _Resolver:
    """Rewrites an expression whose names are as written to one about attributes."""

    def __init__(self, families: Mapping[str, FamilyPaths]) -> None:
        self._families = families
        self._found: dict[str, dict[str, FamilyPath]] = {}

    def paths(self) -> dict[str, tuple[FamilyPath, ...]]:
        """By family, the paths that were met."""
        return {name: tuple(paths.values()) for name, paths in self._found.items()}

    def new_paths(self) -> dict[str, tuple[FamilyPath, ...]]:
        """Those of them that their family does not have. Raises `FamilyRefused`."""
        new = {}
        for name, paths in self.paths().items():
            family = self._families[name]
            missing = tuple(one for one in paths if not family.has(one.expression))
            number = len(family.family.paths) + len(missing)
            if missing and number > MAX_PATHS:
                said = f"With those of this filter it would have {number:,} paths; the limit is {MAX_PATHS}."
                raise FamilyRefused(name, said)
            if missing:
                new[name] = missing
        return new

    def resolve(self, expression: Expression, family: FamilyPaths | None) -> Expression:
        """The expression, where `family` is the one that has been named around it."""
        match expression:
            case Condition(name, constraint):
                path = self._path(name, family)
                if path is not None and family is not None:
                    return _PathCondition(family.family.name, path).of(constraint)
                if name == FAMILY:
                    self._require_families(constraint)
                return Condition(str(name), constraint)
            case Residual(formula, wanted):
                return self._computed(formula, wanted, family)
            case Not(operand):
                return Not(self.resolve(operand, family))
            case And(operands):
                named = next(_named_families(expression), None)
                within = family if named is None else self._family(named)
                return And(tuple(self.resolve(one, within) for one in operands))
            case Or(operands):
                return Or(tuple(self.resolve(one, family) for one in operands))
        return expression

    def _family(self, name: str) -> FamilyPaths:
        if name not in self._families:
            raise UnknownFamily(name, tuple(islice(self._families, _SHOWN)))
        return self._families[name]

    def _require_families(self, constraint: Constraint) -> None:
        """Raises `UnknownFamily` if a condition asks for one that is not there."""
        if constraint.operator in ("=", "in"):
            for name in _constants(constraint):
                self._family(str(name))

    def _path(self, name: str, family: FamilyPaths | None) -> FamilyPath | None:
        """The path that a name is; None if it is that of any other attribute."""
        xpath = name.xpath if isinstance(name, WrittenName) else None
        if xpath is None:
            owner, dot, short = name.rpartition(".")
            if not dot or owner not in self._families or name in RESERVED:
                return None
            if family is None:
                raise UnnamedFamily(name, f'`xml.family = "{owner}"`')
            if owner != family.family.name:
                return None
        elif family is None:
            raise UnnamedFamily(name)
        path = family.named(short) if xpath is None else family.find(xpath)
        self._found.setdefault(family.family.name, {})[path.expression] = path
        return path

    # What is computed

    def _computed(self, formula: Formula, wanted: bool, family: FamilyPaths | None) -> Expression:
        paths: dict[str, FamilyPath] = {}
        made = Residual(self._renamed(formula, family, paths), wanted)
        demands = implied(made.formula) if paths else {}
        for path in paths.values():
            can_be = PRESENT.only(Kind.LIST if path.many else KINDS_BY_NAME[path.kind])
            if demands is None or not demands.get(path.expression, PRESENT).overlaps(can_be):
                said = (
                    f"The values of {path.expression} are {_VALUES[path.kind]}, which cannot be computed with."
                )
                if path.many:
                    said = f"{path.expression} may occur several times, and cannot be computed with."
                raise ImpossibleCondition(text_of(made), _name_of(family), said)
        return made

    def _renamed(self, formula: Formula, family: FamilyPaths | None, paths: dict[str, FamilyPath]) -> Formula:
        match formula:
            case Variable(name):
                path = self._path(name, family)
                if path is None:
                    return Variable(str(name))
                paths[path.expression] = path
                return Variable(path.expression)
            case Call(function, operands):
                return call(function, *(self._renamed(one, family, paths) for one in operands))
        return formula


class _PathCondition:
    """Makes conditions on the attribute of one path."""

    def __init__(self, family: str, path: FamilyPath) -> None:
        self._family, self._path = family, path
        self._kind = KINDS_BY_NAME[path.kind]

    def of(self, constraint: Constraint) -> Condition:
        """The condition that a constraint is. Raises `ImpossibleCondition`."""
        name, many = self._path.expression, self._path.many
        if constraint.operator in ("exists", "absent"):
            if constraint.demanded not in (None, Kind.LIST if many else self._kind):
                self._refuse(constraint, f"{self._described()}.")
            return Condition(name, constraint)
        if constraint.operator == "has":
            if not many:
                said = "it occurs once at most in a document, and has no elements. Leave out `has`"
                self._refuse(constraint, f"{said}, or write `=` for it.")
            self._require_possible(constraint, constraint.operand)
            return Condition(name, constraint)
        self._require_possible(constraint, constraint)
        if not many:
            return Condition(name, constraint)
        if constraint.operator == "!=":
            same = Constraint("=", constraint.operand, constraint.demanded)
            constraint = Constraint("not", same, constraint.demanded)
        return Condition(name, Constraint("has", constraint))

    def _require_possible(self, constraint: Constraint, of_value: Constraint) -> None:
        """Raises `ImpossibleCondition` if no value of the path can satisfy what is said of one."""
        for constant in _constants(of_value):
            kind = KIND_OF_TYPE[type(constant)]
            if kind != self._kind and not {kind, self._kind} <= _NUMBERS:
                advice = _ADVICE.get(self._path.kind, "")
                self._refuse(constraint, f"{self._described()}, never {describe_kind(constant)}.{advice}")
        can_be: ValueSet = of_value.values() & PRESENT.only(self._kind)
        if can_be.is_empty():
            self._refuse(constraint, f"{self._described()}, and none is so.")

    def _described(self) -> str:
        return f"the values of {self._path.expression} are {_VALUES[self._path.kind]}"

    def _refuse(self, constraint: Constraint, reason: str) -> None:
        written = condition_text(self._path.expression, constraint)
        raise ImpossibleCondition(written, self._family, reason[0].upper() + reason[1:])


def _name_of(family: FamilyPaths | None) -> str:
    return "" if family is None else family.family.name


def _named_families(expression: And) -> Iterator[str]:
    """The families that are named among what is joined by `and`."""
    for one in expression.operands:
        match one:
            case And():
                yield from _named_families(one)
            case Condition(name, Constraint("=", str(family))) if name == FAMILY:
                yield family


def _constants(constraint: Constraint) -> tuple[Any, ...]:
    """What a constraint compares with."""
    operand = constraint.operand
    match constraint.operator:
        case "exists" | "absent":
            return ()
        case "has" | "not":
            return _constants(operand)
        case "in" | "between":
            return tuple(operand)
        case _:
            return ("",) if constraint.operator == IGNORING_CASE else (operand,)
