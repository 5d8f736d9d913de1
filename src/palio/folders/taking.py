"""Taking files out of a folder, each once, whatever happens.

A file goes from the folder into a place of its own, is published from there, and ends among those that are done
or rejected. Each step is one rename.

1. A file is taken when two looks in a row have found it the same: same inode, size and time of change. Whoever
   puts it there in one step (by renaming it) never has half of it taken; whoever writes it in place is waited
   for.
2. Taking gives it a token, the name of the place to which it is renamed. What is published of it has this token
   as its id, and the folder's own name as its publisher, so what a crash makes us publish again is recognised
   by the broker.
3. After a crash, what was taken comes first, with the same tokens.
4. Only regular files with one name are published. A link is moved aside and never followed; folders and what
   begins with a dot are left where they are.
5. What is said of a file, a reason or an answer, is there before the file itself is beside it."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from stat import S_ISDIR, S_ISREG

import msgspec

from palio.folders.errors import FileChanging, FolderUnusable, UnusableFile
from palio.folders.rooms import OWN, FolderLock, make_durable, room, shown
from palio.model.values import MAX_PAYLOAD_BYTES

# Files that one look takes; what is beyond has its turn with the next. A bound of memory, not of speed.
AT_ONCE = 1_000
# Files that may be looked at before they are taken.
_REMEMBERED = 100_000
_TOKEN = re.compile(r"[0-9a-f]{32}")
_LONGEST_NAME = 255  # bytes, of Linux' file systems


class TakenFile(msgspec.Struct, frozen=True):
    """A file that nobody else takes any more."""

    name: str
    token: str
    folder: Path  # the place of its own

    @property
    def path(self) -> Path:
        return self.folder / self.name

    @property
    def shown(self) -> str:
        return shown(self.name)


_Look = tuple[int, int, int, int]


class InFolder:
    """A folder into which others put files. Only one watcher has it at a time."""

    def __init__(self, folder: Path, *, delete: bool = False) -> None:
        self._folder = folder
        self._delete = delete
        self._lock = FolderLock(folder)
        try:
            self._taken = room(folder, OWN, "taken")
            self._done, self._rejected = room(folder, "done"), room(folder, "rejected")
            self.publisher = self._identity()
            self._again = self._left_over()
        except BaseException:
            self.close()
            raise
        self._seen: dict[str, _Look] = {}

    def close(self) -> None:
        self._lock.release()

    def _identity(self) -> str:
        """As whom files of this folder are published, whoever watches it: ids count once for each publisher."""
        place = self._folder / OWN / "publisher"
        try:
            if not place.exists():
                half = self._taken / "publisher"
                half.write_text(f"folder-{secrets.token_hex(16)}", encoding="ascii")
                half.rename(place)
                make_durable(place.parent)
            return place.read_text(encoding="ascii", errors="replace")[:_LONGEST_NAME]
        except OSError as problem:
            raise FolderUnusable(str(self._folder), problem.strerror or str(problem)) from None

    def _left_over(self) -> list[TakenFile]:
        """What a watcher before had taken and not settled."""
        found = []
        for place in sorted(self._taken.iterdir()):
            if _TOKEN.fullmatch(place.name) is None:
                continue
            names = sorted(os.listdir(place))
            found += [TakenFile(name, place.name, place) for name in names[:1]]
            if not names:
                place.rmdir()
        return found

    def take(self) -> list[TakenFile]:
        """Look, and take what stayed the same since the look before; the oldest come first.

        Raises `FolderUnusable`.
        """
        taken, self._again = self._again, []
        try:
            looks = self._look()
            ready = sorted((look[2], name) for name, look in looks.items() if self._seen.get(name) == look)[
                :AT_ONCE
            ]
            self._seen = looks
            for _, name in ready:
                del self._seen[name]
                if (one := self._take(name)) is not None:
                    taken.append(one)
        except OSError as problem:
            self._again = taken
            raise FolderUnusable(str(self._folder), problem.strerror or str(problem)) from None
        return taken

    def _look(self) -> dict[str, _Look]:
        found: dict[str, _Look] = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or len(found) == _REMEMBERED:
                    continue
                try:
                    state = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # it has been taken away again
                if not S_ISDIR(state.st_mode):
                    found[entry.name] = state.st_ino, state.st_size, state.st_mtime_ns, state.st_nlink
        return found

    def _take(self, name: str) -> TakenFile | None:
        token = secrets.token_hex(16)
        place = self._taken / token
        place.mkdir()
        try:
            (self._folder / name).rename(place / name)
        except FileNotFoundError:
            place.rmdir()
            return None
        make_durable(self._taken)
        return TakenFile(name, token, place)

    @property
    def waiting(self) -> int:
        """How many files were seen, or taken, and are not published."""
        return len(self._seen) + len(self._again)

    # What becomes of a file

    def read(self, file: TakenFile) -> bytes:
        """What is in a file. Raises `UnusableFile`, and `FileChanging` for one that is to be read again."""
        try:
            state = file.path.lstat()
            if not S_ISREG(state.st_mode):
                raise UnusableFile(file.shown, "it is a link, or no file at all; only regular files are read.")
            if state.st_nlink > 1:
                raise UnusableFile(
                    file.shown,
                    "it has another name somewhere else (a hard link), and may be somebody else's.",
                )
            if state.st_size > MAX_PAYLOAD_BYTES:
                raise UnusableFile(
                    file.shown, f"it has {state.st_size:,} bytes, and {MAX_PAYLOAD_BYTES:,} are the most."
                )
            descriptor = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as opened:
                content = opened.read(MAX_PAYLOAD_BYTES + 1)
                after = os.fstat(descriptor)
        except OSError as problem:
            raise UnusableFile(file.shown, f"it cannot be read ({problem.strerror or problem}).") from None
        same = after.st_mtime_ns == state.st_mtime_ns and after.st_ino == state.st_ino
        if not same or len(content) != state.st_size:
            raise FileChanging(file.shown)
        return content

    def again(self, file: TakenFile) -> None:
        """It comes with the next look, with the same token."""
        self._again.append(file)

    def finish(self, file: TakenFile, answer: bytes | None = None) -> None:
        """It has been published, or carried out with an answer, which is left among those that are done.

        Raises `FolderUnusable`.
        """
        if answer is not None:
            name = self._free(self._done, file)
            self._beside(self._done, f"{_shortened(name, 20)}.result.xml", file, answer)
        if self._delete:
            self._settle(file, None)
        else:
            self._settle(file, self._done)

    def reject(self, file: TakenFile, reason: str) -> None:
        """It is put aside, with the reason beside it. Raises `FolderUnusable`."""
        name = self._free(self._rejected, file)
        told = f"{reason}\n".encode(errors="replace")
        self._beside(self._rejected, f"{_shortened(name, 20)}.reason.txt", file, told)
        self._settle(file, self._rejected, name)

    def _beside(self, place: Path, name: str, file: TakenFile, content: bytes) -> None:
        """What is said of a file, complete or not there."""
        half = self._taken / f"{file.token}.half"
        try:
            half.write_bytes(content)
            half.rename(place / name)
        except OSError as problem:
            raise FolderUnusable(str(self._folder), problem.strerror or str(problem)) from None

    def _settle(self, file: TakenFile, into: Path | None, name: str = "") -> None:
        try:
            if into is None:
                file.path.unlink()
            else:
                file.path.rename(into / (name or self._free(into, file)))
                make_durable(into)
            file.folder.rmdir()
        except OSError as problem:
            raise FolderUnusable(str(self._folder), problem.strerror or str(problem)) from None

    def _free(self, place: Path, file: TakenFile) -> str:
        """A name that nothing has there: the file's own if possible, and with its token if not."""
        if not os.path.lexists(place / file.name):
            return file.name
        stem, dot, ending = file.name.rpartition(".")
        if not dot:
            stem, ending = ending, ""
        return f"{_shortened(stem, 40 + len(os.fsencode(ending)))}.{file.token}{dot}{ending}"


def _shortened(name: str, more: int) -> str:
    """A name to which so many bytes can be added."""
    whole = os.fsencode(name)
    return os.fsdecode(whole[: max(1, _LONGEST_NAME - more)])
