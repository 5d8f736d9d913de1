"""A schema of a stranger is compiled in a process of its own first, which has limits of time and memory.

A short schema can mean an automaton of any size: groups that have each other twice, thirty deep, or
`maxOccurs="50000"` within itself. Nothing in libxml2 bounds that, and nothing can stop it; so a process tries
it, and ends. What was compiled there is compiled again in the broker, where it takes as much as it took there.

That process also tries the patterns of simple types on texts that ambiguous ones are slow with: a document
could have thousands of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any, Final

import msgspec

from palio.documents.errors import SchemaRefused
from palio.documents.family import SchemaFile
from palio.documents.libxml import etree_module
from palio.documents.schemas import XSD, SchemaSource, compile_schema, read_sources

SECONDS: Final = 10  # of work; 2.4 MB of declarations take less than one
PATIENCE: Final = 30.0  # by the clock, on a machine that has other things to do
MEMORY: Final = 256 * 1_048_576  # bytes more than Python and libxml2 need themselves; those 2.4 MB take 60 MB

_SLOWEST_TEXT: Final = 0.05  # seconds; what is not ambiguous takes microseconds
_TRIED: Final = 12  # characters of one pattern, each in a text of its own
_REFUSED: Final = 3  # exit status of a process that has said what is wrong
_ALONE: Final = "It takes more than {} to compile. Simplify its content models, or what they repeat."


class RefusedThere(msgspec.Struct, frozen=True):
    """What is wrong, as the other process tells it."""

    name: str
    reason: str
    line: int | None


def try_schemas(schemas: tuple[SchemaFile, ...]) -> None:
    """Raises `SchemaRefused` unless these schemas compile within limits. It waits for a process, so it is not
    for event loops.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "palio.documents.compiling"]
    name = schemas[0].name if schemas else ""
    try:
        done = subprocess.run(
            command,
            input=msgspec.msgpack.encode(schemas),
            env=environment,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SchemaRefused(name, _ALONE.format(f"{PATIENCE:.0f} seconds")) from None
    if done.returncode == _REFUSED:
        said = msgspec.json.decode(done.stdout, type=RefusedThere)
        raise SchemaRefused(said.name, said.reason, said.line)
    if done.returncode != 0:
        raise SchemaRefused(name, _ALONE.format(f"{SECONDS} seconds or {MEMORY >> 20} MiB"))


def compile_within(schemas: tuple[SchemaFile, ...]) -> None:
    """Compile them here, and try their patterns. Raises `SchemaRefused`."""
    sources = read_sources(schemas)
    compile_schema(sources)
    for source in sources:
        for pattern in source.root.iter(f"{XSD}pattern"):
            _require_quick(source, pattern)


def _require_quick(source: SchemaSource, pattern: Any) -> None:
    """Raises `SchemaRefused` for a pattern that is slow with a text of one of its own characters."""
    etree = etree_module()
    written = pattern.get("value") or ""
    root = etree.Element(f"{XSD}schema")
    type = etree.SubElement(etree.SubElement(root, f"{XSD}element", name="a"), f"{XSD}simpleType")
    restriction = etree.SubElement(type, f"{XSD}restriction", base="xs:string", nsmap={"xs": XSD[1:-1]})
    etree.SubElement(restriction, f"{XSD}pattern", value=written)
    schema = etree.XMLSchema(root)
    characters = dict.fromkeys([*"a0", *(one for one in written if one.isalnum()), *" -."])
    for character in list(characters)[:_TRIED]:
        document = etree.Element("a")
        document.text = character * 32
        began = time.process_time()
        try:
            schema.validate(document)
            slow = time.process_time() - began > _SLOWEST_TEXT
        except etree.XMLSchemaValidateError:
            slow = True
        if slow:
            said = (
                f"The pattern {written!r} is ambiguous, and slow to decide. Leave each text one way through it."
            )
            raise SchemaRefused(source.name, said, pattern.sourceline)


def _limit() -> None:
    """What this process may take from now on, where the system can say so."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  (not on Windows)

    etree_module()
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """What the other process does: schemas come on its standard input."""
    schemas = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=tuple[SchemaFile, ...])
    _limit()
    try:
        compile_within(schemas)
    except SchemaRefused as problem:
        sys.stdout.buffer.write(msgspec.json.encode(RefusedThere(problem.name, problem.reason, problem.line)))
        sys.exit(_REFUSED)


if __name__ == "__main__":
    main()
