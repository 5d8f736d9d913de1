"""What can be wrong with a filter in another dialect."""

from __future__ import annotations

from palio.model.errors import FilterError, FilterSyntaxError, cut


class WrongExpression(FilterError):
    """A filter expression that its dialect does not allow; `path` says where."""

    path: str
    reason: str
    sentence = "{path}: {reason}"


class UnknownDialect(FilterError):
    """A filter dialect that is not spoken here; `path` says where it was named, if within a document."""

    path: str
    dialect: str = cut(40)
    known: tuple[str, ...]

    def sentence(self) -> str:
        place = self.path and f"{self.path}: "
        known = ", ".join(self.known)
        return f"{place}The filter dialect {self.dialect!r} is not supported; there are {known}."


class WrongDialectText(FilterSyntaxError):
    """A filter in another dialect that cannot be read; `column` counts from 1 in the text as it was written.

    A reader need not name its dialect: whoever knows which one was asked for does (`read_filter`).
    """

    dialect: str = ""

    def sentence(self) -> str:
        named = f" ({self.dialect})" if self.dialect else ""
        return super().sentence().replace(":", f"{named}:", 1)


class MissingFunction(WrongDialectText):
    """A function that the dialect does not have, or not with so many operands."""


class UnwritableDialect(FilterError):
    """A dialect that filters are read from, but not written in."""

    dialect: str = cut(40)
    known: tuple[str, ...]

    def sentence(self) -> str:
        return f"Filters are not written in the dialect {self.dialect!r}; there are {', '.join(self.known)}."


class UnwritableCondition(FilterError):
    """A filter that cannot be said in another dialect; `condition` is what of it cannot."""

    dialect: str
    condition: str = cut(1_000)
    reason: str
    sentence = "In the dialect {dialect!r}, `{condition}` cannot be said: {reason}"
