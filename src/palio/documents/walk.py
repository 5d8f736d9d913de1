"""All paths of a family in one walk over a document.

The paths are one tree of steps, in which equal beginnings are shared: a node of it is a *state*, and a state
has come to an element if the steps up to it lead there. From an element one goes to those of its children that
a step of its states leads to, so parts of a document that no path enters are never looked at.

1. Which states have come to an element depends only on which have come to its parent, on its name, and on the
   predicates of the steps between. So a set of states is one *place*, made when it is first needed, and from a
   place the name of a child leads to the next one by one look into a table. Names that no path says are one
   name there (`_named`), so tables are no larger than the family.
2. `//` is a state that, once it has come to an element, has come to all that is within it.
3. Predicates are asked of the children of one element, in their order: a position counts those that have passed
   the predicates before it. An element comes to a state once, however many ways lead there, which is what a set
   of nodes is.
4. What is found is found in the order of the document: an element, its attributes, then what is within.
5. A walk stops with `TooMuchFound` when one path has found more than a list can have.

There are no more places than `_MOST_PLACES`: a document that makes more is made to do so, and they are all
forgotten then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from palio.documents.xpath import NameTest
from palio.documents.xpath.walkable import LAST, WalkCondition, WalkPath, WalkPredicate
from palio.model.values import MAX_LIST_ELEMENTS

_MOST_PLACES: Final = 4_096  # families of 256 paths on real documents make some hundreds

StringOf = Callable[[Any], str]


class TooMuchFound(Exception):
    """A path has found more nodes than a list can have."""

    def __init__(self, path: int) -> None:
        super().__init__(path)
        self.path = path


class _WalkState:
    """A node of the tree of steps; `found` are the paths whose elements these are."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.search: _WalkState | None = None
        self.steps: dict[tuple[NameTest, tuple[WalkPredicate, ...]], _WalkState] = {}
        self.found: set[int] = set()
        self.attributes: dict[NameTest, set[int]] = {}
        self.texts: set[int] = set()


class _AskedStep(NamedTuple):
    """A step with predicates from a place."""

    test: NameTest
    predicates: tuple[WalkPredicate, ...]
    state: int


class _WalkPlace:
    """The states that have come to an element, and where from there its children lead."""

    def __init__(self, states: Sequence[_WalkState]) -> None:
        self.within = frozenset(one.number for one in states if one.search is one)
        self.found = tuple(sorted({path for one in states for path in one.found}))
        self.texts = tuple(sorted({path for one in states for path in one.texts}))
        self.attributes = _attributes_of(states)
        steps = [
            (test, predicates, state.number)
            for one in states
            for (test, predicates), state in one.steps.items()
        ]
        self.plain = [(test, state) for test, predicates, state in steps if not predicates]
        self.asked = [_AskedStep(*one) for one in steps if one[1]]
        # The names of all children that can lead anywhere, if it is not any name.
        exact = [clark(test) for test, _, _ in steps if test.local is not None and test.namespace is not None]
        all_children = self.within or self.texts or len(exact) < len(steps)
        self.children: tuple[str, ...] | None = None if all_children else tuple(dict.fromkeys(exact))
        self.next: dict[str | tuple[str, frozenset[int]], _WalkPlace | None] = {}

    def attribute_tests(self) -> list[tuple[str | None, str | None, int]]:
        """The namespace and the local name of attributes (None for any), and the path that wants them."""
        exact = [(*_split(name), path) for name, paths in self.attributes.exact for path in paths]
        tests = self.attributes.tests
        return exact + [(test.namespace, test.local, path) for test, paths in tests for path in sorted(paths)]


class _AttributeTests(NamedTuple):
    """Names with the paths that want them; where one path wants several, all attributes are gone through."""

    exact: tuple[tuple[str, tuple[int, ...]], ...]
    tests: tuple[tuple[NameTest, frozenset[int]], ...]


def _attributes_of(states: Sequence[_WalkState]) -> _AttributeTests:
    wanted: dict[NameTest, set[int]] = {}
    for state in states:
        for test, paths in state.attributes.items():
            wanted.setdefault(test, set()).update(paths)
    said = [path for paths in wanted.values() for path in paths]
    if len(said) == len(set(said)) and all(test.local is not None for test in wanted):
        return _AttributeTests(tuple((clark(test), tuple(sorted(paths))) for test, paths in wanted.items()), ())
    return _AttributeTests((), tuple((test, frozenset(paths)) for test, paths in wanted.items()))


def clark(test: NameTest) -> str:
    """A name as lxml writes it."""
    return f"{{{test.namespace}}}{test.local}" if test.namespace else str(test.local)


def _split(name: str) -> tuple[str, str]:
    """The namespace and the local name of what `clark` gives."""
    namespace, _, local = name.rpartition("}")
    return namespace[1:], local


def passes(test: NameTest, name: str) -> bool:
    """Whether a name, as lxml writes it, passes."""
    if test.namespace is None:
        return True
    if test.local is not None:
        return name == clark(test)
    return name.startswith(f"{{{test.namespace}}}")


class DocumentWalk:
    """Paths that are walked together. One may be used by several threads at a time."""

    def __init__(self, paths: Sequence[tuple[int, WalkPath]]) -> None:
        """Each path with the number under which it finds; several may have the same."""
        self._states = [_WalkState(0)]
        for number, path in paths:
            self._add(number, path)
        self._places: dict[frozenset[int], _WalkPlace] = {}
        self._numbers = {number for number, _ in paths}
        self.tests = {step.test for _, path in paths for step in path.steps}
        self._said = {clark(test) for test in self.tests if test.local is not None}
        self._namespaces = {test.namespace for test in self.tests if test.local is None and test.namespace}
        self.names: dict[str, str] = {}

    def walk(self, root: Any, string_of: StringOf) -> dict[int, list[Any]]:
        """The elements, values of attributes and texts that each path finds. Raises `TooMuchFound`."""
        found: dict[int, list[Any]] = {number: [] for number in self._numbers}
        start, going = self.first_place(), _Going(self, found, string_of)
        going.children(start, (root,), going.asked(start, [root]) if start.asked else None)
        return found

    def name(self, name: str) -> str:
        """The same for all names that paths do not tell apart."""
        told = name
        if name not in self._said:
            namespace = name[1:].rpartition("}")[0]
            told = f"{{{namespace}}}*" if namespace in self._namespaces else "*"
        if len(self.names) >= _MOST_PLACES:
            self.names = {}
        self.names[name] = told
        return told

    def _add(self, number: int, path: WalkPath) -> None:
        state = self._states[0]
        for step in path.steps:
            state = self._search(state) if step.search else state
            key = (step.test, step.predicates)
            if key not in state.steps:
                state.steps[key] = self._new()
            state = state.steps[key]
        if path.end is None:
            state.found.add(number)
            return
        state = self._search(state) if path.end.search else state
        if path.end.test is None:
            state.texts.add(number)
        else:
            state.attributes.setdefault(path.end.test, set()).add(number)

    def _new(self) -> _WalkState:
        self._states.append(_WalkState(len(self._states)))
        return self._states[-1]

    def _search(self, state: _WalkState) -> _WalkState:
        if state.search is None:
            state.search = self._new()
            state.search.search = state.search
        return state.search

    def _place(self, reached: frozenset[int]) -> _WalkPlace:
        place = self._places.get(reached)
        if place is None:
            states = {one: self._states[one] for one in reached}
            for one in reached:
                if (search := self._states[one].search) is not None:
                    states[search.number] = search
            if len(self._places) >= _MOST_PLACES:
                self._places = {}
            place = self._places[reached] = _WalkPlace([states[one] for one in sorted(states)])
        return place

    def first_place(self) -> _WalkPlace:
        """Where a walk begins: the document, of which the root is the only child."""
        return self._place(frozenset((0,)))

    def next_place(self, place: _WalkPlace, name: str, passed: frozenset[int] | None) -> _WalkPlace | None:
        """Where a child of that name leads, which has `passed` to these states; None if nowhere."""
        reached = set(place.within)
        reached.update(state for test, state in place.plain if passes(test, name))
        if passed:
            reached |= passed
        return self._place(frozenset(reached)) if reached else None


class _Going:
    """One walk."""

    def __init__(self, walk: DocumentWalk, found: dict[int, list[Any]], string_of: StringOf) -> None:
        self.walk = walk
        self.found = found
        self.string_of = string_of

    def add(self, paths: Sequence[int], what: Any) -> None:
        for path in paths:
            found = self.found[path]
            found.append(what)
            if len(found) > MAX_LIST_ELEMENTS:
                raise TooMuchFound(path)

    def children(self, place: _WalkPlace, children: Iterable[Any], passed: Any) -> None:
        texts, table, names = place.texts, place.next, self.walk.names
        for child in children:
            tag = child.tag
            if type(tag) is str:  # comments and instructions have others
                name = names.get(tag) or self.walk.name(tag)
                said = passed.get(child) if passed else None
                key = name if said is None else (name, said)
                try:
                    following = table[key]
                except KeyError:
                    following = table[key] = self.walk.next_place(place, name, said)
                if following is not None:
                    self.element(following, child)
            if texts and child.tail is not None:
                self.add(texts, child.tail)

    def element(self, place: _WalkPlace, element: Any) -> None:
        if place.found:
            self.add(place.found, element)
        exact, tests = place.attributes
        for name, paths in exact:
            if (value := element.get(name)) is not None:
                self.add(paths, value)
        if tests:
            for name, value in element.attrib.items():
                wanted = {path for test, paths in tests if passes(test, name) for path in paths}
                self.add(sorted(wanted), value)
        if place.texts and element.text is not None:
            self.add(place.texts, element.text)
        if place.children is None:
            passed = self.asked(place, element) if place.asked else None
            self.children(place, element, passed)
        elif place.children:
            passed = self.asked(place, element) if place.asked else None
            self.children(place, element.iterchildren(*place.children), passed)

    def asked(self, place: _WalkPlace, within: Iterable[Any]) -> dict[Any, frozenset[int]]:
        """For children that pass the predicates of steps, to which states these lead."""
        passed: dict[Any, frozenset[int]] = {}
        children = [child for child in within if type(child.tag) is str]
        for step in place.asked:
            candidates = [child for child in children if passes(step.test, child.tag)]
            for predicate in step.predicates:
                if isinstance(predicate, int):
                    at = slice(-1, None) if predicate == LAST else slice(predicate - 1, predicate)
                    candidates = candidates[at]
                else:
                    candidates = [child for child in candidates if self.holds(predicate, child)]
            for child in candidates:
                passed[child] = passed.get(child, frozenset()) | {step.state}
        return passed

    def holds(self, condition: WalkCondition, element: Any) -> bool:
        value = condition.value
        if condition.of == "self":
            return self.string_of(element) == value
        return any(value is None or one == value for one in self.candidates(condition, element))

    def candidates(self, condition: WalkCondition, element: Any) -> Iterator[str]:
        """The strings of what a condition is about."""
        test = condition.test
        if condition.of == "attribute":
            for name, value in element.attrib.items():
                if test is not None and passes(test, name):
                    yield value
        elif test is None:
            if element.text is not None:
                yield element.text
            yield from (child.tail for child in element if child.tail is not None)
        else:
            for child in element:
                if type(child.tag) is str and passes(test, child.tag):
                    yield self.string_of(child) if condition.value is not None else ""
