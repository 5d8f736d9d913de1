"""What can be wrong with a document, its family, a schema or a path."""

from __future__ import annotations

from palio.model.errors import FilterError, PalioError, cut

REASON_CHARACTERS = 500  # of what a parser or a schema says, which may quote the document
NAME_CHARACTERS = 255
PATH_CHARACTERS = 1_000


class DocumentRefused(PalioError):
    """A document that is not well-formed, forbidden in what it uses, or not valid; `line` and `column` count
    from 1, and are None where there is no such place.
    """

    reason: str = cut(REASON_CHARACTERS)
    line: int | None = None
    column: int | None = None

    def sentence(self) -> str:
        if self.line is None:
            return f"This document is refused: {self.reason}"
        place = f"line {self.line}" + (f", column {self.column}" if self.column is not None else "")
        return f"This document is refused at {place}: {self.reason}"


class DocumentTooLarge(PalioError):
    """A document that has more of something than is read, `what` in the words of `DocumentLimits`."""

    what: str
    limit: int
    sentence = (
        "This document is refused: it exceeds the limit of {limit:,} for its {what}. Publish it in parts, or "
        "have the limit raised where it is read."
    )


class UnknownFamily(PalioError):
    """A family of documents that nobody has added; `known` are those that there are."""

    name: str = cut(NAME_CHARACTERS)
    known: tuple[str, ...] = ()

    def sentence(self) -> str:
        there = f"there are {', '.join(self.known)}" if self.known else "there is none yet"
        return f"There is no family of documents called {self.name!r}; {there}."


class UnknownPath(PalioError):
    """A path that can select nothing in any valid document of a family; `nearest` is one that can, if any."""

    path: str = cut(PATH_CHARACTERS)
    family: str = cut(NAME_CHARACTERS)
    nearest: str | None = None

    def sentence(self) -> str:
        meant = f"Did you mean {self.nearest}?" if self.nearest else "Its schema says what there is."
        return f"The path {self.path} selects nothing in documents of the family {self.family!r}. {meant}"


class UnnamedFamily(FilterError):
    """A path in a filter that does not say whose documents it is about; `beside` is what would say it."""

    path: str = cut(PATH_CHARACTERS)
    beside: str = '`xml.family = "…"`'
    sentence = (
        "It is not said which family {path} belongs to. Begin the filter with `family NAME where`, or join "
        "{beside} to it with `and`."
    )


class ImpossibleCondition(FilterError):
    """A condition on a path that holds for no document of its family."""

    condition: str = cut(PATH_CHARACTERS)
    family: str = cut(NAME_CHARACTERS)
    reason: str = cut(REASON_CHARACTERS)
    sentence = "No document of the family {family!r} can satisfy this: {condition}. {reason}"


class SchemaRefused(PalioError):
    """A schema that cannot be used; `name` is what it is called among those that were handed over."""

    name: str = cut(NAME_CHARACTERS)
    reason: str = cut(REASON_CHARACTERS)
    line: int | None = None

    def sentence(self) -> str:
        place = f", line {self.line}" if self.line is not None else ""
        return f"The schema {self.name!r}{place} cannot be used: {self.reason}"


class FamilyRefused(PalioError):
    """A family of documents that cannot be made as it was described."""

    name: str = cut(NAME_CHARACTERS)
    reason: str = cut(REASON_CHARACTERS)
    sentence = "The family {name!r} cannot be made: {reason}"


class FamilyIncompatible(PalioError):
    """A change of a family that would break what is in use; `broken` has a sentence for each of them."""

    name: str = cut(NAME_CHARACTERS)
    broken: tuple[str, ...]

    def sentence(self) -> str:
        listed = " ".join(self.broken[:20])
        more = f" And {len(self.broken) - 20:,} more." if len(self.broken) > 20 else ""
        return f"This change of the family {self.name!r} would break what is in use. {listed}{more}"
