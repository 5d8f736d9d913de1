"""Saved indexes: named runs of bytes in one file, found through a table of contents at its end.

Each run begins at a multiple of 64 bytes, so that the core can use it where it is mapped. Ids and the texts of
the filters are there for every reader; the runs of the compiled core only if it wrote the file. What is read
lazily (ids that are no numbers, texts) costs nothing until it is asked for.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from palio.model.errors import UnreadableIndex, UnsupportedId

_MAGIC = b"PalioIx1"
_ALIGNMENT = 64
_HEAD = struct.Struct("<8sQQ")  # magic, place and length of the table of contents
_ID_TYPES = (str, int, float, bytes, bool, type(None))


class File:
    """A mapped file: `sections` are (offset, bytes) by name, `meta` what was written with them."""

    def __init__(self, mapping: mmap.mmap, sections: dict[str, tuple[int, int]], meta: dict[str, Any]) -> None:
        self.mapping = mapping
        self.sections = sections
        self.meta = meta

    @cached_property
    def ids(self) -> Sequence[Any]:
        if "ids" in self.sections:
            return [_plain(id) for id in msgspec.msgpack.decode(self._bytes("ids"))]
        return memoryview(self._bytes("id_numbers")).cast("q").tolist()

    @cached_property
    def texts(self) -> Sequence[str | None]:
        return msgspec.msgpack.decode(self._bytes("texts"), type=list[str | None])

    def _bytes(self, name: str) -> bytes:
        offset, size = self.sections[name]
        return self.mapping[offset : offset + size]


def write(
    path: str | os.PathLike[str],
    sections: Mapping[str, Iterable[Any]],
    meta: dict[str, Any],
    ids: Sequence[Any] | None,
    texts: Sequence[str | None],
) -> None:
    """Write a file under another name and give it its own at the end. Raises `UnsupportedId`."""
    runs = {name: list(views) for name, views in sections.items()}
    if ids is not None:
        for id in ids:
            _check_id(id)
        runs["ids"] = [msgspec.msgpack.encode(list(ids))]
    runs["texts"] = [msgspec.msgpack.encode(list(texts))]
    target = Path(path)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as file:
            file.write(b"\0" * _ALIGNMENT)
            places: dict[str, tuple[int, int]] = {}
            for name, views in runs.items():
                start = file.tell()
                for view in views:
                    file.write(view)
                size = file.tell() - start
                places[name] = (start, size)
                file.write(b"\0" * (-size % _ALIGNMENT))
            contents = msgspec.msgpack.encode({"sections": places, "meta": meta})
            place = file.tell()
            file.write(contents)
            file.seek(0)
            file.write(_HEAD.pack(_MAGIC, place, len(contents)))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def read(path: str | os.PathLike[str]) -> File:
    """Map a file. Raises `UnreadableIndex`."""
    with Path(path).open("rb") as file:
        try:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise unreadable(path, "it is empty.") from None
    if len(mapping) < _HEAD.size or mapping[: len(_MAGIC)] != _MAGIC:
        raise unreadable(path, "it does not begin like one.")
    _, place, length = _HEAD.unpack_from(mapping)
    try:
        contents = msgspec.msgpack.decode(mapping[place : place + length])
        sections = {name: (int(start), int(size)) for name, (start, size) in contents["sections"].items()}
        meta = contents["meta"]
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise unreadable(path, "it is cut off or damaged.") from None
    if any(start + size > len(mapping) for start, size in sections.values()):
        raise unreadable(path, "it is cut off or damaged.")
    return File(mapping, sections, meta)


def unreadable(path: str | os.PathLike[str], reason: str) -> UnreadableIndex:
    return UnreadableIndex(os.fspath(path), reason)


def _check_id(id: object) -> None:
    if isinstance(id, tuple):
        for part in id:
            _check_id(part)
    elif type(id) not in _ID_TYPES or (isinstance(id, int) and not -(2**63) <= id < 2**64):
        raise UnsupportedId(id)


def _plain(id: Any) -> Any:
    return tuple(_plain(part) for part in id) if isinstance(id, list) else id
