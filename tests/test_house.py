"""Rules of the house: what no single room can check by itself, each rule with a mistake that it must find."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from string import Formatter

import pytest

from tests.budgets import BUDGETS, OTHERS, WORKERS, folder_of, over_budget
from tests.spreading import SlowSpreading, Spreading
from tests.spreading import place as place_of

PAGES = "docs"
GLOSSARY = "glossary.md"
# Where the page on the architecture is about which room.
MAP = {
    "model": ("The model, from the bottom up",),
    "language": ("The model, from the bottom up",),
    "documents": ("Documents",),
    "matching": ("Matching and order",),
    "protocol": ("Protocol",),
    "transport": ("Protocol",),
    "routing": ("Routing",),
    "sim": ("Simulator", "Experiments"),
    "store": ("Store",),
    "broker": ("Broker",),
    "client": ("Client",),
    "folders": ("Client",),
    "testing": ("Client",),
    "spark": ("Pipeline",),
    "cli": ("Program",),
    "pages": ("Program",),
}
_SYNC = "the client's, and that of `palio.sync`, which has the same names for programs without an event loop"
_ASKED_FOR = "what a client holds, and the message that asks for it, whose name is its tag on the wire"
# Classes of the same name that are meant, and why.
NAMESAKES = {
    "Advertised": _SYNC,
    "Call": "what a gateway is asked for over HTTP; a function of operands, as a formula calls it",
    "Client": _SYNC,
    "Detection": _SYNC,
    "Event": _SYNC,
    "Failed": "a store that could not write or read; a value that says why a formula has no other",
    "JournalTrimmed": "an error of the store that programs catch; a message, named as on the wire",
    "MatchIndex": "one interface: the compiled index, its oracle, and what stands in where it is not compiled",
    "Replay": _ASKED_FOR,
    "Subscription": _SYNC,
    "Survey": _ASKED_FOR,
    "Watch": f"{_SYNC}; {_ASKED_FOR}",
}
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

Texts = dict[str, str]  # by path from the root


def prose(text: str) -> str:
    """A page without its examples."""
    return _FENCE.sub("", text)


def anchor(heading: str) -> str:
    """How a heading is linked to: as GitHub does it."""
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).strip().lower())
    return kept.replace(" ", "-")


def dead_links(pages: Texts, exists: Callable[[str], bool]) -> list[str]:
    """Links within the project that lead nowhere."""
    found = []
    for place, text in pages.items():
        for link in _LINK.findall(prose(text)):
            target, _, part = link.partition("#")
            if target.startswith(("http:", "https:", "mailto:")):
                continue
            there = str(Path(place).parent / target) if target else place
            anchors = {anchor(one) for one in _HEADING.findall(prose(pages.get(there, "")))}
            if not exists(there) or (part and part not in anchors):
                found.append(f"{place}: {link}")
    return found


def without_link_to(page: str, pages: Texts) -> list[str]:
    """Pages that do not link to this one."""
    return [
        place
        for place, text in pages.items()
        if Path(place).name != page and not any(page in link for link in _LINK.findall(text))
    ]


def unsorted_words(glossary: str) -> list[str]:
    """Words of the glossary that stand before the one that precedes them in the alphabet."""
    words = [line.split("|")[1].strip() for line in glossary.splitlines() if line.startswith("| ")][1:]
    return [after for before, after in pairwise(words) if after.lower() < before.lower()]


def sections(page: str) -> Texts:
    """The parts of a page by their headings of the second level."""
    parts = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def unnamed(modules: list[str], page: str) -> list[str]:
    """Modules that the map does not name in the sections about their room."""
    parts = sections(page)
    names = {
        room: {
            word
            for title in titles
            for one in re.findall(r"`([\w./]+)`", parts[title])
            for word in one.split("/")
        }
        for room, titles in MAP.items()
    }
    return [path for path in modules if Path(path).stem not in names[path.split("/")[0]]]


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """What rules look at in a source: its classes, imports and texts. It takes seconds to read all sources."""
    looked_at = ast.ClassDef, ast.Import, ast.ImportFrom, ast.Constant
    return tuple([node for node in ast.walk(ast.parse(text)) if isinstance(node, looked_at)])


def classes_defined_twice(sources: Texts) -> dict[str, list[str]]:
    """Names of classes that are defined more than once, with the files; who greps for one means one of them."""
    found = defaultdict(list)
    for place, text in sources.items():
        for node in nodes_of(text):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(place)
    return {name: places for name, places in found.items() if len(places) > 1}


def misdeclared_sentences(sources: Texts) -> list[str]:
    """Errors whose sentence says something that they do not declare, or not what is for it only: type checkers
    do not see that.
    """
    nodes = [node for text in sources.values() for node in nodes_of(text)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    bases = [(kind.name, set(map(ast.unparse, kind.bases))) for kind in classes]
    errors = {"PalioError"}
    while more := {name for name, above in bases if errors & above} - errors:
        errors |= more
    return [kind.name for kind in classes if kind.name in errors and not _says_what_it_declares(kind)]


def _says_what_it_declares(kind: ast.ClassDef) -> bool:
    fields = [node for node in kind.body if isinstance(node, ast.AnnAssign)]
    declared = {ast.unparse(field.target) for field in fields}
    told = {ast.unparse(field.target) for field in fields if "InitVar[" in ast.unparse(field.annotation)}
    for node in kind.body:
        match node:
            case ast.FunctionDef(name="sentence", args=ast.arguments(args=[_, *taken])):
                return {one.arg for one in taken} == told
            case ast.Assign(targets=[ast.Name(id="sentence")], value=value):
                parts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
                return (
                    told
                    <= {name for part in parts for _, name, _, _ in Formatter().parse(part) if name}
                    <= declared
                )
    return True


@pytest.fixture(scope="module")
def pages(root) -> Texts:
    top = [root / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    found = [*top, *sorted((root / PAGES).glob("*.md"))]
    return {str(page.relative_to(root)): page.read_text() for page in found}


def test_no_link_leads_nowhere(pages, root):
    assert dead_links(pages, lambda path: (root / path).exists()) == []


def test_a_dead_link_is_found():
    pages = {"docs/a.md": "# One thing\n[b](b.md) [c](a.md#one-thing) [d](#other)\n```\n[e](e.md)\n```\n"}
    assert dead_links(pages, lambda path: path == "docs/a.md") == ["docs/a.md: b.md", "docs/a.md: #other"]


def test_every_page_links_to_the_glossary(pages):
    assert (
        without_link_to(GLOSSARY, {place: text for place, text in pages.items() if "CHANGELOG" not in place})
        == []
    )


def test_a_page_without_that_link_is_found():
    assert without_link_to("g.md", {"a.md": "[g](g.md#x)", "b.md": "g.md", "g.md": ""}) == ["b.md"]


def test_the_glossary_is_in_order(pages):
    assert unsorted_words(pages[f"{PAGES}/{GLOSSARY}"]) == []


def test_a_word_out_of_order_is_found():
    assert unsorted_words("| word | x |\n|---|---|\n| b | 1 |\n| a | 2 |\n") == ["a"]


def test_every_module_is_on_the_map(pages, root):
    rooms = root / "src/palio"
    modules = [
        str(path.relative_to(rooms)) for path in sorted(rooms.glob("*/**/*.py")) if path.stem != "__init__"
    ]
    assert unnamed(modules, pages[f"{PAGES}/architecture.md"]) == []


def test_a_module_that_is_not_on_the_map_is_found():
    page = "".join(f"## {title}\n`one/two` `three`\n" for titles in MAP.values() for title in titles)
    assert unnamed(["store/two.py", "store/four.py", "cli/a/three.py"], page) == ["store/four.py"]


def test_the_budgets_of_tests_add_up_to_five_minutes_on_two_cores(root):
    assert sum(BUDGETS.values()) + OTHERS <= WORKERS * 300
    assert [folder for folder in BUDGETS if not (root / "tests" / folder).is_dir()] == []


def test_a_folder_that_is_over_its_budget_is_named():
    assert folder_of("tests/spark/lake/test_lake.py::test_one") == "spark"
    assert (
        folder_of("tests/fuzz/test_corpus.py::test_one")
        == folder_of("tests/test_house.py::test_one")
        == "others"
    )
    spark, cli = BUDGETS["spark"], BUDGETS["cli"]
    took = {"spark": spark + 1.0, "cli": cli + 2.0, "sim": 1.0, "others": OTHERS + 0.0}
    assert over_budget(took) == [f"cli took {cli + 2} s of {cli} s", f"spark took {spark + 1} s of {spark} s"]


# What there was once, and the files that may still speak of it: those that tell or read what was before.
REMOVED = {
    "FastAPI": ("CHANGELOG.md", "docs/architecture.md"),
    "CancelTimer": (),
    "palio_readers": ("CHANGELOG.md", "src/palio/store/schema.py", "tests/store/test_schema.py"),
}


def words_of_removed_concepts(texts: Texts) -> list[str]:
    """Files that speak of what is not there any more."""
    return [
        f"{place}: {word}"
        for word, allowed in REMOVED.items()
        for place, text in texts.items()
        if word in text and place not in (*allowed, "tests/test_house.py")
    ]


def unread_modules(sources: Texts, beginnings: set[str]) -> list[str]:
    """Modules that no other one imports, by name or as a part of its package, or names in a text to load it."""
    read = set(beginnings)
    for place, text in sources.items():
        for node in nodes_of(text):
            match node:
                case ast.Import(names):
                    found = {one.name for one in names}
                case ast.ImportFrom(module=str(module), names=names):
                    found = {module, *(f"{module}.{one.name}" for one in names)}
                case ast.Constant(value=str(said)) if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", said):
                    found = {said, f"palio.cli.{said}"}
                case _:
                    continue
            read |= found - {dotted(place)}
    return [place for place in sources if not place.endswith("__init__.py") and dotted(place) not in read]


def dotted(place: str) -> str:
    """The name of a module from its path below `src`."""
    return place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def undocumented_commands(commands: list[str], pages: Texts) -> list[str]:
    """Commands that no page shows."""
    everything = "\n".join(text for place, text in pages.items() if place != "CHANGELOG.md")
    return [name for name in commands if not re.search(rf"\bpalio {name}\b", everything)]


@pytest.fixture(scope="module")
def sources(root) -> Texts:
    folder = root / "src"
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.glob("palio/**/*.py"))}


def test_nothing_speaks_of_what_was_removed(pages, root):
    files = [path for folder in ("src", "tests") for path in sorted((root / folder).glob("**/*.py"))]
    texts = {str(path.relative_to(root)): path.read_text() for path in files}
    assert words_of_removed_concepts(pages | texts) == []


def test_a_word_of_a_removed_concept_is_found():
    assert words_of_removed_concepts({"docs/a.md": "by FastAPI", "CHANGELOG.md": "FastAPI"}) == [
        "docs/a.md: FastAPI"
    ]


def test_no_module_is_without_a_reader(sources):
    # Those that are run, that users import by themselves, that compiled code reads, or that join two ends in
    # one program, which only tests do so far.
    beginnings = {"palio.cli.main", "palio.sync", "palio.matching.programs", "palio.transport.memory"}
    assert unread_modules(sources, beginnings) == []


def test_a_module_that_nothing_imports_is_found():
    sources = {
        "palio/a.py": "from palio import b",
        "palio/b.py": "x = 'c.d'",
        "palio/cli/c/d.py": "import palio.e",
        "palio/e.py": "import palio.e",
        "palio/f.py": "",
    }
    assert unread_modules(sources, {"palio.a"}) == ["palio/f.py"]


def test_every_command_is_documented(pages):
    from palio.cli.main import COMMANDS

    assert undocumented_commands(list(COMMANDS), pages) == []


def test_a_command_that_no_page_shows_is_found():
    pages = {"docs/a.md": "run `palio pub x=1`", "CHANGELOG.md": "palio sub"}
    assert undocumented_commands(["pub", "sub"], pages) == ["sub"]


def test_no_class_has_the_name_of_another(root):
    rooms = root / "src/palio"
    sources = {str(path.relative_to(rooms)): path.read_text() for path in sorted(rooms.rglob("*.py"))}
    twice = classes_defined_twice(sources)
    assert {name: places for name, places in twice.items() if name not in NAMESAKES} == {}
    assert sorted(twice) == sorted(NAMESAKES)  # none is excused that is alone


def test_a_class_with_the_name_of_another_is_found():
    sources = {
        "a.py": "class One: ...\n\nclass Two:\n    class Inner: ...\n",
        "b.py": "from a import One\n\nclass Two(One): ...\n\ndef inner():\n    class Inner: ...\n",
    }
    assert classes_defined_twice(sources) == {"Two": ["a.py", "b.py"], "Inner": ["a.py", "b.py"]}


def test_every_error_declares_what_its_sentence_says(sources):
    assert misdeclared_sentences(sources) == []


def test_an_error_whose_sentence_says_something_else_is_found():
    head = "class {}(PalioError):\n    path: str\n    reason: InitVar[str]\n    "
    bodies = {
        "Right": "sentence = '{path!r}: {reason}'",
        "Misspelt": "sentence = '{paht}: {reason}'",
        "Forgotten": "sentence = '{path}'",
        "Decided": "def sentence(self, reason): return reason",
        "Unasked": "def sentence(self, path): return path",
        "Deaf": "def sentence(self): return self.path",
    }
    source = "\n".join(head.format(name) + body for name, body in bodies.items())
    assert misdeclared_sentences({"a.py": source}) == ["Misspelt", "Forgotten", "Unasked", "Deaf"]


def test_what_belongs_together_goes_to_one_worker():
    one, other = "tests/spark/lake/test_lake.py::test_one[a::b]", "tests/spark/test_two.py::test_two"
    parts = [Spreading._split_scope(Spreading, test) for test in (one, other, "tests/cli/test_up.py::test_up")]
    assert parts == ["tests/spark/", "tests/spark/", "tests/cli/test_up.py"]
    slow = [SlowSpreading._split_scope(SlowSpreading, test) for test in (one, other)]
    assert slow == ["tests/spark/lake/test_lake.py", "tests/spark/test_two.py"]
    there = [
        "tests/model/test_a.py::test",
        "tests/cli/test_up.py::test_up",
        one,
        "tests/live/test_http.py::test",
    ]
    assert sorted(there, key=place_of) == [there[2], there[3], there[1], there[0]]
