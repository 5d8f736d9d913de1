"""A broker is composed of parts, each handed what it needs: none reaches into what is private to another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from palio.broker import broker
from palio.store import sql

FOLDERS = [Path(str(module.__file__)).parent for module in (broker, sql)]
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.py"))
OF_LIBRARIES = {"_mapping"}  # SQLAlchemy's name for what is public


def private_reaches(tree: ast.AST) -> Iterator[str]:
    """Attributes with an underscore of anything but oneself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if ast.unparse(node.value) not in ("self", "cls") and node.attr not in OF_LIBRARIES:
                yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_part_reaches_into_another(path: Path) -> None:
    assert list(private_reaches(ast.parse(path.read_text()))) == []


def test_what_reaches_is_found() -> None:
    tree = ast.parse("self._a\nother._b\nself.part._c\nrow._mapping")
    assert list(private_reaches(tree)) == ["line 2: other._b", "line 3: self.part._c"]
