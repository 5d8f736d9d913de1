"""What cannot be taken back is told first, and done when somebody says --yes."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from palio.cli.program.dressing import flag
from palio.cli.program.terminal import ExitCode, say

Yes = Annotated[bool, flag("--yes", "Do it: it cannot be taken back.")]


def want_yes(sentence: str) -> NoReturn:
    """Say what would be done, and that it was not."""
    say(f"{sentence} If that is what you want, add --yes.", "yellow")
    raise typer.Exit(ExitCode.NO)
