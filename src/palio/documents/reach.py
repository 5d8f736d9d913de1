"""What the steps of an XPath can come to in valid documents, how often, and what it can be held as.

Nodes stand for all nodes that a schema allows in one place (`SchemaNode`). An `Amount` says how many of them a
document may have, as far as it matters: none, one, or several; and which kinds of values they have.

1. A step is evaluated backwards: how much each child is worth is known before how much the children of an
   element are worth. Of a sequence the worth is the sum, of a choice the largest, and what may repeat counts
   several times. So `/a/*` is one where `a` has one of several children, whichever it is.
2. Searching (`//`) is the least solution of what each element is worth with all that is within it.
3. What cannot be followed is several texts of any kind: what is within `xs:any`, all axes that go sideways, up
   further than the parent, or along the document; and a schema in which too much could be reached.
4. A position picks one at most for each node that is looked from. Nothing else in a predicate makes it less.
5. All that is looked at counts as effort, since no schema and no path says beforehand how much that will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from palio.documents.simple_types import joined_kind
from palio.documents.structure import (
    ANYTHING,
    AttributeDeclaration,
    ContentType,
    ElementDeclaration,
    ElementParticle,
    SchemaParticle,
    SchemaStructure,
    WildcardParticle,
)
from palio.documents.xpath.expression import ANY_NODE, LocationStep, NameTest, NodeTest, asks_position
from palio.model.effort import spend

XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
# Elements in one search; UBL's invoice has some 3,000. What is larger is not followed (3).
MOST_SEARCHED: Final = 20_000
# Steps that are counted for each particle, attribute or node that is looked at (`model.effort`).
VISIT: Final = 10

_OF_INSTANCES: Final = ("type", "nil", "schemaLocation", "noNamespaceSchemaLocation")


class Amount(NamedTuple):
    """None, one or several (0, 1, 2), and the kinds of their values."""

    number: int
    kinds: frozenset[str]


NONE: Final = Amount(0, frozenset())
SEVERAL_TEXTS: Final = Amount(2, frozenset(("string",)))


class SchemaNode(NamedTuple):
    """Nodes of one sort: `document`, `element`, `attribute`, `text`, `comment`, `instruction` or `namespace`.

    `declaration` is that of an element or attribute, none for any element; `kind` that of a text; `owner` the
    element that an attribute or text belongs to.
    """

    sort: str
    declaration: ElementDeclaration | AttributeDeclaration | None = None
    kind: str = "string"
    owner: ElementDeclaration | None = None


DOCUMENT_NODE: Final = SchemaNode("document")
ANY_ELEMENT: Final = SchemaNode("element")
_COMMENT, _INSTRUCTION = SchemaNode("comment"), SchemaNode("instruction")

Worth = Callable[[SchemaNode], Amount]


def both(one: Amount, other: Amount) -> Amount:
    """What two things are worth together."""
    return Amount(min(2, one.number + other.number), one.kinds | other.kinds)


def either(one: Amount, other: Amount) -> Amount:
    """What two things are worth of which there is one only."""
    return Amount(max(one.number, other.number), one.kinds | other.kinds)


def repeated(one: Amount, many: bool = True) -> Amount:
    return Amount(2, one.kinds) if many and one.number else one


class SchemaReach:
    """Follows steps through a schema, from the document with one root element."""

    def __init__(self, structure: SchemaStructure, root: ElementDeclaration) -> None:
        self._structure, self._root = structure, root
        self._parents: dict[ElementDeclaration, list[SchemaNode]] | None = None

    def kind(self, node: SchemaNode) -> str:
        """What the value of a node can be held as."""
        match node.declaration:
            case AttributeDeclaration(kind=kind):
                return kind
            case ElementDeclaration() as element:
                types = self._structure.possible_types(element)
                spend(VISIT * len(types))
                return joined_kind(type.kind or "string" for type in types)
        return node.kind

    def next(self, nodes: Iterable[SchemaNode], step: LocationStep) -> set[SchemaNode]:
        """The nodes that a step can come to; its predicates are not looked at."""
        found: set[SchemaNode] = set()

        def note(node: SchemaNode) -> Amount:
            found.add(node)
            return Amount(1, frozenset())

        self.worths(list(nodes), step, note)
        return found

    def worths(self, nodes: list[SchemaNode], step: LocationStep, worth: Worth) -> dict[SchemaNode, Amount]:
        """How much each node is worth if what a step comes to from there is worth so much."""
        single = any(map(asks_position, step.predicates))
        if step.axis in ("descendant", "descendant-or-self"):
            return self._searched(nodes, step, worth, single)
        return {node: self._worth(node, step, worth, single) for node in nodes}

    def passes(self, node: SchemaNode, test: NameTest | NodeTest, axis: str = "child") -> bool:
        """Whether a node passes the test of a step along that axis."""
        if isinstance(test, NodeTest):
            if test.kind == "node":
                return True
            return node.sort == ("instruction" if test.kind == "processing-instruction" else test.kind)
        if node.sort != ("attribute" if axis == "attribute" else "element"):
            return False
        if node.declaration is None:
            return True
        return _named(test, node.declaration.namespace, node.declaration.name)

    # One step, from one node

    def _worth(self, node: SchemaNode, step: LocationStep, worth: Worth, single: bool) -> Amount:
        within = _Within(self._structure, step.test, worth, single)
        spend(VISIT)
        match step.axis:
            case "self":
                return worth(node) if self.passes(node, step.test) else NONE
            case "child":
                return self._children(node, within)
            case "attribute":
                return within.attributes(node) if node.sort == "element" else NONE
            case "parent":
                above = self._above(node)
                spend(VISIT * len(above))
                return within.one_of(one for one in above if self.passes(one, step.test))
            case "namespace":
                return within.some([SchemaNode("namespace")]) if node.sort == "element" else NONE
            case _:
                around = self._around(node, step.axis)
                spend(VISIT * len(around))
                return within.some(one for one in around if self.passes(one, step.test))

    def _children(self, node: SchemaNode, within: _Within) -> Amount:
        if node is DOCUMENT_NODE or node.sort == "document":
            root = SchemaNode("element", self._root)
            beside = within.some(one for one in (_COMMENT, _INSTRUCTION) if self.passes(one, within.test))
            return within.together([within.one_of([root] if self.passes(root, within.test) else []), beside])
        return within.children(node) if node.sort == "element" else NONE

    def _above(self, node: SchemaNode) -> list[SchemaNode]:
        """What the parent of a node may be."""
        if node.owner is not None:
            return [SchemaNode("element", node.owner)]
        if node.sort != "element" or not isinstance(node.declaration, ElementDeclaration):
            return [] if node.sort == "document" else [DOCUMENT_NODE, *self._everywhere()]
        if self._parents is None:
            self._parents = self._all_parents()
        root = [DOCUMENT_NODE] if node.declaration is self._root else []
        return root + self._parents.get(node.declaration, [ANY_ELEMENT])

    def _all_parents(self) -> dict[ElementDeclaration, list[SchemaNode]]:
        """Of each element, those that may have it. Whoever finds that too hard leaves nothing half known."""
        found: dict[ElementDeclaration, list[SchemaNode]] = {}
        for parent in self._everywhere():
            for child in self.next([parent], LocationStep("child", NameTest(None, None))):
                if isinstance(child.declaration, ElementDeclaration):
                    found.setdefault(child.declaration, []).append(parent)
        return found

    def _around(self, node: SchemaNode, axis: str) -> list[SchemaNode]:
        """What may be above, beside, before or behind a node: more than there is."""
        found = self._everywhere()
        if axis in ("ancestor", "ancestor-or-self"):
            return [DOCUMENT_NODE, *found, *([node] if axis == "ancestor-or-self" else [])]
        if node.sort == "document":
            return []
        texts = self.next(found, LocationStep("child", NodeTest("text")))
        return [*found, *texts, _COMMENT, _INSTRUCTION]

    def _everywhere(self) -> list[SchemaNode]:
        """Every element that a document may have."""
        return self._elements_within([DOCUMENT_NODE]) or [ANY_ELEMENT]

    # Searching

    def _elements_within(self, nodes: Iterable[SchemaNode]) -> list[SchemaNode] | None:
        """All elements within some nodes, those that are further within last; None if there are too many."""
        step = LocationStep("child", NameTest(None, None))
        found: dict[SchemaNode, None] = {}
        waiting = list(nodes)
        while waiting:
            reached = [one for one in self.next(waiting, step) if one not in found]
            found |= dict.fromkeys(reached)
            if len(found) > MOST_SEARCHED:
                return None
            waiting = reached
        return list(found)

    def _searched(
        self, nodes: list[SchemaNode], step: LocationStep, worth: Worth, single: bool
    ) -> dict[SchemaNode, Amount]:
        elements = self._elements_within(nodes)
        if elements is None:
            return dict.fromkeys(nodes, repeated(either(worth(ANY_ELEMENT), SEVERAL_TEXTS)))
        solved = dict.fromkeys([*nodes, *elements], NONE)
        anywhere = self._searching(step, worth, single, solved)
        changed = True
        while changed:
            changed = False
            spend(VISIT * len(solved))
            for node in reversed(solved):
                within = anywhere.children(node) if node.sort == "element" else self._children(node, anywhere)
                if within != solved[node]:
                    solved[node] = within
                    changed = True
        if step.axis == "descendant":
            return {node: solved[node] for node in nodes}
        add = either if single else both
        own = {node: worth(node) if self.passes(node, step.test) else NONE for node in nodes}
        return {node: add(own[node], solved[node]) for node in nodes}

    def _searching(
        self, step: LocationStep, worth: Worth, single: bool, solved: Mapping[SchemaNode, Amount]
    ) -> _Within:
        add = either if single else both

        def deep(node: SchemaNode) -> Amount:
            own = worth(node) if self.passes(node, step.test) else NONE
            return add(own, solved.get(node, NONE))

        return _Within(self._structure, ANY_NODE, deep, single)


class _Within:
    """What is within an element, added up: with `single`, only one of it counts."""

    def __init__(
        self, structure: SchemaStructure, test: NameTest | NodeTest, worth: Worth, single: bool
    ) -> None:
        self._structure = structure
        self.test = test
        self._worth = worth
        self._add = either if single else both
        self._repeat = (lambda one, many=True: one) if single else repeated

    def together(self, amounts: Iterable[Amount]) -> Amount:
        found = NONE
        for one in amounts:
            found = self._add(found, one)
        return found

    def one_of(self, nodes: Iterable[SchemaNode]) -> Amount:
        """What one of several is worth."""
        found = NONE
        for one in nodes:
            found = either(found, self._worth(one))
        return found

    def some(self, nodes: Iterable[SchemaNode]) -> Amount:
        """What any number of each are worth."""
        return self.together(self._repeat(self._worth(one)) for one in nodes)

    def children(self, node: SchemaNode) -> Amount:
        element = node.declaration
        if not isinstance(element, ElementDeclaration):
            return self._of_type(ANYTHING, None)
        types = self._structure.possible_types(element)
        spend(VISIT * len(types))
        found = NONE
        for type in types:
            found = either(found, self._of_type(type, element))
        return found

    def attributes(self, node: SchemaNode) -> Amount:
        element = node.declaration
        if not isinstance(element, ElementDeclaration):
            return self._some_attributes(None)
        found = NONE
        for type in self._structure.possible_types(element):
            found = either(found, self._attributes_of(type, element))
        return found

    def _of_type(self, type: ContentType, owner: ElementDeclaration | None) -> Amount:
        parts: list[Amount] = []
        if type.content is not None:
            parts.append(self._particle(type.content, {}))
        if type.anything and (isinstance(self.test, NameTest) or self.test.kind == "node"):
            parts.append(self._repeat(self._worth(ANY_ELEMENT)))
        if isinstance(self.test, NodeTest):
            asked = self.test.kind
            if asked in ("node", "text") and (type.kind is not None or type.mixed):
                text = self._worth(SchemaNode("text", None, type.kind or "string", owner))
                parts.append(self._repeat(text, type.mixed))
            if asked in ("node", "comment"):
                parts.append(self._repeat(self._worth(_COMMENT)))
            if asked in ("node", "processing-instruction"):
                parts.append(self._repeat(self._worth(_INSTRUCTION)))
        return self.together(parts)

    def _particle(self, particle: SchemaParticle, known: dict[int, Amount]) -> Amount:
        found = known.get(id(particle))
        if found is None:
            found = known[id(particle)] = self._repeat(self._once(particle, known), particle.many)
        return found

    def _once(self, particle: SchemaParticle, known: dict[int, Amount]) -> Amount:
        match particle:
            case ElementParticle(elements):
                spend(VISIT * len(elements))
                return self.one_of(node for one in elements if self._wanted(node := SchemaNode("element", one)))
            case WildcardParticle(wildcard):
                return self.one_of(self._let_in(wildcard))
            case _:
                spend(VISIT * len(particle.parts))
                parts = [self._particle(one, known) for one in particle.parts]
                if not particle.choice:
                    return self.together(parts)
                found = NONE
                for one in parts:
                    found = either(found, one)
                return found

    def _wanted(self, node: SchemaNode) -> bool:
        if isinstance(self.test, NodeTest):
            return self.test.kind == "node"
        declaration = node.declaration
        return declaration is None or _named(self.test, declaration.namespace, declaration.name)

    def _let_in(self, wildcard: Any) -> Iterable[SchemaNode]:
        """The elements that a wildcard lets in, if they are wanted."""
        test = self.test
        if not wildcard.skipped:
            spend(VISIT * len(self._structure.elements()))
            declared = [one for one in self._structure.elements() if wildcard.allows(one.namespace)]
            wanted = [node for one in declared if self._wanted(node := SchemaNode("element", one))]
            yield from wanted
            if wildcard.strict or (wanted and _exact(test)):
                return
        if not self._wanted(ANY_ELEMENT):
            return
        if not isinstance(test, NameTest) or test.namespace is None or wildcard.allows(test.namespace or None):
            yield ANY_ELEMENT

    def _attributes_of(self, type: ContentType, owner: ElementDeclaration) -> Amount:
        if type.anything:
            return self._some_attributes(owner)
        test = self.test
        spend(VISIT * (1 + len(type.attributes)))
        wanted = [
            SchemaNode("attribute", one, owner=owner)
            for one in type.attributes.values()
            if isinstance(test, NodeTest) or _named(test, one.namespace, one.name)
        ]
        if isinstance(test, NodeTest) and test.kind != "node":
            return NONE
        parts = [self._worth(one) for one in wanted]
        if isinstance(test, NameTest) and test.namespace == XSI and test.local in (None, *_OF_INSTANCES):
            parts.append(self._some_attributes(owner))
        parts += [self._let_in_attributes(one, owner, set(type.attributes)) for one in type.wildcards]
        found = self.together(parts)
        if not (isinstance(test, NameTest) and test.namespace is not None):
            # Attributes about the instance may always be there, too: `xsi:type`.
            found = self._add(found, self._some_attributes(owner))
        return found

    def _let_in_attributes(self, wildcard: Any, owner: ElementDeclaration, own: set[Any]) -> Amount:
        test = self.test
        if not isinstance(test, NameTest) or test.local is None or test.namespace is None:
            return self._some_attributes(owner)
        name = (test.namespace or None, test.local)
        if not wildcard.allows(name[0]) or name in own:
            return NONE
        declared = None if wildcard.skipped else self._structure.attribute(name)
        if declared is not None:
            return self._worth(SchemaNode("attribute", declared, owner=owner))
        return NONE if wildcard.strict else self._worth(SchemaNode("attribute", None, owner=owner))

    def _some_attributes(self, owner: ElementDeclaration | None) -> Amount:
        """Attributes of which nothing is known: one for each name."""
        worth = self._worth(SchemaNode("attribute", None, owner=owner))
        return self._repeat(worth, not _exact(self.test))


def _exact(test: NameTest | NodeTest) -> bool:
    return isinstance(test, NameTest) and test.local is not None and test.namespace is not None


def _named(test: NameTest, namespace: str | None, local: str) -> bool:
    if test.local is not None and test.local != local:
        return False
    return test.namespace is None or test.namespace == (namespace or "")
