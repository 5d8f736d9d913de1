"""`PathValues`: what paths find in a document that was read before, by a family that did not have them then.

1. What they find is what the reader of a family with these paths from the start has found, or what that would
   have refused the document for; so whoever looks back sees what they would have seen.
2. Schema, root and key are not looked at: the document was valid when it was read.
3. `complete` gives a notification the values of all paths of its family as it is now. What its document says
   about a path counts, also where the path had another kind; everything else stays as it was published.
4. A document need not be read again only if this revision has read it, and each path has a value: paths that
   subscriptions add come without a new revision, and a path that finds nothing leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palio.documents.family import Family, FamilyPath
from palio.documents.finding import PathFinding
from palio.documents.parsing import DocumentLimits, parse_document
from palio.documents.reserved import FAMILY, REVISION
from palio.documents.xpath import read_xpath
from palio.model.values import Value


class PathValues:
    """Paths whose values are taken out of documents together. One may be used by several threads at a time."""

    def __init__(
        self, paths: Sequence[FamilyPath], prefixes: Mapping[str, str], limits: DocumentLimits | None = None
    ) -> None:
        """Raises `XPathSyntaxError`."""
        self.paths = tuple(paths)
        self._limits = limits or DocumentLimits()
        self._finding = PathFinding([(read_xpath(one.expression, prefixes), one) for one in self.paths])

    def of(self, content: bytes) -> list[Value | None]:
        """The value of each path, None where it finds nothing. Raises `DocumentRefused`, `DocumentTooLarge`."""
        return self.of_tree(parse_document(content, self._limits))

    def of_tree(self, tree: Any) -> list[Value | None]:
        """The same of a document that is parsed."""
        return self._finding.values(tree)


class FamilyCompletion:
    """Completes what was read by earlier revisions of a family. May be used by several threads at a time."""

    def __init__(self, family: Family, limits: DocumentLimits | None = None) -> None:
        self.family = family
        self._expressions = {path.expression for path in family.paths}
        self._values = PathValues(family.paths, family.prefixes, limits)

    def complete(self, attributes: Mapping[str, Value], content: bytes | None) -> dict[str, Value] | None:
        """The attributes of a document with the values of all paths; None if they are complete already.

        Raises `DocumentRefused` and `DocumentTooLarge` for what a family with all these paths refuses.
        """
        family = self.family
        if content is None or attributes.get(FAMILY) != family.name:  # without content, it was withdrawn
            return None
        if attributes.get(REVISION) == family.revision and self._expressions <= attributes.keys():
            return None
        completed = dict(attributes)
        for path, value in zip(family.paths, self._values.of(content), strict=True):
            if value is None:
                completed.pop(path.expression, None)
            else:
                completed[path.expression] = value
        return None if completed == attributes else completed
