"""Every error that Palio raises, each with fields and a finished sentence.

The fields are plain attributes, so that a caller can react to them and a gateway can put them into a
problem document; `str(error)` is what a person should read. Errors survive pickling, because Spark workers
and process pools send them across.
"""

from __future__ import annotations

from typing import Any


class PalioError(Exception):
    """The base of all our errors."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.__dict__.update(fields)

    @property
    def fields(self) -> dict[str, Any]:
        """What the sentence says, as data."""
        return dict(self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.fields)


def _rebuild(kind: type[PalioError], message: str, fields: dict[str, Any]) -> PalioError:
    error = kind.__new__(kind)
    PalioError.__init__(error, message, **fields)
    return error


class InvalidNotification(PalioError):
    """A notification that cannot be taken; `path` says which part of it."""

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}", path=path, reason=reason)


class WrongParameter(PalioError):
    """A parameter, header or member that cannot be used; `path` says which."""

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}", path=path, reason=reason)


class NoSuchAttribute(PalioError, KeyError):
    """An attribute that was asked for and is not there; `likely` are names that may have been meant."""

    name: str
    asked: str
    likely: tuple[str, ...]

    def __init__(self, name: str, asked: str, likely: tuple[str, ...] = ()) -> None:
        meant = f"Did you mean {' or '.join(map(repr, likely))}?" if likely else "A default allows for that."
        super().__init__(
            f"There is no attribute {name!r}, which was asked for as {asked}. {meant}",
            name=name,
            asked=asked,
            likely=likely,
        )

    def __str__(self) -> str:  # that of a KeyError puts it in quotes
        return str(self.args[0])


class WrongKind(PalioError, TypeError):
    """An attribute of another kind than was asked for. The kinds are named as filters name them."""

    name: str
    kind: str
    asked: str

    def __init__(self, name: str, kind: str, asked: str) -> None:
        super().__init__(
            f"The attribute {name!r} is of the kind {kind}, and was asked for as {asked}.",
            name=name,
            kind=kind,
            asked=asked,
        )


class FilterError(PalioError):
    """The base of all that can be wrong with a filter or an advertisement."""


class FilterSyntaxError(FilterError):
    """A filter text that cannot be read; `column` counts from 1."""

    text: str
    column: int
    problem: str
    suggestion: str | None

    def __init__(self, text: str, column: int, problem: str, suggestion: str | None = None) -> None:
        advice = f" {suggestion}" if suggestion else ""
        super().__init__(
            f"Column {column}: {problem}{advice}",
            text=text,
            column=column,
            problem=problem,
            suggestion=suggestion,
        )

    def pointer(self, width: int = 72) -> str:
        """The part of the text around the mistake, with a mark under it."""
        at = self.column - 1
        start = max(0, at - width // 2)
        line = self.text[start : start + width].replace("\n", " ").replace("\t", " ")
        return f"{line}\n{' ' * (at - start)}^"


class FilterTooLarge(FilterError):
    """A filter, an advertisement or an intermediate result that passes a limit."""

    what: str
    limit: int
    got: int

    def __init__(self, *, limit: int, got: int, what: str = "conjunctions") -> None:
        verb = "expands to" if what.startswith("conjunctions") else "has"
        super().__init__(
            f"This filter {verb} {got:,} {what}; the limit is {limit:,}.", what=what, limit=limit, got=got
        )


class ContradictoryFilter(FilterError):
    """A filter that no notification can satisfy, met where somebody wants to subscribe with it."""

    filter: str
    reason: str

    def __init__(self, filter: str, reason: str) -> None:
        super().__init__(f"This filter can never match: {reason}", filter=filter, reason=reason)


class PatternError(PalioError):
    """The base of all that can be wrong with a pattern."""


class PatternSyntaxError(PatternError, FilterSyntaxError):
    """A pattern's text that cannot be read; `column` counts from 1."""


class UnboundedPattern(PatternError):
    """A pattern without a window, which would have to remember events for ever."""

    pattern: str

    def __init__(self, pattern: str) -> None:
        super().__init__(
            "This pattern has no window, and would remember events for ever: say `within` and a time, such as "
            "`within 5 min`.",
            pattern=pattern,
        )


class PatternTooLarge(PatternError):
    """A pattern that passes a limit."""

    what: str
    limit: int
    got: int

    def __init__(self, *, what: str, limit: int, got: int) -> None:
        super().__init__(
            f"This pattern has {got:,} {what}; the limit is {limit:,}.", what=what, limit=limit, got=got
        )


class ImpossiblePattern(PatternError):
    """A pattern that can never fire."""

    pattern: str
    reason: str

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"This pattern can never fire: {reason}", pattern=pattern, reason=reason)


class DuplicateId(PalioError):
    """An index holds this id already."""

    id: object

    def __init__(self, id: object) -> None:
        super().__init__(f"The id {id!r} is in the index already; remove it first.", id=id)


class UnknownId(PalioError):
    """An index does not hold this id."""

    id: object

    def __init__(self, id: object) -> None:
        super().__init__(f"The id {id!r} is not in the index.", id=id)


class ReadOnlyIndex(PalioError):
    """A mapped index, which cannot be changed."""

    def __init__(self) -> None:
        super().__init__("This index is mapped from a file; it can be matched against but not changed.")


class UnsupportedId(PalioError):
    """An id that a file cannot hold."""

    id: object

    def __init__(self, id: object) -> None:
        super().__init__(
            f"The id {id!r} cannot be saved: ids in files are strings, numbers, bytes or tuples of these.",
            id=id,
        )


class UnreadableIndex(PalioError):
    """A file that is no saved index, or not one that this version reads."""

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is no index that can be mapped: {reason}", path=path, reason=reason)


class UnreadableHints(PalioError):
    """A file that has no hints for an index, or not such as this version reads."""

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} has no hints that can be used: {reason} `palio spark stats --hints` writes such a file.",
            path=path,
            reason=reason,
        )


class UnsupportedColumn(PalioError):
    """An Arrow column whose type no attribute can have."""

    column: str
    type: str

    def __init__(self, column: str, type: str, advice: str) -> None:
        super().__init__(
            f"The column {column!r} has the type {type}, which no attribute has; {advice}.",
            column=column,
            type=type,
        )


class MissingDependency(PalioError):
    """Something optional is not installed."""

    package: str
    extra: str

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"This needs {package}, which is not installed; `pip install 'palio[{extra}]'` brings it.",
            package=package,
            extra=extra,
        )


class EventTooLarge(PalioError):
    """An event that no frame could deliver together with the names that go with it."""

    limit: int
    got: int

    def __init__(self, *, limit: int, got: int) -> None:
        super().__init__(
            f"This event has about {got:,} bytes; the limit is {limit:,}. Publish it in parts, or publish "
            "where its content can be found.",
            limit=limit,
            got=got,
        )


class HistoryUnavailable(PalioError):
    """What was published before cannot be read now, where a broker has it. Nothing of it is passed over."""

    broker: str
    reason: str

    def __init__(self, broker: str, reason: str) -> None:
        super().__init__(
            f"The broker {broker} cannot read now what was published there: {reason} Nothing was passed over: "
            "subscribe again when this is mended, and it goes on from here.",
            broker=broker,
            reason=reason,
        )


class FilterDiffers(PalioError):
    """A durable subscription that is there, with another filter than the one that was asked for."""

    name: str
    present: str
    asked: str

    def __init__(self, name: str, present: str, asked: str) -> None:
        super().__init__(
            f"The durable subscription {name!r} is there with the filter `{present}`, and `{asked}` was asked "
            "for. To change it in place, say so (change=True, --change, PUT /subscriptions/NAME); to take it "
            "as it is, name no filter (filter=None).",
            name=name,
            present=present,
            asked=asked,
        )


class NoSuchSubscription(PalioError):
    """A durable subscription that is nowhere in the network."""

    name: str

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no durable subscription {name!r}; name a filter to make one, or look at the spelling "
            "(`palio subs --durable` lists those at a broker).",
            name=name,
        )


class NotAuthenticated(PalioError):
    """Somebody who did not prove who it is. What was shown for a proof is never repeated here."""

    reason: str

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason} Connect with a token or a certificate that this broker knows.", reason=reason
        )


class TokenExpired(NotAuthenticated):
    """A token whose time is over."""

    id: str
    expired: str

    def __init__(self, id: str, expired: str) -> None:
        PalioError.__init__(
            self,
            f"The token {id} expired at {expired}; ask for a new one (`palio token create`).",
            id=id,
            expired=expired,
        )


class NotAllowed(PalioError):
    """Something that the rights of a principal do not cover; `missing` is the condition or the right."""

    principal: str
    what: str
    missing: str

    def __init__(self, principal: str, what: str, missing: str) -> None:
        super().__init__(
            f"{principal or 'This client'} may not {what}: {missing}",
            principal=principal,
            what=what,
            missing=missing,
        )


class TooFast(PalioError):
    """More notifications in a second than may be published."""

    limit: float

    def __init__(self, limit: float) -> None:
        super().__init__(
            f"More than {limit:g} notifications a second were published, as many as one client may; nothing of "
            "this request was. Wait a moment, or raise the limit `limits.publish_rate` of the broker.",
            limit=limit,
        )


class WrongTime(PalioError):
    """A text that names no moment, or no span of time."""

    text: str

    def __init__(self, text: str, reason: str, what: str) -> None:
        super().__init__(f"{text[:60]!r} cannot be read: {reason}. Write {what}.", text=text)
