"""Schemas by chance, and documents that keep to them: the generator has a model of its own for both."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.documents.schemas import schema

Texts = Callable[[random.Random], str]

SIMPLE: dict[str, tuple[str, Texts]] = {
    "xs:int": ("int", lambda chance: str(chance.randrange(-99, 99))),
    "xs:decimal": ("float", lambda chance: f"{chance.randrange(99)}.{chance.randrange(99)}"),
    "xs:boolean": ("bool", lambda chance: chance.choice(["true", "false", "0", "1"])),
    "xs:string": ("string", lambda chance: chance.choice(["", "x", "7", "true", "1.5"])),
}


@dataclass
class DrawnPart:
    """An element by its name, or a group of parts."""

    kind: str  # element, sequence, choice
    least: int
    most: int | None
    name: str = ""
    parts: list[DrawnPart] = field(default_factory=list)


@dataclass
class DrawnType:
    content: DrawnPart | None
    attributes: dict[str, tuple[str, bool]]  # by name: a simple type, whether it is required
    base: str | None = None


class DrawnSchema:
    """Names have the same type wherever they are, as schemas demand it; types may have themselves."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.simple = {name: chance.choice(list(SIMPLE)) for name in "abcde"}
        self.complex = {"p": "P", "q": "Q", "r": "R"}
        self.types = {name: self.type(name) for name in "PQR"}
        self.head = chance.random() < 0.5  # whether a stands for a substitution group
        if chance.random() < 0.4:
            self.types["Q"].base = "P"

    def type(self, name: str) -> DrawnType:
        chance = self.chance
        attributes = {
            f"i{one}{name}": (chance.choice(list(SIMPLE)), chance.random() < 0.5)
            for one in range(chance.randrange(3))
        }
        return DrawnType(self.part(0), attributes)

    def part(self, depth: int) -> DrawnPart:
        chance = self.chance
        least, most = chance.choice([(0, 1), (1, 1), (1, 1), (0, None), (1, 3), (2, 2)])
        if depth < 3 and (depth == 0 or chance.random() < 0.4):
            kind = chance.choice(["sequence", "choice"])
            if depth == 0:
                least, most = 1, 1
            return DrawnPart(
                kind, least, most, parts=[self.part(depth + 1) for _ in range(chance.randint(1, 3))]
            )
        name = chance.choice("abcdepqr")
        return DrawnPart("element", 0 if name in self.complex else least, most, name)

    # As a schema

    def written(self) -> str:
        types = "".join(self.written_type(name, one) for name, one in self.types.items())
        groups = (
            "<xs:element name='h' type='xs:int'/><xs:element name='m' type='xs:int' substitutionGroup='h'/>"
        )
        return schema(f"<xs:element name='root' type='P'/>{groups if self.head else ''}{types}")

    def written_type(self, name: str, one: DrawnType) -> str:
        inner = "" if one.content is None else self.written_part(one.content)
        inner += "".join(
            f"<xs:attribute name='{key}' type='{type}' use='{'required' if required else 'optional'}'/>"
            for key, (type, required) in one.attributes.items()
        )
        if one.base:
            inner = (
                f"<xs:complexContent><xs:extension base='{one.base}'>{inner}</xs:extension></xs:complexContent>"
            )
        return f"<xs:complexType name='{name}'>{inner}</xs:complexType>"

    def written_part(self, part: DrawnPart) -> str:
        most = "unbounded" if part.most is None else part.most
        occurs = f"minOccurs='{part.least}' maxOccurs='{most}'"
        if part.kind != "element":
            inner = "".join(map(self.written_part, part.parts))
            return f"<xs:{part.kind} {occurs}>{inner}</xs:{part.kind}>"
        if self.head and part.name == "a":
            return f"<xs:element ref='h' {occurs}/>"
        type = self.complex.get(part.name) or self.simple[part.name]
        return f"<xs:element name='{part.name}' type='{type}' {occurs}/>"

    # As documents

    def document(self, chance: random.Random) -> str:
        return self.element("root", "P", 0, chance)

    def element(self, name: str, type: str, depth: int, chance: random.Random) -> str:
        hint = ""
        if type == "P" and self.types["Q"].base == "P" and chance.random() < 0.2:
            type, hint = "Q", " xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='Q'"
        types = [self.types[type]]
        if (base := types[0].base) is not None:
            types.insert(0, self.types[base])
        attributes = "".join(
            f" {key}='{SIMPLE[of][1](chance)}'"
            for one in types
            for key, (of, required) in one.attributes.items()
            if required or chance.random() < 0.6
        )
        inner = "".join(self.instance(one.content, depth, chance) for one in types if one.content is not None)
        return f"<{name}{hint}{attributes}>{inner}</{name}>"

    def instance(self, part: DrawnPart, depth: int, chance: random.Random) -> str:
        more = 0 if depth > 4 else chance.choice([0, 0, 1, 2])
        times = part.least + more if part.most is None else min(part.most, part.least + more)
        return "".join(self.once(part, depth, chance) for _ in range(times))

    def once(self, part: DrawnPart, depth: int, chance: random.Random) -> str:
        if part.kind == "sequence":
            return "".join(self.instance(one, depth, chance) for one in part.parts)
        if part.kind == "choice":
            return self.instance(chance.choice(part.parts), depth, chance)
        if part.name in self.complex:
            return self.element(part.name, self.complex[part.name], depth + 1, chance)
        name, type = part.name, self.simple[part.name]
        if self.head and name == "a":
            name, type = chance.choice("hm"), "xs:int"
        return f"<{name}>{SIMPLE[type][1](chance)}</{name}>"


def path_to(node: Any, chance: random.Random) -> str:
    """A path that selects this node of a document, and perhaps others."""
    steps: list[str] = []
    for one in [node, *node.iterancestors()]:
        if steps and steps[0] and chance.random() < 0.1 and one.getparent() is not None:
            steps.insert(0, "")
            continue
        place = list(one.itersiblings(one.tag, preceding=True))
        position = f"[{len(place) + 1}]" if chance.random() < 0.3 else ""
        steps.insert(0, (one.tag if chance.random() < 0.9 or position else "*") + position)
    if node.attrib and chance.random() < 0.5:
        steps.append(f"@{chance.choice([one for one in node.attrib if '}' not in one] or ['*'])}")
    return "/" + "/".join(steps)


def drawn_path(chance: random.Random) -> str:
    """An XPath over the names of drawn schemas; many of them select nothing."""
    path = chance.choice(["/root", "/root", "/*", ""])
    for _ in range(chance.randint(1, 4)):
        step = chance.choice([*"abcdehmpqr", "*", "p", "q", "r"])
        axis = chance.choice(["/"] * 6 + ["//"])
        if chance.random() < 0.1:
            step = chance.choice(["..", "following-sibling::*", "ancestor::*", "self::*", "descendant::*"])
        elif chance.random() < 0.3:
            step += chance.choice(["[1]", "[last()]", "[a]", "[p/q]", "[@*]", "[self::p or self::q]", "[2]"])
        path += axis + step
    if chance.random() < 0.3:
        path += chance.choice(["/@i0P", "/@i1Q", "//@i0P", "/@*", "/text()", "/@i0R"])
    if chance.random() < 0.1:
        path = f"({path})[1]"
    return path
