"""What can be wrong with an experiment."""

from __future__ import annotations

from palio.model.errors import PalioError


class InvalidExperiment(PalioError):
    """An experiment that cannot be run; `file` and `path` say where the mistake is."""

    file: str
    path: str
    reason: str

    def __init__(self, file: str, path: str, reason: str) -> None:
        place = f"{file}, at {path}" if path else file
        super().__init__(f"{place}: {reason}", file=file, path=path, reason=reason)


class UnknownExperiment(PalioError):
    """A name that is neither a file nor a ready experiment."""

    name: str

    def __init__(self, name: str, ready: list[str]) -> None:
        super().__init__(
            f"There is no file {name!r} and no ready experiment of that name; ready are: {', '.join(ready)}.",
            name=name,
            ready=ready,
        )


class UnusableRuns(PalioError):
    """A file of finished runs that cannot be read or belongs to something else."""

    path: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be used: {reason}", path=path)
