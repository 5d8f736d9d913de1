"""Every error that Palio raises, each with fields and a finished sentence.

The fields are plain attributes, so that a caller can react to them and a gateway can put them into a
problem document; `str(error)` is what a person should read. Errors survive pickling, because Spark workers
and process pools send them across.

A class declares its fields as a dataclass does, in the order in which they are given to it, and beside them its
`sentence`: a template for `str.format`, or a method where the sentence depends on more. What is given for the
sentence only, and is no field, is an `InitVar`; such a method gets it as an argument. An error that says
something else each time has no `sentence`, and is given it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import InitVar


class _Cut(int):
    """How many characters of a field are kept."""


def cut(characters: int) -> Any:
    """Declares a field that strangers write: no more than that many `characters` of it are kept."""
    return _Cut(characters)


@dataclass_transform(eq_default=False, field_specifiers=(cut,))
class PalioError(Exception):
    """The base of all our errors."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.__dict__.update(fields)

    def __init_subclass__(cls, kw_only: bool = False) -> None:
        super().__init_subclass__()
        if "sentence" in vars(cls) and "__init__" not in vars(cls):
            cls.__init__ = _constructor(cls, kw_only)  # type: ignore[method-assign]

    @property
    def fields(self) -> dict[str, Any]:
        """What the sentence says, as data."""
        return dict(self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.fields)


def _constructor(kind: type, kw_only: bool) -> Callable[..., None]:
    """An `__init__` for what `kind` declares. It is not compiled for each kind, as that of a dataclass is, and
    looks at the kind when it is first called: whoever imports Palio does not wait for that.
    """
    sentence = vars(kind)["sentence"]

    def construct(self: PalioError, *given: Any, **named: Any) -> None:
        declared, defaults, cuts, told = _declaration(kind)
        placed = {} if kw_only else dict(zip(declared, given, strict=False))
        values = defaults | placed | named
        if len(given) > len(placed) or placed.keys() & named.keys() or values.keys() != declared.keys():
            by_name = ", by name" if kw_only else ""
            raise TypeError(f"{kind.__name__} is made of {', '.join(declared)}{by_name}.")
        for name, characters in cuts.items():
            values[name] = values[name][:characters]
        self.__dict__.update((name, values[name]) for name in declared if name not in told)
        if isinstance(sentence, str):
            message = sentence.format_map(values)
        else:
            message = sentence(self, **{name: values[name] for name in told})
        PalioError.__init__(self, message)

    return construct


@cache
def _declaration(kind: type) -> tuple[dict[str, str], dict[str, Any], dict[str, int], set[str]]:
    """What a kind and its bases declare: annotations, defaults, what is cut, what is for the sentence only."""
    declared: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        own = vars(base).get("__annotations__", {})
        declared |= own
        defaults |= {name: vars(base)[name] for name in own if name in vars(base)}
    cuts = {name: defaults.pop(name) for name in declared if isinstance(defaults.get(name), _Cut)}
    told = {name for name, annotation in declared.items() if "InitVar[" in str(annotation)}
    return declared, defaults, cuts, told


def _rebuild(kind: type[PalioError], message: str, fields: dict[str, Any]) -> PalioError:
    error = kind.__new__(kind)
    PalioError.__init__(error, message, **fields)
    return error


class InvalidNotification(PalioError):
    """A notification that cannot be taken; `path` says which part of it."""

    path: str
    reason: str
    sentence = "{path}: {reason}"


class WrongParameter(PalioError):
    """A parameter, header or member that cannot be used; `path` says which."""

    path: str
    reason: str
    sentence = "{path}: {reason}"


class NoSuchAttribute(PalioError, KeyError):
    """An attribute that was asked for and is not there; `likely` are names that may have been meant."""

    name: str
    asked: str
    likely: tuple[str, ...] = ()

    def sentence(self) -> str:
        names = " or ".join(map(repr, self.likely))
        meant = f"Did you mean {names}?" if names else "A default allows for that."
        return f"There is no attribute {self.name!r}, which was asked for as {self.asked}. {meant}"

    def __str__(self) -> str:  # that of a KeyError puts it in quotes
        return str(self.args[0])


class WrongKind(PalioError, TypeError):
    """An attribute of another kind than was asked for. The kinds are named as filters name them."""

    name: str
    kind: str
    asked: str
    sentence = "The attribute {name!r} is of the kind {kind}, and was asked for as {asked}."


class FilterError(PalioError):
    """The base of all that can be wrong with a filter or an advertisement."""


class FilterSyntaxError(FilterError):
    """A filter text that cannot be read; `column` counts from 1."""

    text: str
    column: int
    problem: str
    suggestion: str | None = None

    def sentence(self) -> str:
        advice = f" {self.suggestion}" if self.suggestion else ""
        return f"Column {self.column}: {self.problem}{advice}"

    def pointer(self) -> str:
        """The part of the text around the mistake, with a mark under it."""
        return pointer(self.text, self.column)


def pointer(text: str, column: int, width: int = 72) -> str:
    """The part of a text around a column, which counts from 1, with a mark under it."""
    at = column - 1
    start = max(0, at - width // 2)
    line = text[start : start + width].replace("\n", " ").replace("\t", " ")
    return f"{line}\n{' ' * (at - start)}^"


class FilterTooLarge(FilterError, kw_only=True):
    """A filter, an advertisement or an intermediate result that passes a limit."""

    what: str = "conjunctions"
    limit: int
    got: int

    def sentence(self) -> str:
        verb = "expands to" if self.what.startswith("conjunctions") else "has"
        return f"This filter {verb} {self.got:,} {self.what}; the limit is {self.limit:,}."


class TooHard(PalioError):
    """A request about filters that takes more steps of reasoning than one may take."""

    limit: int
    sentence = (
        "This takes more than {limit:,} steps of reasoning about filters, as many as one request may. Use a "
        "simpler filter, ask about fewer at a time, or raise the limit `limits.steps` of the broker."
    )


class ContradictoryFilter(FilterError):
    """A filter that no notification can satisfy, met where somebody wants to subscribe with it."""

    filter: str
    reason: str
    sentence = "This filter can never match: {reason}"


class ComputedCondition(FilterError):
    """A filter that computes something, where what it selects has to be known without any event."""

    where: str
    condition: str
    sentence = (
        "{where} cannot have `{condition}`, which is computed: what it allows is compared with the filters of "
        "others, for all events at once, and only sets of values can be. Say what each attribute may be."
    )


class PatternError(PalioError):
    """The base of all that can be wrong with a pattern."""


class PatternSyntaxError(PatternError, FilterSyntaxError):
    """A pattern's text that cannot be read; `column` counts from 1."""


class UnboundedPattern(PatternError):
    """A pattern without a window, which would have to remember events for ever."""

    pattern: str
    sentence = (
        "This pattern has no window, and would remember events for ever: say `within` and a time, such as "
        "`within 5 min`."
    )


class PatternTooLarge(PatternError, kw_only=True):
    """A pattern that passes a limit."""

    what: str
    limit: int
    got: int
    sentence = "This pattern has {got:,} {what}; the limit is {limit:,}."


class ImpossiblePattern(PatternError):
    """A pattern that can never fire."""

    pattern: str
    reason: str
    sentence = "This pattern can never fire: {reason}"


class DuplicateId(PalioError):
    """An index holds this id already."""

    id: object
    sentence = "The id {id!r} is in the index already; remove it first."


class UnknownId(PalioError):
    """An index does not hold this id."""

    id: object
    sentence = "The id {id!r} is not in the index."


class ReadOnlyIndex(PalioError):
    """A mapped index, which cannot be changed."""

    def __init__(self) -> None:
        super().__init__("This index is mapped from a file; it can be matched against but not changed.")


class UnsupportedId(PalioError):
    """An id that a file cannot hold."""

    id: object
    sentence = "The id {id!r} cannot be saved: ids in files are strings, numbers, bytes or tuples of these."


class UnreadableIndex(PalioError):
    """A file that is no saved index, or not one that this version reads."""

    path: str
    reason: str
    sentence = "{path} is no index that can be mapped: {reason}"


class UnreadableHints(PalioError):
    """A file that has no hints for an index, or not such as this version reads."""

    path: str
    reason: str
    sentence = "{path} has no hints that can be used: {reason} `palio spark stats --hints` writes such a file."


class UnsupportedColumn(PalioError):
    """An Arrow column whose type no attribute can have."""

    column: str
    type: str
    advice: InitVar[str]
    sentence = "The column {column!r} has the type {type}, which no attribute has; {advice}."


class MissingDependency(PalioError):
    """Something optional is not installed."""

    package: str
    extra: str
    sentence = "This needs {package}, which is not installed; `pip install 'palio[{extra}]'` brings it."


class EventTooLarge(PalioError, kw_only=True):
    """An event that no frame could deliver together with the names that go with it."""

    limit: int
    got: int
    sentence = (
        "This event has about {got:,} bytes; the limit is {limit:,}. Publish it in parts, or publish where its "
        "content can be found."
    )


class HistoryUnavailable(PalioError):
    """What was published before cannot be read now, where a broker has it. Nothing of it is passed over."""

    broker: str
    reason: str
    sentence = (
        "The broker {broker} cannot read now what was published there: {reason} Nothing was passed over: "
        "subscribe again when this is mended, and it goes on from here."
    )


class FilterDiffers(PalioError):
    """A durable subscription that is there, with another filter than the one that was asked for."""

    name: str
    present: str
    asked: str
    sentence = (
        "The durable subscription {name!r} is there with the filter `{present}`, and `{asked}` was asked for. "
        "To change it in place, say so (change=True, --change, PUT /subscriptions/NAME); to take it as it is, "
        "name no filter (filter=None)."
    )


class NoSuchSubscription(PalioError):
    """A durable subscription that is nowhere in the network."""

    name: str
    sentence = (
        "There is no durable subscription {name!r}; name a filter to make one, or look at the spelling (`palio "
        "subs --durable` lists those at a broker)."
    )


class NotAuthenticated(PalioError):
    """Somebody who did not prove who it is. What was shown for a proof is never repeated here."""

    reason: str
    sentence = "{reason} Connect with a token or a certificate that this broker knows."


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

    def sentence(self) -> str:
        return f"{self.principal or 'This client'} may not {self.what}: {self.missing}"


class TooFast(PalioError):
    """More notifications in a second than may be published."""

    limit: float
    sentence = (
        "More than {limit:g} notifications a second were published, as many as one client may; nothing of this "
        "request was. Wait a moment, or raise the limit `limits.publish_rate` of the broker."
    )


class Throttled(PalioError):
    """A request that has waited for too long, since its client asks for more than its share of a broker."""

    seconds: float
    sentence = (
        "This client asks for more than its share of this broker, and the request was not carried out: it "
        "waited for {seconds:.1f} seconds. Ask for less at a time, or try again in {seconds:.1f} seconds."
    )


class WrongTime(PalioError):
    """A text that names no moment, or no span of time."""

    text: str
    reason: InitVar[str]
    what: InitVar[str]

    def sentence(self, reason: str, what: str) -> str:
        return f"{self.text[:60]!r} cannot be read: {reason}. Write {what}."
