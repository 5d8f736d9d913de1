"""The archive that brings palio to executors whose Python does not have it.

A virtual environment cannot be moved, and a compiled module cannot be imported from a zip. What works is the
packages themselves in one tar file, which Spark unpacks beside each executor (`spark.archives`), and a path
to where (`spark.executorEnv.PYTHONPATH`). Pyspark is left out: executors have their own, which must be the
cluster's. The Python there has to have the same minor version and platform, as compiled modules do.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path

import msgspec

import palio
from palio.model.errors import MissingDependency

FOLDER = "palio_pkgs"
# What the cluster has itself: Spark's own Python, and the bridge to its JVM.
_LEFT_OUT = frozenset({"pyspark", "py4j"})
_EXTRA = "spark"
# What executors need as well if XML documents are read, if journals are read from a store, and for a job that
# has a broker of its own (`palio.testing`); taken along where it is installed.
_WELCOME = ("lxml", "sqlalchemy", "psycopg", "psycopg-binary", "greenlet")


class PackedArchive(msgspec.Struct, frozen=True):
    """An archive, and how Spark is told about it."""

    path: str
    bytes: int
    distributions: list[str]
    python: str
    platform: str

    def settings(self) -> dict[str, str]:
        """The settings of a session, or of `spark-submit --conf`."""
        return {"spark.archives": f"{self.path}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def build_package(path: str | os.PathLike[str]) -> PackedArchive:
    """Write the archive: palio, what it needs on executors, and nothing else. Raises `MissingDependency`."""
    target = Path(path).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    chosen = _needed()
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        with tarfile.open(unfinished, "w:gz", compresslevel=1) as archive:
            for file, name in chain(*map(_files, chosen.values()), _own_files()):
                archive.add(file, name, recursive=False)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return PackedArchive(
        str(target),
        target.stat().st_size,
        sorted(f"{one.name} {one.version}" for one in (*chosen.values(), distribution("palio"))),
        f"{sys.version_info.major}.{sys.version_info.minor}",
        sysconfig.get_platform(),
    )


def _needed() -> dict[str, Distribution]:
    """What palio's extra for Spark brings, as it is installed here, by name; without palio itself."""
    found: dict[str, Distribution] = {}
    waiting: list[tuple[str, frozenset[str]]] = [("palio", frozenset({_EXTRA}))]
    waiting += [(name, frozenset()) for name in _WELCOME if _is_installed(name)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen or name in _LEFT_OUT:
            continue
        seen.add((name, extras))
        try:
            one = distribution(name)
        except PackageNotFoundError:
            raise MissingDependency(name, _EXTRA) from None
        if name != "palio":
            found[name] = one
        waiting += _requirements(one, extras)
    return found


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _requirements(one: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    from packaging.requirements import Requirement  # noqa: PLC0415 - comes with the extra, not with a bare palio

    for text in one.requires or ():
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield re.sub(r"[-_.]+", "-", wanted.name).lower(), frozenset(wanted.extras)


def _files(one: Distribution) -> Iterator[tuple[Path, str]]:
    """The files of a package below its folder; programs and caches stay behind."""
    for file in one.files or ():
        if file.parts[0] == ".." or "__pycache__" in file.parts:
            continue
        place = Path(str(one.locate_file(file)))
        if place.is_file():
            yield place, str(file)


def _own_files() -> Iterator[tuple[Path, str]]:
    """Palio itself, wherever it is imported from: a checkout has no list of its files."""
    folder = Path(palio.__file__).parent
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder.parent)
        left_out = "__pycache__" in inside.parts or file.suffix in (".c", ".pyx", ".pxi", ".h")
        if file.is_file() and not left_out:
            yield file, str(inside)
