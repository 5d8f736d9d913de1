"""What cannot be taken back is told first, and done when somebody says --yes."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from palio.cli.program.terminal import ExitCode, error_console

Yes = Annotated[bool, typer.Option("--yes", help="Do it: it cannot be taken back.")]


def want_yes(sentence: str) -> NoReturn:
    """Say what would be done, and that it was not."""
    error_console().print(f"{sentence} If that is what you want, add --yes.", style="yellow", soft_wrap=True)
    raise typer.Exit(ExitCode.NO)
