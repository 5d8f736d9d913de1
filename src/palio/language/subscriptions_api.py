"""The filter dialects of the CloudEvents Subscriptions API, and our own beside them.

    [{"exact": {"type": "order"}}, {"not": {"prefix": {"subject": "test/"}}}, {"palio": "price > 100"}]

All filters of a list must be satisfied. `exact`, `prefix` and `suffix` map attributes to texts, and hold if
every attribute is present and compares so; `all`, `any` and `not` join filters; `sql` is an expression of
CloudEvents SQL (`cesql`), and `palio` the text of a filter of ours.

A text stands for every value that is written so: `{"exact": {"partition": "5"}}` selects the string "5" and the
integer 5, which CloudEvents writes alike, and `"true"` also the bool, a timestamp also the time. Where JSON
gives a number or a bool instead of a text, values are compared as by `=`. `prefix` and `suffix` look at strings
only. Names are those of attributes, so that `data.price` can be named, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from palio.language.cesql import parse_cesql
from palio.language.errors import UnknownDialect, WrongDialectText, WrongExpression
from palio.model import jsontext
from palio.model.constraint import Constraint
from palio.model.errors import FilterSyntaxError, FilterTooLarge, InvalidNotification
from palio.model.expression import Condition, Expression, Not, conjunction, disjunction
from palio.model.filter import Filter
from palio.model.moments import parse_time
from palio.model.parser import parse
from palio.model.values import INT_MAX, INT_MIN, Kind, check_name, check_scalar, member_path

# Deeper or longer ones are nobody's wish: an attack, or a mistake.
MAX_DEPTH = 32
MAX_EXPRESSIONS = 1_000


def read_filters(filters: Any, path: str = "$.filters") -> Filter:
    """The filter that a list of filter expressions means; None and an empty list select everything.

    Raises `WrongExpression`, `UnknownDialect`, and what `Filter.parse` raises.
    """
    if filters is None:
        return Filter()
    reader = _ExpressionReader()
    found = Filter.from_expression(conjunction(reader.several(filters, path, 0, least=0)))
    if found.contradiction is not None and reader.conflicts:
        return Filter((), conflicts=tuple(reader.conflicts))
    return found


def parse_filters(text: str) -> Filter:
    """The filter that the JSON text of such a list means.

    Raises `WrongExpression` for what is no JSON, and what `read_filters` raises.
    """
    try:
        document = jsontext.read(text)
    except InvalidNotification as problem:
        raise WrongExpression(problem.path, problem.reason) from None
    return read_filters(document, "$")


class _ExpressionReader:
    """Reads expressions, and counts them; `conflicts` says why some of them can never match."""

    def __init__(self) -> None:
        self._count = 0
        self.conflicts: list[str] = []

    def several(self, document: Any, path: str, depth: int, *, least: int = 1) -> list[Expression]:
        if not isinstance(document, list) or len(document) < least:
            raise WrongExpression(path, "This is a list of filters" + (", at least one." if least else "."))
        return [self.one(part, f"{path}[{index}]", depth) for index, part in enumerate(document)]

    def one(self, document: Any, path: str, depth: int) -> Expression:
        self._count += 1
        if self._count > MAX_EXPRESSIONS:
            raise FilterTooLarge(limit=MAX_EXPRESSIONS, got=self._count, what="expressions")
        if depth > MAX_DEPTH:
            raise WrongExpression(path, f"Filters are nested more than {MAX_DEPTH} deep.")
        if not isinstance(document, Mapping) or len(document) != 1:
            raise WrongExpression(path, "A filter is an object with one member, named after its dialect.")
        ((dialect, content),) = document.items()
        read = _MEMBERS.get(dialect)
        if read is None:
            raise UnknownDialect(path, str(dialect), MEMBERS)
        return read(self, content, f"{path}.{dialect}", depth + 1)

    def compared(self, content: Any, path: str, compare: Callable[[str, Any, str], Expression]) -> Expression:
        if not isinstance(content, Mapping) or not content:
            raise WrongExpression(path, "This is an object from attributes to values, at least one.")
        self._count += len(content) - 1
        return conjunction(
            [_named(name, value, member_path(path, name), compare) for name, value in content.items()]
        )


def _named(name: Any, value: Any, path: str, compare: Callable[[str, Any, str], Expression]) -> Expression:
    try:
        check_name(name, path)
        if value == "":
            raise WrongExpression(path, "A value that is compared with is not empty.")
        return compare(name, check_scalar(value, path), path)
    except InvalidNotification as problem:
        raise WrongExpression(path, problem.reason) from None


def _exact(name: str, value: Any, path: str) -> Expression:
    if not isinstance(value, str):
        return Condition(name, Constraint("=", value))
    meant = [Constraint("=", value)]
    if value in ("true", "false"):
        meant.append(Constraint("=", value == "true"))
    elif _is_integer(value):
        meant.append(Constraint("=", int(value), Kind.INT))
    else:
        with suppress(ValueError, InvalidNotification):
            meant.append(Constraint("=", check_scalar(parse_time(value), path)))
    return disjunction([Condition(name, constraint) for constraint in meant])


def _is_integer(text: str) -> bool:
    """Whether a text is an integer as it is always written."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return False
    return str(int(text)) == text and INT_MIN <= int(text) <= INT_MAX


def _text(operator: str) -> Callable[[str, Any, str], Expression]:
    def compare(name: str, value: Any, path: str) -> Expression:
        if not isinstance(value, str):
            raise WrongExpression(path, "This dialect compares with a string.")
        return Condition(name, Constraint(operator, value))

    return compare


def _sql(reader: _ExpressionReader, content: Any, path: str, depth: int) -> Expression:
    if not isinstance(content, str):
        raise WrongExpression(path, "This is the text of an expression of CloudEvents SQL.")
    try:
        found = parse_cesql(content)
    except WrongDialectText as mistake:
        raise type(mistake)(*_located(mistake, path), "cesql") from None
    if found.contradiction is not None:
        reader.conflicts.append(f"in `{path}`, {found.contradiction.removesuffix('.')}")
    return found.expression


def _palio(reader: _ExpressionReader, content: Any, path: str, depth: int) -> Expression:
    if not isinstance(content, str):
        raise WrongExpression(path, "This is the text of a filter.")
    try:
        return parse(content)
    except FilterSyntaxError as mistake:
        raise type(mistake)(*_located(mistake, path)) from None


def _located(mistake: FilterSyntaxError, path: str) -> tuple[str, int, str, str | None]:
    """What is wrong with a text, and in which of the filters; the column is that of this text."""
    return mistake.text, mistake.column, f"in `{path}`, {mistake.problem}", mistake.suggestion


_MEMBERS: dict[str, Callable[[_ExpressionReader, Any, str, int], Expression]] = {
    "exact": lambda reader, content, path, _: reader.compared(content, path, _exact),
    "prefix": lambda reader, content, path, _: reader.compared(content, path, _text("starts with")),
    "suffix": lambda reader, content, path, _: reader.compared(content, path, _text("ends with")),
    "all": lambda reader, content, path, depth: conjunction(reader.several(content, path, depth)),
    "any": lambda reader, content, path, depth: disjunction(reader.several(content, path, depth)),
    "not": lambda reader, content, path, depth: Not(reader.one(content, path, depth)),
    "sql": _sql,
    "palio": _palio,
}
MEMBERS = tuple(_MEMBERS)
