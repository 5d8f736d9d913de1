"""How the program speaks: consoles, help, and what its exit codes mean.

What a command answers goes to standard output; everything else (progress, summaries, complaints) goes to
standard error, so that output can always be piped. Colours and cursor movements appear in terminals only;
rich looks after that, and after NO_COLOR. It is loaded where something of it is to be seen.
"""

from __future__ import annotations

import json
import os
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from palio.model.errors import PalioError, pointer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class ExitCode(IntEnum):
    """The codes; every `--help` lists those that scripts ask for."""

    SUCCESS = 0
    NO = 1
    USAGE = 2
    BAD_INPUT = 3
    NO_BROKER = 4
    NOT_ALLOWED = 5
    NOT_HERE = 6
    INTERRUPTED = 130
    CLOSED_PIPE = 141  # 128 + SIGPIPE: what a shell shows for a program that the signal ended
    TERMINATED = 143


MEANINGS = {
    ExitCode.SUCCESS: "yes or success",
    ExitCode.NO: "no, or findings",
    ExitCode.USAGE: "wrong usage",
    ExitCode.BAD_INPUT: "bad input",
    ExitCode.NO_BROKER: "no broker",
    ExitCode.NOT_ALLOWED: "not allowed",
    ExitCode.NOT_HERE: "missing here",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.CLOSED_PIPE: "closed pipe",
    ExitCode.TERMINATED: "terminated",
}
# What the help of every command has room for.
_LISTED = (*(code for code in ExitCode if code < ExitCode.INTERRUPTED), ExitCode.CLOSED_PIPE)
EXIT_CODES = "Exit codes: " + " · ".join(f"{code:d} {MEANINGS[code]}" for code in _LISTED)


def output_console() -> Console:
    """For answers. Built when needed, because tests exchange the streams."""
    from rich.console import Console  # noqa: PLC0415 (it takes as long to load as typer)

    return Console(highlight=False, markup=False, emoji=False)


def error_console() -> Console:
    """For everything that is no answer."""
    from rich.console import Console  # noqa: PLC0415 (as above)

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def is_dressed() -> bool:
    """Whether what is no answer may have colours and move: whoever reads it is a person, or says so."""
    told = os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE")
    return bool(told) or sys.stderr.isatty()


def say(sentence: str, style: str = "dim") -> None:
    """Tell something that is no answer. Lines are never broken by us."""
    if is_dressed() or not sentence.isprintable():
        error_console().print(sentence, style=style, soft_wrap=True)
    else:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def help_epilog(*examples: str, notes: str = "") -> str:
    """The end of a help text: examples as they are typed, and the exit codes.

    The tests run every line that starts with `$ palio`.
    """
    shown = "\n".join(f"  [cyan]$ {escape(example)}[/cyan]" for example in examples)
    codes = EXIT_CODES.replace(" · 4", "\n            · 4")
    return "\n\n".join(filter(None, (f"[bold]Examples[/bold]\n{shown}", notes, f"[dim]{codes}[/dim]")))


def escape(text: str) -> str:
    """Text in which rich's markup takes nothing for a tag."""
    return text.replace("[", r"\[")


def write_line(text: str) -> None:
    """Write a line to standard output, as it is."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_json(document: Any) -> None:
    """One line of JSON on standard output, at once: whoever reads along should not have to wait."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(document, ensure_ascii=not unicode) + "\n")
    sys.stdout.flush()


def complaint(error: PalioError, place: str = "", *, colour: str = "red") -> Text:
    """An error as a person reads it: where, what, and for a filter's text a mark under the mistake."""
    from rich.text import Text  # noqa: PLC0415 (as above)

    text = Text(f"{place}: " if place else "", style="bold")
    text.append(printable(str(error)), style=f"not bold {colour}")
    wrong, column = error.fields.get("text"), error.fields.get("column")  # also of what a broker has refused
    if isinstance(wrong, str) and isinstance(column, int):
        line, mark = pointer(wrong, column).split("\n")
        text.append(f"\n  {printable(line)}", style="not bold")
        text.append(f"\n  {mark}", style=f"bold {colour}")
    return text


def printable(text: str) -> str:
    """Without the control characters by which a file could write what it likes into a terminal."""
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text)


def plural(count: int, noun: str) -> str:
    """`1 event`, `2,000 events`, `3 matches`."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"
