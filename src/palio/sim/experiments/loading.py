"""Experiments from files, and those that come with the package."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import msgspec

from palio.sim.experiments.checking import check
from palio.sim.experiments.definition import Experiment
from palio.sim.experiments.errors import InvalidExperiment, UnknownExperiment

_READY = resources.files("palio.sim.experiments") / "ready"


def ready_experiments() -> list[str]:
    """The names of the experiments that come with the package."""
    names = [entry.name for entry in _READY.iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load(name: str) -> Experiment:
    """Read a TOML file, or the ready experiment of that name.

    Raises `UnknownExperiment` if there is neither, `InvalidExperiment` if it cannot be run as it stands.
    """
    if name in ready_experiments():
        return parse((_READY / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml", name)
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError):
        raise UnknownExperiment(name, ready_experiments()) from None
    except UnicodeDecodeError:
        raise InvalidExperiment(name, "", "It is no UTF-8 text.") from None
    except OSError as problem:
        raise InvalidExperiment(name, "", f"It cannot be read: {problem.strerror}.") from None
    return parse(text, name, path.stem)


def parse(text: str, file: str = "experiment.toml", name: str = "experiment") -> Experiment:
    """An experiment from the text of its file, checked. Raises `InvalidExperiment`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InvalidExperiment(file, "", f"It is no TOML: {problem}.") from None
    document.setdefault("name", name)
    try:
        experiment = msgspec.convert(document, Experiment)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at ")
        raise InvalidExperiment(file, path.strip("`"), f"{reason}.") from None
    check(experiment, file)
    return experiment
