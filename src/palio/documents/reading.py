"""A document read once: parsed, found to be one of its family, valid, and turned into attributes.

1. Whatever is wrong with a document, it is refused with a `DocumentRefused` or a `DocumentTooLarge`, and what
   is read is right: each attribute is a value of the kind that its path has, and a list exactly where that has
   many.
2. The attributes are those of the family: what it is called, its key and its revision, and for each path that
   finds something one with the canonical text of the path as its name.
3. The key is what the key paths find, joined by `/`; each finds one text that is not empty. White space counts
   as a schema's token has it, and `%` and `/` are percent-encoded, so two keys are equal only if all parts are.
4. The payload is the document, byte for byte.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from palio.documents.conversion import SPACE, refused
from palio.documents.errors import DocumentRefused
from palio.documents.family import Family, FamilyPath
from palio.documents.finding import PathFinding
from palio.documents.parsing import DocumentLimits, parse_document
from palio.documents.reserved import FAMILY, KEY, REVISION
from palio.documents.schemas import read_sources
from palio.documents.validating import SchemaValidator
from palio.documents.xpath import read_xpath
from palio.model.values import Value

# It is part of addresses and of keys in stores; the longest that are in use are web addresses.
MAX_KEY_CHARACTERS: Final = 1_024


class ReadDocument(msgspec.Struct, frozen=True):
    """A document and what is known of it."""

    family: str
    key: str
    attributes: dict[str, Value]
    payload: bytes


class DocumentReader:
    """Reads documents of one family. One may be used by several threads at a time.

    Its schema is compiled in this process: that it can be was tried when the family was made.
    """

    def __init__(
        self, family: Family, limits: DocumentLimits | None = None, validator: SchemaValidator | None = None
    ) -> None:
        """A `validator` is that of the family's schemas, if there is one already.

        Raises `SchemaRefused` and `XPathSyntaxError` for what no family has that was made by `making`.
        """
        self.family = family
        self.limits = limits or DocumentLimits()
        if validator is None and family.schemas:
            validator = SchemaValidator(read_sources(family.schemas))
        self.validator = validator
        # All that a part of the key finds is asked for, so that it can be said how many there are.
        keys = [FamilyPath(one, many=True) for one in family.key]
        self._finding = PathFinding(
            [(read_xpath(one.expression, family.prefixes), one) for one in (*keys, *family.paths)]
        )

    @property
    def alone(self) -> tuple[str, ...]:
        """Paths that are beyond the walk, which libxml2 evaluates one by one."""
        return self._finding.alone

    def read(self, content: bytes) -> ReadDocument:
        """Raises `DocumentRefused` and `DocumentTooLarge`."""
        return self.read_tree(parse_document(content, self.limits), content)

    def read_tree(self, tree: Any, content: bytes) -> ReadDocument:
        """The same for a document that is parsed already, which was needed to know its family."""
        family = self.family
        namespace, root = root_name(tree)
        if (namespace, root) != (family.namespace, family.root):
            meant = _qualified(family.namespace, family.root)
            there = _qualified(namespace, root)
            said = f"Documents of the family {family.name!r} begin with {meant}, not {there}."
            raise DocumentRefused(said, tree.getroot().sourceline)
        if self.validator is not None:
            self.validator.require_valid(tree)
        found = self._finding.values(tree)
        parts = zip(family.key, found, strict=False)
        key = "/".join([_key_part(expression, value) for expression, value in parts])
        if len(key) > MAX_KEY_CHARACTERS:
            raise DocumentRefused(f"Its key has {len(key):,} characters; the limit is {MAX_KEY_CHARACTERS:,}.")
        attributes: dict[str, Value] = {FAMILY: family.name, KEY: key, REVISION: family.revision}
        for path, value in zip(family.paths, found[len(family.key) :], strict=True):
            if value is not None:
                attributes[path.expression] = value
        return ReadDocument(family.name, key, attributes, content)


def _key_part(expression: str, found: Value | None) -> str:
    texts = found if isinstance(found, tuple) else ()
    if len(texts) != 1:
        many = "nothing" if not texts else f"{len(texts):,} nodes"
        raise refused(None, expression, f"is a part of the key, and finds {many}")
    part = " ".join(str(texts[0]).strip(SPACE).split())
    if not part:
        raise refused(None, expression, "is a part of the key, and finds a text that is empty")
    return part.replace("%", "%25").replace("/", "%2F")


def root_name(tree: Any) -> tuple[str, str]:
    """The namespace (empty if there is none) and the name of a document's root: what tells its family."""
    namespace, _, local = str(tree.getroot().tag).rpartition("}")
    return namespace[1:], local


def _qualified(namespace: str, local: str) -> str:
    return f"<{local[:100]}> in the namespace {namespace[:100]!r}" if namespace else f"<{local[:100]}>"
