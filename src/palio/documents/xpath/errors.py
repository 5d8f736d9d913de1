"""What can be wrong with an XPath expression."""

from __future__ import annotations

from palio.model.errors import FilterError, FilterSyntaxError, cut


class XPathSyntaxError(FilterSyntaxError):
    """An XPath expression that cannot be read; `column` counts from 1."""


class UnknownPrefix(XPathSyntaxError):
    """A prefix of a name that the family does not bind to a namespace."""

    prefix: str = ""
    known: tuple[str, ...] = ()

    def sentence(self) -> str:
        return super().sentence()


class XPathTooLong(FilterError):
    """An expression that has no name as an attribute, since its shortest spelling is too long for one."""

    expression: str = cut(300)
    characters: int
    limit: int
    sentence = (
        "The path `{expression}` has {characters:,} characters in its shortest spelling; the limit is {limit}, "
        "since it is the name of an attribute. Use shorter prefixes or fewer predicates."
    )


class XPathTooCostly(FilterError):
    """An expression whose evaluation could take too long in the largest document that is allowed."""

    expression: str = cut(300)
    steps: int
    limit: int
    nodes: int
    sentence = (
        "The path `{expression}` could take some {steps:,} steps in a document of {nodes:,} nodes; the limit "
        "is {limit:,}. Name the elements on the way instead of searching within what was searched for, and "
        "leave out axes that look at siblings or at the whole document from each node."
    )
