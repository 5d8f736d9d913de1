"""What can be wrong with a lake, each with a finished sentence."""

from __future__ import annotations

from palio.model.errors import PalioError


class LakeError(PalioError):
    """The base of all that can be wrong with a lake."""


class NoLake(LakeError):
    """A folder that is no lake."""

    lake: str

    def __init__(self, lake: str) -> None:
        super().__init__(f"There is no lake in {lake}; `palio spark archive` makes one.", lake=lake)


class WrongLake(LakeError):
    """A place where a lake cannot be."""

    lake: str

    def __init__(self, lake: str, reason: str) -> None:
        super().__init__(f"A lake cannot be in {lake!r}: {reason}", lake=lake)


class LakeTooNew(LakeError):
    """A lake that was written by a later version."""

    lake: str
    format: int
    known: int

    def __init__(self, lake: str, format: int, known: int) -> None:
        super().__init__(
            f"The lake in {lake} has the format {format}, and this version of Palio knows those up to {known}. "
            "Read it with a newer one; nothing was changed.",
            lake=lake,
            format=format,
            known=known,
        )


class LakeDamaged(LakeError):
    """A lake in which something is missing, or cannot be read; `file` is which, where it is one file."""

    lake: str
    file: str | None

    def __init__(
        self, lake: str, reason: str, file: str | None = None, advice: str = "Restore it from a copy."
    ) -> None:
        super().__init__(f"The lake in {lake} is damaged: {reason} {advice}", lake=lake, file=file)


class LakeChanged(LakeError):
    """Somebody else has changed the lake meanwhile; nothing of this change was done."""

    lake: str
    version: int

    def __init__(self, lake: str, version: int) -> None:
        super().__init__(
            f"The lake in {lake} has become version {version} by somebody else meanwhile. Try it again.",
            lake=lake,
            version=version,
        )


class LakeBehind(LakeError):
    """A lake that ends before the journal begins: what was published between them is in neither."""

    lake: str
    journal: str
    upto: int
    trimmed: int

    def __init__(self, lake: str, journal: str, upto: int, trimmed: int) -> None:
        super().__init__(
            f"The lake in {lake} has the journal {journal!r} up to {upto}, and the journal itself begins with "
            f"{trimmed + 1}: what is between them is in neither. Name the lake to which this journal is "
            "archived, or none (the setting `lake`).",
            lake=lake,
            journal=journal,
            upto=upto,
            trimmed=trimmed,
        )
