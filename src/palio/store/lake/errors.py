"""What can be wrong with a lake, each with a finished sentence."""

from __future__ import annotations

from dataclasses import InitVar

from palio.model.errors import PalioError


class LakeError(PalioError):
    """The base of all that can be wrong with a lake."""


class NoLake(LakeError):
    """A folder that is no lake."""

    lake: str
    sentence = "There is no lake in {lake}; `palio spark archive` makes one."


class WrongLake(LakeError):
    """A place where a lake cannot be."""

    lake: str
    reason: InitVar[str]
    sentence = "A lake cannot be in {lake!r}: {reason}"


class LakeTooNew(LakeError):
    """A lake that was written by a later version."""

    lake: str
    format: int
    known: int
    sentence = (
        "The lake in {lake} has the format {format}, and this version of Palio knows those up to {known}. Read "
        "it with a newer one; nothing was changed."
    )


class LakeDamaged(LakeError):
    """A lake in which something is missing, or cannot be read; `file` is which, where it is one file."""

    lake: str
    reason: InitVar[str]
    file: str | None = None
    advice: InitVar[str] = "Restore it from a copy."
    sentence = "The lake in {lake} is damaged: {reason} {advice}"


class LakeChanged(LakeError):
    """Somebody else has changed the lake meanwhile; nothing of this change was done."""

    lake: str
    version: int
    sentence = "The lake in {lake} has become version {version} by somebody else meanwhile. Try it again."


class LakeBehind(LakeError):
    """A lake that ends before the journal begins: what was published between them is in neither."""

    lake: str
    journal: str
    upto: int
    trimmed: int

    def sentence(self) -> str:
        return (
            f"The lake in {self.lake} has the journal {self.journal!r} up to {self.upto}, and the journal "
            f"itself begins with {self.trimmed + 1}: what is between them is in neither. Name the lake to "
            "which this journal is archived, or none (the setting `lake`)."
        )
