"""What the jobs of `palio spark` have in common: where Spark runs, its settings, and a bar that moves."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.control import Control
from rich.segment import ControlType

from palio.cli.program.credentials import said, variable
from palio.cli.program.dressing import option
from palio.cli.program.terminal import error_console, say
from palio.cli.spark.output import quiet_session
from palio.spark.errors import JobFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[str | None, option("MASTER", "local\\[4], spark://…, yarn, k8s://…; local\\[*] by default.")]
Remote = Annotated[str | None, option("ADDRESS", "Spark Connect: sc://…, or local\\[2] for its own server.")]
Filters = option("PLACE", "Parquet or JSON lines: subscriptions' filters.", "--filters", "-f")
Settings = Annotated[
    list[str] | None, option("KEY=VALUE", "A setting of Spark; may be given several times.", "--conf")
]

# What our own errors, and those of Python, look like in a stack of Java.
_OURS = re.compile(r"^\s*palio\.[\w.]*?(\w+): (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:\s+.*\n)+(\S.*)")
# `[PATH_ALREADY_EXISTS] … SQLSTATE: 42K04`: nobody reads these for the first time.
_CLASS = re.compile(r"^\[[A-Z_.]+\] | SQLSTATE: \w+$")
# What users can do something about, and what.
_KNOWN = {
    r"No space left on device": "Make room, or let another folder be used: --conf spark.local.dir=FOLDER for "
    "what Spark keeps meanwhile, and the option that names the output.",
    r'Cannot run program "[^"]*"': "This is how workers are started: PYSPARK_PYTHON must name a Python with "
    "palio, or not be set.",
    r"No module named '[^']*'": "The Python of the workers, which PYSPARK_PYTHON names, lacks it: `palio spark "
    "package` brings palio to them, and `palio doctor` looks at them.",
    r"[Pp]ath \S+ already exists": "Choose another one, or remove it first.",
    r"Permission denied": "Choose a folder that you may write to.",
    r"(?:java.lang.)?OutOfMemoryError[^\n]*": "Give Spark more memory: --conf spark.driver.memory=4g.",
    r"Python versions? in worker[^\n]*": "PYSPARK_PYTHON must name a Python of the same version as this one.",
}
_ENDED = (
    "Somebody has killed it, or the machine was out of memory: --conf spark.driver.memory=1g lets it use less."
)
_MORE = "All that Spark says about it shows --conf spark.log.level=ERROR."


@contextmanager
def opened(
    master: str | None, remote: str | None, settings: list[str] | None, name: str, *, own_bar: bool = False
) -> Iterator[SparkSession]:
    """A session for a job. In a terminal Spark's bar shows how far its stages are; or the job has its own.

    Its workers show brokers what was said for the whole program (`palio spark … --token-file FILE`).
    """
    if master is not None and remote is not None:
        raise typer.BadParameter("--master and --remote exclude each other.")
    chosen = dict(_setting(one) for one in settings or ())
    if error_console().is_terminal and not own_bar:
        chosen.setdefault("spark.ui.showConsoleProgress", "true")
    for credential, file in said().items():
        os.environ[variable(credential)] = os.path.abspath(file)  # from there workers inherit it
    with ExitStack() as kept:
        with _starting():
            session = quiet_session(master, remote=remote, name=f"palio {name}", settings=chosen)
            spark = kept.enter_context(session)
        with _in_a_sentence():
            yield spark


@contextmanager
def _starting() -> Iterator[None]:
    """A line in a terminal while nothing else is to be seen; it takes seconds."""
    console = error_console()
    if not console.is_terminal:
        yield
        return
    console.print("Starting Spark …", style="dim", end="\r")
    try:
        yield
    finally:
        console.control(Control((ControlType.ERASE_IN_LINE, 2)))


@contextmanager
def told_if_interrupted(told: Callable[[], str]) -> Iterator[None]:
    """Who interrupts a job hears what became of the work, and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"Interrupted: {told()}", "yellow")
        raise


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """A job that failed says why, as far as that can be found in what Spark says."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as problem:  # the second where results are streamed
        raise _failure(str(problem)) from None
    except (ConnectionRefusedError, ConnectionResetError):
        raise JobFailed("Spark's Java has ended meanwhile.", _ENDED) from None


def _failure(text: str) -> JobFailed:
    """With the message of our own error, which a task raised; with one that we know; or what Spark says."""
    if (ours := _OURS.search(text)) is not None:
        return JobFailed(ours[2], error=ours[1])
    for pattern, advice in _KNOWN.items():
        if (found := re.search(pattern, text)) is not None:
            return JobFailed(found[0], advice, "OutputExists" if "already exists" in found[0] else "")
    python = _PYTHON.search(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = python[1] if python is not None else (lines or ["Spark does not say why."])[0]
    return JobFailed(_CLASS.sub("", said), _MORE)


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"--conf takes KEY=VALUE, not {text!r}.")
    return key.strip(), value.strip()
