"""`palio spark package`: the archive that brings palio to the executors of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from palio.cli.program.dressing import option
from palio.cli.program.terminal import error_console, help_epilog, output_console, say
from palio.spark.runtime.packing import build_package

EPILOG = help_epilog(
    "palio spark package -o /tmp/palio-spark.tar.gz",
    notes="Executors need the same minor version of Python and the same platform as this machine.",
)


def package(
    output: Annotated[Path, option("FILE", "Where the archive goes.", "--output", "-o")] = Path(
        "palio-spark.tar.gz"
    ),
) -> None:
    """Build an archive of palio and what it needs, for executors that do not have it.

    The executors' Python can be bare. The output is the options of spark-submit,
    and of every palio spark command, that bring the archive to them.
    """
    with error_console().status("packing"):
        built = build_package(output)
    console = output_console()
    for name, value in built.settings().items():
        console.print(f"--conf {name}={value}", soft_wrap=True)
    size = f"{len(built.distributions)} packages, {built.bytes / 2**20:,.0f} MB"
    say(f"{size}, for Python {built.python} on {built.platform}")
