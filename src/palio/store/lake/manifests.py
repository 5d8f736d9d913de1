"""Manifests: what belongs to a lake is what its manifests say, and nothing else.

A lake is a folder of Parquet files, and beside them numbered manifests, each one version of the lake. A
version is committed by creating the file of its number, completely or not at all, and only if there is none:
of two who try, one succeeds, and the other has to look again. Files that no manifest names do not exist for
anybody; what a job leaves behind when it dies is never seen, and is swept away later.

A manifest says what changed; from time to time one says everything (a snapshot), so that few have to be read.
`positions` says for each journal up to which sequence the lake has everything, but for what was forgotten, and
`lineages` of which lineage of the journal that is a position.

A journal may come back older than the lake has it (`palio.protocol.durable.lineage`), and give sequences again.
Then there is a *fork*: the lake goes on after the last sequence that both have, and what it had of the journal
as it was stays. A file knows how many forks there were when it was written, its *branch*; so it is known which
events are those of the journal as it is now (`LakeState.upto`), and which only the lake has.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from palio.protocol.durable.lineage import JournalGap, Lineage
from palio.store.lake.errors import LakeChanged, LakeDamaged, LakeTooNew, NoLake, WrongLake
from palio.store.lake.once import create_once, make_folder

FORMAT = 2  # those of format 1 knew no lineages
MANIFESTS = "_palio"
# Every so many versions there is a snapshot.
SNAPSHOT_EVERY = 32


class LakeFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file: some of the events of a journal from one sequence to another, of one day and class.

    `columns` are its typed columns (`attribute:kind`). If it is not `complete`, some are in the payload only.
    """

    path: str  # within the lake
    journal: str
    first: int
    last: int
    rows: int
    bytes: int
    day: str
    begin: float  # the times of its events, in seconds since 1970
    end: float
    columns: tuple[str, ...] = ()
    kind: str | None = None  # the class of its events, where they have one
    complete: bool = True
    quarantine: bool = False  # what could not be read, with the reason
    branch: int = 0  # how many forks of its journal there were


class LakeFork(msgspec.Struct, frozen=True):
    """A journal came back older: it went on after a sequence, when the lake had what it was up to another.

    The first incarnation of what follows gives it its name.
    """

    after: int
    upto: int
    incarnation: str
    noticed: float

    def gap(self, journal: str) -> JournalGap:
        """What of the journal as it was may never have come to the lake; nobody knows how far that was."""
        return JournalGap(journal, self.upto, None, self.noticed)


Forks: TypeAlias = tuple[LakeFork, ...]


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version: what was added and removed since the one before; all files, if it is a snapshot."""

    format: int
    version: int
    lake: str  # its own name, the same for ever
    time: float
    action: str
    positions: dict[str, int]
    add: tuple[LakeFile, ...] = ()
    remove: tuple[str, ...] = ()
    snapshot: bool = False
    lineages: dict[str, Lineage] = {}
    forks: dict[str, Forks] = {}


class LakeState(msgspec.Struct, frozen=True):
    """A lake in one version."""

    lake: str
    version: int
    time: float
    positions: dict[str, int]
    files: dict[str, LakeFile]
    lineages: dict[str, Lineage] = {}  # of which the positions are positions, where that is known
    forks: dict[str, Forks] = {}

    def forks_of(self, journal: str) -> Forks:
        """Those of one journal, in the order in which they were noticed."""
        return self.forks.get(journal, ())

    def upto(self, file: LakeFile, branch: int | None = None) -> int:
        """The last sequence of a file that is one of the journal as it is, or as it was in a branch."""
        return min([file.last, *[one.after for one in self.forks_of(file.journal)[file.branch : branch]]])

    def given(self, journal: str, branch: int) -> int:
        """Up to which sequence numbers had been given already when a branch began."""
        return max([0, *[one.upto for one in self.forks_of(journal)[:branch]]])

    def ends(self, journal: str, branch: int) -> int:
        """How far the lake has a journal in a branch."""
        forks = self.forks_of(journal)
        return forks[branch].upto if branch < len(forks) else self.positions.get(journal, 0)

    def events(self) -> list[LakeFile]:
        return [one for one in self.files.values() if not one.quarantine]

    def quarantine(self) -> list[LakeFile]:
        """The files with what could not be read."""
        return [one for one in self.files.values() if one.quarantine]


class LakeChange(msgspec.Struct, frozen=True):
    """What a job wants to be committed."""

    action: str
    add: tuple[LakeFile, ...] = ()
    remove: tuple[str, ...] = ()
    positions: dict[str, int] = {}
    lineages: dict[str, Lineage] = {}
    forks: dict[str, LakeFork] = {}  # that are new


class _ManifestHeader(msgspec.Struct):
    format: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Manifest).decode
_decode_header = msgspec.json.Decoder(_ManifestHeader).decode


class Lake:
    """A lake in a folder that all who use it can reach under the same path."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        """Raises `WrongLake`."""
        self.root = _folder(os.fspath(place))
        self._manifests = self.root / MANIFESTS

    def __repr__(self) -> str:
        return f"Lake({str(self.root)!r})"

    def create(self) -> LakeState:
        """The newest version; if there is none, an empty lake is made."""
        try:
            return self.state()
        except NoLake:
            make_folder(self._manifests)
            name = secrets.token_hex(8)
            with contextlib.suppress(LakeChanged):
                self._put(Manifest(FORMAT, 1, name, time.time(), "create", {}, snapshot=True))
            return self.state()

    def state(self, version: int | None = None) -> LakeState:
        """The newest version, or an earlier one. Raises `NoLake`, `LakeTooNew` or `LakeDamaged`."""
        versions = self.versions()
        if not versions:
            raise NoLake(str(self.root))
        last = versions[-1] if version is None else version
        changes: list[Manifest] = []
        for number in range(last, 0, -1):
            changes.append(self.manifest(number))
            if changes[-1].snapshot:
                break
        else:
            raise LakeDamaged(str(self.root), "There is no snapshot to begin with.")
        files: dict[str, LakeFile] = {}
        for one in reversed(changes):
            for path in one.remove:
                files.pop(path, None)
            files.update({file.path: file for file in one.add})
        newest = changes[0]
        return _state(newest, files)

    def versions(self) -> list[int]:
        """The numbers of all versions, ascending."""
        try:
            names = os.listdir(self._manifests)
        except FileNotFoundError:
            return []
        return sorted([int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdecimal()])

    def is_newest(self, version: int) -> bool:
        """Whether nothing was committed upon a version."""
        return not self._path(version + 1).exists()

    def manifest(self, version: int) -> Manifest:
        """One version. Raises `LakeTooNew` or `LakeDamaged`."""
        try:
            raw = self._path(version).read_bytes()
            format = _decode_header(raw).format
            if format > FORMAT:
                raise LakeTooNew(str(self.root), format, FORMAT)
            return _decode(raw)
        except FileNotFoundError:
            raise LakeDamaged(str(self.root), f"The manifest of version {version} is missing.") from None
        except msgspec.DecodeError as problem:
            raise LakeDamaged(
                str(self.root), f"The manifest of version {version} cannot be read: {problem}."
            ) from None

    def commit(self, base: LakeState, change: LakeChange) -> LakeState:
        """Make the version after `base`. Raises `LakeChanged` if there is one by now, and nothing is done.

        A version names only what is there: if one of its files is missing, that is `LakeDamaged`.
        """
        self.require_files(change.add, "Nothing was committed: run the job again.")
        version, now, removed = base.version + 1, time.time(), set(change.remove)
        files = {path: file for path, file in base.files.items() if path not in removed}
        files.update({file.path: file for file in change.add})
        snapshot = version % SNAPSHOT_EVERY == 0
        positions = base.positions | change.positions
        add = tuple(files.values()) if snapshot else change.add
        manifest = Manifest(
            FORMAT,
            version,
            base.lake,
            now,
            change.action,
            positions,
            add,
            change.remove,
            snapshot,
            base.lineages | change.lineages,
            base.forks | {name: (*base.forks_of(name), fork) for name, fork in change.forks.items()},
        )
        self._put(manifest)
        return _state(manifest, files)

    def commit_upon(self, base: LakeState, change: LakeChange) -> LakeState:
        """The same upon whatever the newest version is, if it still has all that is to be removed.

        Raises `LakeChanged` if it has not.
        """
        while True:
            try:
                return self.commit(base, change)
            except LakeChanged:
                base = self.state()
                if not set(change.remove) <= set(base.files):
                    raise

    def absolute(self, files: Iterable[LakeFile]) -> list[str]:
        """Where files are."""
        return [str(self.root / file.path) for file in files]

    def require_files(self, files: Iterable[LakeFile], advice: str = "Restore it from a copy.") -> None:
        """Raises `LakeDamaged` with the name of the first file that is not there."""
        for file in files:
            if not (self.root / file.path).exists():
                raise LakeDamaged(str(self.root), f"The file {file.path} is missing.", file.path, advice)

    def removed_since(self, moment: float) -> dict[str, float]:
        """Files that were removed later than a moment, and when; both in seconds since 1970."""
        gone: dict[str, float] = {}
        for version in reversed(self.versions()):
            one = self.manifest(version)
            if one.time <= moment:
                break
            gone.update(dict.fromkeys(one.remove, one.time))
        return gone

    def _path(self, version: int) -> Path:
        return self._manifests / f"{version:020}.json"

    def _put(self, manifest: Manifest) -> None:
        """Create the file of a version, completely or not at all, and only if there is none."""
        try:
            create_once(self._path(manifest.version), _encode(manifest))
        except FileExistsError:
            raise LakeChanged(str(self.root), manifest.version) from None


def _state(newest: Manifest, files: dict[str, LakeFile]) -> LakeState:
    one = newest
    return LakeState(one.lake, one.version, one.time, one.positions, files, one.lineages, one.forks)


def _folder(place: str) -> Path:
    parts = urlsplit(place)
    if parts.scheme not in ("", "file"):
        raise WrongLake(
            place,
            f"A manifest must be created only if there is none, which is not supported for {parts.scheme}. Use "
            "a folder that driver and executors reach under the same path, such as one of NFS.",
        )
    path = unquote(parts.path) if parts.scheme else place
    return Path(path).absolute()
