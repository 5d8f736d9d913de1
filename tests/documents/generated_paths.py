"""Documents and paths to try them on, of a seed: XPath texts in any spelling, from a grammar of their own."""

from __future__ import annotations

import random

PREFIXES = {"p": "urn:p", "q": "urn:q", "r": "urn:q"}
NAMES = ("a", "b", "c")
VALUES = ("1", "2", "x", "x y", "")
_DOWN_AND_UP = ("self", "descendant", "descendant-or-self", "parent", "ancestor", "ancestor-or-self")
ALL_AXES = (*_DOWN_AND_UP, "following-sibling", "preceding-sibling", "following", "preceding")


class DocumentMaker:
    """Small documents with namespaces, attributes, mixed content, comments and instructions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.left = self.random.randint(1, 30)

    def document(self) -> str:
        root = self.random.choice(("a", "a", "p:a"))
        within = "".join(self.element(1) for _ in range(self.random.randint(0, 4)))
        return f"<!--x--><{root} xmlns:p='urn:p' xmlns:q='urn:q' x='1'>{within}</{root}>"

    def element(self, depth: int) -> str:
        self.left -= 1
        choice = self.random.choice
        name = choice((*NAMES, *NAMES, "p:a", "q:b"))
        said = "".join(f' {key}="{choice(VALUES)}"' for key in ("x", "y", "p:x") if self.random.random() < 0.3)
        within = self.text()
        while self.left > 0 and depth < 7 and self.random.random() < 0.6:
            within += self.element(depth + 1) + self.text()
        return f"<{name}{said}>{within}</{name}>" if within else f"<{name}{said}/>"

    def text(self) -> str:
        one = ("", "", "", "1", "2", "x", " ", "x y", "<![CDATA[x]]>", "&lt;", "<!--x-->", "<?t 1?>")
        return "".join(self.random.choice(one) for _ in range(self.random.randint(0, 3)))


class PathMaker:
    """Absolute location paths, and expressions that are made of them.

    Without `axes` there are children, attributes and what `//` finds; predicates compare with what is there.
    """

    def __init__(self, seed: int, axes: tuple[str, ...] = ALL_AXES) -> None:
        self.random = random.Random(seed)
        self.axes = axes

    def path(self) -> str:
        return self.random.choice(("/", "/", "//")) + self.relative(2)

    def relative(self, depth: int) -> str:
        text = self.step(depth)
        while self.random.random() < 0.55:
            text += self.random.choice(("/", "/", " / ", "//")) + self.step(depth)
        return text

    def step(self, depth: int) -> str:
        choice = self.random.choice
        if self.random.random() < 0.1:
            return choice((".", ".", ".."))
        named = choice((*NAMES, *NAMES, "*", "p:a", "p:*", "q:b", "r:b"))
        text = choice(("", "", "child::")) + named
        if self.random.random() < 0.3:
            kinds = (
                "@x",
                "attribute::y",
                "@*",
                "@p:x",
                "text()",
                "comment()",
                "node()",
                "processing-instruction()",
            )
            text = choice(kinds)
        elif self.axes and self.random.random() < 0.3:
            text = f"{choice(self.axes)}::{choice((named, 'node()', 'text()'))}"
        while self.random.random() < 0.35:
            text += f"[{choice(('', ' '))}{self.predicate(depth)}]"
        return text

    def predicate(self, depth: int) -> str:
        choice = self.random.choice
        if depth == 0 or self.random.random() < 0.4:
            simple = ("1", "2", "1.0", "last()", "position()=2", "x", "@x", "@y = '1'", ". = 'x'", "'x'=b")
            return choice((*simple, "b='1'", "text() = 'x'", "p:a", "@*", "*='1'", "@x='1' and b", "'' = @x"))
        one = choice((self.condition, self.condition, self.relative, self.joined))
        return one(depth - 1)

    def joined(self, depth: int) -> str:
        return f"{self.condition(depth)}{self.random.choice((' and ', ' or '))}{self.condition(depth)}"

    def condition(self, depth: int) -> str:
        choice = self.random.choice
        path, value = self.relative(depth), choice(("'1'", '"x"', "''", "2", ".5"))
        operator = choice(("=", "=", " != ", "<", " >= "))
        made = (
            f"{path}{operator}{value}",
            f"{value} {operator} {path}",
            path,
            "position() > 1",
            ".5 > position()",
        )
        return choice((*made, f"{choice(('count', 'string', 'not', 'name'))}({path})"))

    def expression(self, depth: int = 2) -> str:
        choice, path = self.random.choice, self.path
        if depth == 0 or self.random.random() < 0.5:
            basic = (
                path(),
                path(),
                f"{path()} | {path()}",
                f"({path()})[{choice(('1', 'last()', '@x'))}]",
                f"({path()} | {path()})/{self.relative(1)}",
                f"{choice(('count', 'sum', 'name', 'string', 'boolean'))}({path()})",
                choice(("1", ".5", "'x'", "true()")),
            )
            return choice(basic)
        inner = self.expression(depth - 1)
        operator = choice(("or", "and", "=", "!=", "<", "+", "-", "*", "div", "mod"))
        function = choice(("string", "number", "boolean", "not", "normalize-space"))
        made = (
            f"{inner} {operator} {self.expression(depth - 1)}",
            f"({inner} )",
            f"- {inner}",
            f"{function} ({inner})",
        )
        return choice(made)
