"""What can be wrong with an experiment."""

from __future__ import annotations

from dataclasses import InitVar

from palio.model.errors import PalioError


class InvalidExperiment(PalioError):
    """An experiment that cannot be run; `file` and `path` say where the mistake is."""

    file: str
    path: str
    reason: str

    def sentence(self) -> str:
        place = f"{self.file}, at {self.path}" if self.path else self.file
        return f"{place}: {self.reason}"


class UnknownExperiment(PalioError):
    """A name that is neither a file nor a ready experiment."""

    name: str
    ready: list[str]

    def sentence(self) -> str:
        ready = ", ".join(self.ready)
        return f"There is no file {self.name!r} and no ready experiment of that name; ready are: {ready}."


class UnusableRuns(PalioError):
    """A file of finished runs that cannot be read or belongs to something else."""

    path: str
    reason: InitVar[str]
    sentence = "{path} cannot be used: {reason}"
