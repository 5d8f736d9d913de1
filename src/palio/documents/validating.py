"""Whether a document keeps to its schema, asked by several threads at a time.

libxml2 decides without Python's lock, so threads do not wait for each other. What is wrong is gathered by
asking a second copy, under a lock: lxml keeps one log for each copy, and no publisher is to read what is wrong
with the document of another. That copy is made when the first document is not valid.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from palio.documents.errors import DocumentRefused
from palio.documents.libxml import etree_module
from palio.documents.schemas import XSD, SchemaSource, compile_schema

_TOLD: Final = 3  # mistakes of one document; who mends these asks again
_TOO_COSTLY: Final = (
    "It takes too long to see whether it keeps to its schema, which has a pattern that is ambiguous."
)


class SchemaValidator:
    """A compiled schema."""

    def __init__(self, sources: tuple[SchemaSource, ...]) -> None:
        """Compiles in this process; sources from outside are tried in another one before (`compiling`)."""
        self._sources = sources
        self._schema = compile_schema(sources)
        self._telling: Any = None
        self._lock = threading.Lock()

    def require_valid(self, tree: Any) -> None:
        """Raises `DocumentRefused` with the first mistakes, unless the document keeps to the schema."""
        if not self._holds(self._schema, tree):
            with self._lock:
                self._telling = self._telling or compile_schema(self._sources)
                self._holds(self._telling, tree)
                mistakes = list(self._telling.error_log)[:_TOLD]
            said = " ".join(f"{one.message.replace(XSD, 'xs:')}" for one in mistakes)
            line = mistakes[0].line if mistakes else 0
            raise DocumentRefused(said or "It does not keep to its schema.", line or None)

    def _holds(self, schema: Any, tree: Any) -> bool:
        try:
            return bool(schema.validate(tree))
        except (
            etree_module().XMLSchemaValidateError
        ):  # libxml2 gives up a regular expression after 10 million steps
            raise DocumentRefused(_TOO_COSTLY) from None
