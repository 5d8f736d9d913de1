"""Saved indexes: named runs of bytes in one file, found through a table of contents at its end.

Each run begins at a multiple of 64 bytes, so that the core can use it where it is mapped. Ids and the texts of
the filters are there for every reader; the runs of the compiled core only if it wrote the file. What is read
lazily (ids that are no numbers, texts) costs nothing until it is asked for.

The core follows what stands in its runs without looking twice, as it must to be fast. So a checksum over the
whole file stands in its head, and is compared when the file is opened: a file that was cut off or damaged on
its way is refused. It does not protect from somebody who makes up a file on purpose.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from palio.model.errors import UnreadableIndex, UnsupportedId

_MAGIC = b"PalioIx3"
_ALIGNMENT = 64
_HEAD = struct.Struct("<8sQQI")  # magic, place and length of the table of contents, checksum
_PLACES = struct.Struct("<QQ")
_CHECKED_AT_ONCE = 1 << 24
_ID_TYPES = (str, int, float, bytes, bool, type(None))
_DAMAGED = "it is cut off or damaged."


class _Contents(msgspec.Struct):
    """The table of contents."""

    sections: dict[str, tuple[int, int]]
    meta: dict[str, Any]


class MappedFile(msgspec.Struct, dict=True):
    """A mapped file: `sections` are (offset, bytes) by name, `meta` what was written with them."""

    path: str | os.PathLike[str]
    mapping: mmap.mmap
    sections: dict[str, tuple[int, int]]
    meta: dict[str, Any]

    @cached_property
    def ids(self) -> Sequence[Any]:
        if "ids" in self.sections:
            return [_plain(id) for id in self._decoded("ids", list[Any])]
        return memoryview(self._bytes("id_numbers")).cast("q").tolist()

    @cached_property
    def texts(self) -> Sequence[str | None]:
        found: list[str | None] = self._decoded("texts", list[str | None])
        return found

    def _decoded(self, name: str, kind: Any) -> Any:
        try:
            return msgspec.msgpack.decode(self._bytes(name), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise unreadable(self.path, _DAMAGED) from None

    def _bytes(self, name: str) -> bytes:
        if name not in self.sections:
            raise unreadable(self.path, _DAMAGED)
        offset, size = self.sections[name]
        return self.mapping[offset : offset + size]


class _ChecksumWriter(msgspec.Struct):
    """A file that knows the checksum of what has been written."""

    file: BinaryIO
    place: int
    checksum: int = 0

    def write(self, data: Any) -> None:
        self.place += self.file.write(data)
        self.checksum = zlib.crc32(data, self.checksum)


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
            writer = _ChecksumWriter(file, _ALIGNMENT)
            places: dict[str, tuple[int, int]] = {}
            for name, views in runs.items():
                start = writer.place
                for view in views:
                    writer.write(view)
                size = writer.place - start
                places[name] = (start, size)
                writer.write(b"\0" * (-size % _ALIGNMENT))
            place = writer.place
            writer.write(msgspec.msgpack.encode({"sections": places, "meta": meta}))
            length = writer.place - place
            file.seek(0)
            checksum = zlib.crc32(_PLACES.pack(place, length), writer.checksum)
            file.write(_HEAD.pack(_MAGIC, place, length, checksum))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], *, verify: bool = True) -> MappedFile:
    """Map a file; `verify` reads it once as a whole, for its checksum. Raises `UnreadableIndex`."""
    with Path(path).open("rb") as file:
        try:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise unreadable(path, "it is empty.") from None
    if len(mapping) < _ALIGNMENT or mapping[: len(_MAGIC)] != _MAGIC:
        raise unreadable(path, "it does not begin like one.")
    _, place, length, checksum = _HEAD.unpack_from(mapping)
    if place + length != len(mapping) or any(mapping[_HEAD.size : _ALIGNMENT]):
        raise unreadable(path, _DAMAGED)
    if verify and checksum != _checksum(mapping, place, length):
        raise unreadable(path, _DAMAGED)
    try:
        contents = msgspec.msgpack.decode(mapping[place:], type=_Contents)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise unreadable(path, _DAMAGED) from None
    if not all(0 <= start <= start + size <= place for start, size in contents.sections.values()):
        raise unreadable(path, _DAMAGED)
    return MappedFile(path, mapping, contents.sections, contents.meta)


def _checksum(mapping: mmap.mmap, place: int, length: int) -> int:
    checksum = 0
    with memoryview(mapping) as view:
        for start in range(_ALIGNMENT, len(view), _CHECKED_AT_ONCE):
            checksum = zlib.crc32(view[start : start + _CHECKED_AT_ONCE], checksum)
    return zlib.crc32(_PLACES.pack(place, length), checksum)


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
