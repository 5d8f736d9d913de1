"""How the program speaks and ends: exit codes, consoles, and orderly endings.

What a command answers goes to standard output; everything else (progress, summaries, complaints) goes to
standard error, so that output can always be piped. Colours and cursor movements appear in terminals only;
rich looks after that, and after NO_COLOR.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from palio.model.errors import FilterSyntaxError, PalioError


class ExitCode(IntEnum):
    """What the program ends with; every `--help` lists the first five."""

    SUCCESS = 0
    NO = 1
    USAGE = 2
    BAD_INPUT = 3
    INTERRUPTED = 130
    TERMINATED = 143
    CLOSED_PIPE = 141  # 128 + SIGPIPE: what a shell shows for a program that the signal ended


EXIT_CODES = "Exit codes: 0 yes or success · 1 no, or findings · 2 wrong usage · 3 bad input · 141 closed pipe"


def output_console() -> Console:
    """For answers. Built when needed, because tests exchange the streams."""
    return Console(highlight=False, markup=False, emoji=False)


def error_console() -> Console:
    """For everything that is no answer."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def help_epilog(*examples: str, notes: str = "") -> str:
    """The end of a help text: examples as they are typed, and the exit codes.

    The tests run every line that starts with `$ palio`.
    """
    shown = "\n".join(f"  [cyan]$ {escape(example)}[/cyan]" for example in examples)
    codes = EXIT_CODES.replace(" · 3", "\n            · 3")
    return "\n\n".join(
        part for part in (f"[bold]Examples[/bold]\n{shown}", notes, f"[dim]{codes}[/dim]") if part
    )


def escape(text: str) -> str:
    """Text in which rich's markup takes nothing for a tag."""
    return text.replace("[", r"\[")


def write_json(document: Any) -> None:
    """One line of JSON on standard output, at once: whoever reads along should not have to wait."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(document, ensure_ascii=not unicode) + "\n")
    sys.stdout.flush()


def complaint(error: PalioError, place: str = "", *, colour: str = "red") -> Text:
    """An error as a person reads it: where, what, and for a filter's text a mark under the mistake."""
    text = Text(f"{place}: " if place else "", style="bold")
    text.append(printable(str(error)), style=f"not bold {colour}")
    if isinstance(error, FilterSyntaxError):
        line, mark = error.pointer().split("\n")
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


@contextmanager
def orderly_endings() -> Iterator[None]:
    """Turn errors, closed pipes and Ctrl-C into exit codes; never a stack trace for what users do."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be reported, and not at the shutdown
    except PalioError as error:
        error_console().print(complaint(error), soft_wrap=True)
        raise typer.Exit(ExitCode.BAD_INPUT) from None
    except BrokenPipeError:
        _abandon_output()
        raise typer.Exit(ExitCode.CLOSED_PIPE) from None
    except OSError as problem:
        # Reading has its own errors, so this is the output: a full disk, most likely.
        what = problem.filename if isinstance(problem.filename, str) else "the output"
        reason = f"Cannot write {printable(what)}: {problem.strerror or problem}."
        error_console().print(reason, style="red", soft_wrap=True)
        _abandon_output()
        raise typer.Exit(ExitCode.BAD_INPUT) from None
    except SystemExit as ending:
        # rich ends the program with 1 when it meets a closed pipe
        if isinstance(ending.__context__, BrokenPipeError):
            _abandon_output()
            raise typer.Exit(ExitCode.CLOSED_PIPE) from None
        raise
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _abandon_output() -> None:
    """Nobody reads on: what is still in buffers must not cause an error when the interpreter flushes them."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(io.UnsupportedOperation):  # a stream that is no file
            os.dup2(nowhere, stream.fileno())
