"""From the text of an XPath 1.0 expression to its tree: a reader by precedence, in one pass.

The types of an expression are known while it is read, so what can never be evaluated (steps from a string, a
union of numbers, a function with the wrong operands) is refused here, with its place. What is read has bounds:
an expression has at most so many operators and so much nesting, and so every walk over its tree is shallow.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from palio.documents.xpath.errors import UnknownPrefix, XPathSyntaxError
from palio.documents.xpath.expression import (
    ANY_NODE,
    AXES,
    FUNCTIONS,
    NODE_TYPES,
    NODES,
    PARENT,
    PRECEDENCE,
    SEARCH,
    SELF,
    FilteredPath,
    LocationPath,
    LocationStep,
    NameTest,
    NodeTest,
    XPathCall,
    XPathExpression,
    XPathNegation,
    XPathNumber,
    XPathString,
    comparison_in_order,
    predicate_in_order,
    steps_in_order,
    type_of,
)
from palio.documents.xpath.tokens import XPathWord, tokens

# Both are far more than people write, and keep each recursion over a tree within Python's.
MAX_OPERATORS = 256
MAX_DEPTH = 64

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
_SLASHES = ("/", "//")
_ABBREVIATED = {".": SELF, "..": PARENT}
_NAMED_AXES = ("attribute", "namespace")


def read_tree(text: str, prefixes: Mapping[str, str]) -> XPathExpression:
    """The tree of an expression. Raises `XPathSyntaxError`, or `UnknownPrefix`, which is one."""
    return _XPathReader(text, prefixes).whole()


class _XPathReader:
    def __init__(self, text: str, prefixes: Mapping[str, str]) -> None:
        self.text = text
        self.prefixes = {**prefixes, "xml": XML_NAMESPACE}
        self.words = tokens(text)
        self.at = 0
        self.operators = 0
        self.depth = 0

    # Words

    @property
    def word(self) -> XPathWord:
        return self.words[self.at]

    def take(self) -> XPathWord:
        word = self.words[self.at]
        self.at += 1
        return word

    def sees(self, *texts: str) -> bool:
        return self.word.text in texts and self.word.kind in ("symbol", "operator")

    def expect(self, text: str, opened: XPathWord) -> None:
        if not self.sees(text):
            problem = (
                f"`{text}` is missing for `{opened.text}` in column {opened.column}; there is {self.seen()}."
            )
            raise self.wrong(problem, f"Write `{text}` here.")
        self.take()

    def seen(self) -> str:
        return f"`{self.word.text[:40]}`" if self.word.text else "the end"

    def wrong(
        self, problem: str, suggestion: str | None = None, word: XPathWord | None = None
    ) -> XPathSyntaxError:
        return XPathSyntaxError(self.text, (word or self.word).column, problem, suggestion)

    # Expressions

    def whole(self) -> XPathExpression:
        found = self.expression()
        if self.word.kind != "end":
            raise self.wrong(f"{self.seen()} stands where the expression is at its end.", "Leave it out.")
        return found

    def expression(self, least: int = 1) -> XPathExpression:
        """Operands and the operators between them that bind at least so tightly."""
        left = self.operand()
        while self.word.kind == "operator" and PRECEDENCE[self.word.text] >= least:
            operator = self.take()
            self.count(operator)
            right = self.expression(PRECEDENCE[operator.text] + 1)
            if operator.text == "|" and not type_of(left) == type_of(right) == NODES:
                raise self.wrong("`|` joins two sets of nodes.", "Use `or` between conditions.", operator)
            left = comparison_in_order(operator.text, left, right)
        return left

    def operand(self) -> XPathExpression:
        if self.sees("-"):
            self.count(self.take())
            # The negative binds more tightly than `*`, less so than `|`.
            operand = self.expression(PRECEDENCE["|"])
            return XPathNegation(operand)
        return self.path()

    def count(self, operator: XPathWord) -> None:
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise self.wrong(f"there are more than {MAX_OPERATORS} operators.", "Use fewer.", operator)

    def nested(self, opened: XPathWord) -> XPathExpression:
        """What is within parentheses or brackets."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.wrong(f"this is nested more than {MAX_DEPTH} deep.", "Nest less.", opened)
        found = self.expression()
        self.depth -= 1
        return found

    # Paths

    def path(self) -> XPathExpression:
        if self.begins_primary():
            return self.filtered()
        if not self.sees(*_SLASHES):
            return LocationPath(False, self.steps())
        if self.word.text == "/" and not self.begins_step(self.at + 1):
            self.take()
            return LocationPath(True, ())
        return LocationPath(True, self.steps(self.slash()))

    def slash(self) -> list[LocationStep]:
        return [SEARCH] if self.take().text == "//" else []

    def steps(self, before: Iterable[LocationStep] = ()) -> tuple[LocationStep, ...]:
        found = [*before, self.step()]
        while self.sees(*_SLASHES):
            found += self.slash()
            found.append(self.step())
        return steps_in_order(found)

    def begins_step(self, at: int) -> bool:
        word = self.words[at]
        return word.kind == "name" or (word.kind == "symbol" and word.text in (".", "..", "@", "*"))

    def begins_primary(self) -> bool:
        """Whether this is a string, a number, parentheses or a function, and no step."""
        word, following = self.word, self.words[min(self.at + 1, len(self.words) - 1)]
        if word.kind in ("string", "number") or self.sees("("):
            return True
        return word.kind == "name" and following.text == "(" and word.text not in NODE_TYPES

    def filtered(self) -> XPathExpression:
        first = self.word
        found = self.primary()
        predicates = self.predicates()
        more = self.sees(*_SLASHES)
        if (predicates or more) and type_of(found) != NODES:
            raise self.wrong(f"`{first.text[:40]}` gives no nodes, and only nodes have steps and predicates.")
        if predicates:
            if isinstance(found, FilteredPath) and not found.steps:
                found = FilteredPath(found.nodes, found.predicates + predicates, ())
            else:
                found = FilteredPath(found, predicates, ())
        return self.prolonged(found, self.steps(self.slash())) if more else found

    def prolonged(self, nodes: XPathExpression, steps: tuple[LocationStep, ...]) -> XPathExpression:
        """Steps from what stands in parentheses, which are not needed around a path."""
        if isinstance(nodes, LocationPath):
            return LocationPath(nodes.absolute, steps_in_order([*nodes.steps, *steps]))
        if isinstance(nodes, FilteredPath):
            return FilteredPath(nodes.nodes, nodes.predicates, steps_in_order([*nodes.steps, *steps]))
        return FilteredPath(nodes, (), steps) if steps else nodes

    def primary(self) -> XPathExpression:
        word = self.take()
        if word.kind == "string":
            return XPathString(word.text[1:-1])
        if word.kind == "number":
            value = float(word.text)
            if value == float("inf"):
                raise self.wrong("this number is larger than any that there is.", word=word)
            return XPathNumber(value)
        if word.text == "(":
            found = self.nested(word)
            self.expect(")", word)
            return found
        return self.call(word)

    def call(self, name: XPathWord) -> XPathCall:
        signature = FUNCTIONS.get(name.text)
        if signature is None:
            problem = f"there is no function `{name.text[:40]}`."
            raise self.wrong(problem, _nearest(name.text, FUNCTIONS), name)
        opened = self.take()
        operands: list[XPathExpression] = []
        if not self.sees(")"):
            operands.append(self.nested(opened))
            while self.sees(","):
                self.take()
                operands.append(self.nested(opened))
        self.expect(")", opened)
        most = None if signature.repeated else len(signature.takes)
        if len(operands) < signature.least or (most is not None and len(operands) > most):
            many = signature.least if most is None else f"{signature.least} to {most}"
            number = most if most == signature.least else f"{many}{' or more' if most is None else ''}"
            problem = f"`{name.text}` takes {number} operands, not {len(operands)}."
            raise self.wrong(problem, word=name)
        for operand, wanted in zip(operands, signature.takes, strict=False):
            if wanted is not None and type_of(operand) != wanted:
                problem = f"`{name.text}` takes a set of nodes, and is given a {type_of(operand)}."
                raise self.wrong(problem, "Give it a path.", name)
        return XPathCall(name.text, tuple(operands))

    # Steps

    def step(self) -> LocationStep:
        word = self.word
        if word.text in _ABBREVIATED and word.kind == "symbol":
            self.take()
            if self.sees("["):
                problem = f"`{word.text}` takes no predicate."
                raise self.wrong(problem, f"Write `{_ABBREVIATED[word.text].axis}::node()[…]`.")
            return _ABBREVIATED[word.text]
        axis = self.axis()
        return LocationStep(axis, self.test(axis), self.predicates())

    def axis(self) -> str:
        if self.sees("@"):
            self.take()
            return "attribute"
        if self.words[min(self.at + 1, len(self.words) - 1)].text != "::":
            return "child"
        word = self.take()
        if word.text not in AXES:
            raise self.wrong(f"there is no axis `{word.text[:40]}`.", _nearest(word.text, AXES), word)
        self.take()
        return word.text

    def test(self, axis: str) -> NameTest | NodeTest:
        word = self.take()
        if word.text == "*" and word.kind == "symbol":
            return NameTest(None, None)
        if word.kind != "name":
            self.at -= 1
            raise self.wrong(
                f"{self.seen()} stands where a name is expected.", "Write a name, `*` or `node()`."
            )
        if not self.sees("("):
            return self.name(word, axis)
        opened = self.take()
        if word.text not in NODE_TYPES:
            problem = (
                f"`{word.text[:40]}` is no type of nodes, and functions do not stand behind an axis or a `/`."
            )
            raise self.wrong(problem, _nearest(word.text, NODE_TYPES), word)
        target = None
        if word.text == "processing-instruction" and self.word.kind == "string":
            target = self.take().text[1:-1]
        self.expect(")", opened)
        return NodeTest(word.text, target) if word.text != "node" else ANY_NODE

    def name(self, word: XPathWord, axis: str) -> NameTest:
        prefix, colon, local = word.text.rpartition(":")
        if not colon:
            default = "" if axis in _NAMED_AXES else self.prefixes.get("", "")
            return NameTest(default, local)
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            known = tuple(sorted(one for one in self.prefixes if one))
            problem = f"the prefix `{prefix[:40]}` is bound to no namespace."
            suggestion = f"There are {', '.join(known)}."
            raise UnknownPrefix(self.text, word.column, problem, suggestion, prefix[:40], known)
        return NameTest(namespace, None if local == "*" else local)

    def predicates(self) -> tuple[XPathExpression, ...]:
        found = []
        while self.sees("["):
            opened = self.take()
            found.append(predicate_in_order(self.nested(opened)))
            self.expect("]", opened)
        return tuple(found)


def _nearest(word: str, names: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(word[:40], sorted(names), 1)
    return f"Did you mean `{near[0]}`?" if near else None
