"""The values of XPath expressions in a document: most by one walk, the rest by libxml2 one by one.

What either way finds is the same: nodes in the order of the document, of which an element stands for the text
within it; or a string, a number or a boolean. What one document can make of many expressions has bounds: a list
has as many elements as one of an attribute, each string is made once, and all strings together are limited.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.libxml import etree_module
from palio.documents.walk import DocumentWalk, TooMuchFound
from palio.documents.xpath import NODES, XPath, write_xpath
from palio.documents.xpath.walkable import walk_paths
from palio.model.values import MAX_LIST_ELEMENTS, MAX_PAYLOAD_BYTES

# Characters of all values of one document: no more than the document itself may have.
MAX_VALUES: Final = MAX_PAYLOAD_BYTES


class Extraction:
    """Expressions that are evaluated together. One may be used by several threads at a time."""

    def __init__(self, paths: Sequence[XPath]) -> None:
        self.paths = tuple(paths)
        walked = {number: walk_paths(path.tree) for number, path in enumerate(paths)}
        together = [(number, one) for number, several in walked.items() for one in several or ()]
        self._walk = DocumentWalk(together) if together else None
        self._alone = [number for number, several in walked.items() if several is None]
        self._local = threading.local()

    @property
    def alone(self) -> tuple[str, ...]:
        """Expressions that libxml2 evaluates one by one."""
        return tuple(self.paths[number].text for number in self._alone)

    def found(self, tree: Any) -> FoundValues:
        """What each expression comes to. Raises `DocumentRefused` and `DocumentTooLarge`."""
        evaluators = self._evaluators()
        strings = FoundValues(evaluators[-1])
        found: dict[int, Any] = {}
        try:
            if self._walk is not None:
                found = self._walk.walk(tree.getroot(), strings.string_of)
        except TooMuchFound as much:
            raise _too_many(self.paths[much.path]) from None
        for number, evaluator in zip(self._alone, evaluators, strict=False):
            found[number] = evaluator(tree)
            if isinstance(found[number], list) and len(found[number]) > MAX_LIST_ELEMENTS:
                raise _too_many(self.paths[number])
        strings.results = [found[number] for number in range(len(self.paths))]
        return strings

    def _evaluators(self) -> list[Any]:
        """Compiled expressions of this thread, since one is for one thread at a time, and `string()`."""
        evaluators: list[Any] | None = getattr(self._local, "evaluators", None)
        if evaluators is None:
            etree = etree_module()
            evaluators = [compiled_xpath(etree, self.paths[number]) for number in self._alone]
            evaluators.append(etree.XPath("string()", smart_strings=False))
            self._local.evaluators = evaluators
        return evaluators


def compiled_xpath(etree: Any, path: XPath) -> Any:
    """An expression as libxml2 evaluates it. It finds one node more than a list can have, and no more."""
    names: dict[str, str] = {}
    text = write_xpath(path.tree, lambda namespace, axis: names.setdefault(namespace, f"n{len(names)}"))
    if path.type == NODES:
        text = f"({text})[position() <= {MAX_LIST_ELEMENTS + 1}]"
    namespaces = {prefix: namespace for namespace, prefix in names.items()}
    return etree.XPath(text, namespaces=namespaces, smart_strings=False)


def _too_many(path: XPath) -> DocumentRefused:
    return DocumentRefused(f"The path {path.text} finds more than {MAX_LIST_ELEMENTS:,} nodes in it.")


class FoundValues:
    """What was found in one document: for each expression a list of nodes, a string, a number or a boolean."""

    def __init__(self, evaluate: Any) -> None:
        self.results: list[Any] = []
        self._evaluate = evaluate
        self._strings: dict[Any, str] = {}
        self._characters = 0

    def string_of(self, node: Any) -> str:
        """The text of an element, or what an attribute or a text is."""
        if type(node) is str:
            return node
        if isinstance(node, tuple):  # the prefix and the name of a namespace
            return str(node[1])
        said = self._strings.get(node)
        if said is None:
            if len(node) == 0:  # also of a comment and of an instruction
                said = node.text or ""
            else:
                said = str(self._evaluate(node))
                self.count(said)
            self._strings[node] = said
        return said

    def count(self, text: str) -> None:
        """Raises `DocumentTooLarge` if there is more to hold than all values together may be."""
        self._characters += len(text)
        if self._characters > MAX_VALUES:
            raise DocumentTooLarge("values", MAX_VALUES)
