"""What the jobs of `palio spark` have in common: where Spark runs, its settings, and a bar that moves."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.spark_output import quiet_session
from palio.cli.terminal import error_console
from palio.spark.errors import JobFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Master = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="MASTER", help="local\\[4], spark://…, yarn, k8s://…; local\\[*] by default."
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        "--remote", metavar="ADDRESS", help="Spark Connect: sc://…, or local\\[2] for its own server."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be given several times."),
]


@contextmanager
def opened(
    master: str | None, remote: str | None, settings: list[str] | None, name: str, *, own_bar: bool = False
) -> Iterator[SparkSession]:
    """A session for a job. In a terminal Spark's bar shows how far its stages are; or the job has its own."""
    if master is not None and remote is not None:
        raise typer.BadParameter("--master and --remote exclude each other.")
    chosen = dict(_setting(one) for one in settings or ())
    if error_console().is_terminal and not own_bar:
        chosen.setdefault("spark.ui.showConsoleProgress", "true")
    with (
        quiet_session(master, remote=remote, name=f"palio {name}", settings=chosen) as spark,
        _in_a_sentence(),
    ):
        yield spark


@contextmanager
def told_if_interrupted(told: Callable[[], str]) -> Iterator[None]:
    """Who interrupts a job hears what became of the work, and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        error_console().print(f"Interrupted: {told()}", style="yellow", soft_wrap=True)
        raise


def write_table(table: DataFrame, output: str, *, overwrite: bool = False) -> None:
    """Write Parquet to a folder that is new. What was interrupted before it was complete does not count."""
    again = overwrite or _is_unfinished(Path(output))
    table.write.mode("overwrite" if again else "errorifexists").parquet(output)


def _is_unfinished(folder: Path) -> bool:
    """Whether a folder of this machine has only what Spark leaves behind if it is ended while it writes."""
    try:
        names = set(os.listdir(folder))
    except OSError:
        return False
    return not names or ("_temporary" in names and "_SUCCESS" not in names)


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """A job that failed says why, as far as that can be found in what Spark says."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError) as problem:  # the second where results are streamed
        raise JobFailed(_reason(str(problem))) from None


def _reason(text: str) -> str:
    """The message of our own error, which a task raised; or else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = re.findall(r"^\s*palio\.[\w.]+: (.+)$", text, re.MULTILINE)
    return (ours or lines or ["Spark does not say why."])[0]


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"--conf takes KEY=VALUE, not {text!r}.")
    return key.strip(), value.strip()
