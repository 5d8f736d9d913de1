"""How the program ends: which error means which exit code, in this one place, and never with a stack trace.

A script can tell from the code alone what to do: correct the input (2, 3), wait for the broker (4), ask for
rights (5), or set up the machine (6). docs/operations.md has the table too; a test compares them.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer

from palio.cli.program.terminal import ExitCode, complaint, error_console, printable, say
from palio.model.errors import PalioError

# By their names, as an error must not load what raises it; what is derived from one of them is one of them. All
# others are bad input.
ERRORS = {
    **dict.fromkeys(("NoBroker", "NotConnected", "ConnectionLost", "RequestTimeout"), ExitCode.NO_BROKER),
    **dict.fromkeys(("HistoryUnavailable", "HomeUnreachable", "PeerAway"), ExitCode.NO_BROKER),
    **dict.fromkeys(("NotAuthenticated", "NotAllowed"), ExitCode.NOT_ALLOWED),
    **dict.fromkeys(("MissingDependency", "NoCheckout", "CannotStart", "BrokerFailed"), ExitCode.NOT_HERE),
    "CannotStandBy": ExitCode.NOT_HERE,
    **dict.fromkeys(("StoreInUse", "StoreUnavailable", "StoreReplaced"), ExitCode.NOT_HERE),
    **dict.fromkeys(("JavaMissing", "SparkUnavailable", "JobFailed"), ExitCode.NOT_HERE),
}

# Who has processes or files of its own to look after in the end.
_BUSY = frozenset(("multiprocessing.process", "py4j", "sqlite3"))


def code_of(error: PalioError) -> ExitCode:
    """With what the program ends after an error; that of a job is what its task raised."""
    if (raised := getattr(error, "error", "")) and type(error).__name__ == "JobFailed":
        return ERRORS.get(raised, ExitCode.BAD_INPUT)
    named = (ERRORS[one.__name__] for one in type(error).__mro__ if one.__name__ in ERRORS)
    return next(named, ExitCode.BAD_INPUT)


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
        raise typer.Exit(code_of(error)) from None
    except BrokenPipeError:
        _abandon_output()
        raise typer.Exit(ExitCode.CLOSED_PIPE) from None
    except OSError as problem:
        # Reading has its own errors, so this is the output: a full disk, most likely.
        what = problem.filename if isinstance(problem.filename, str) else "the output"
        say(f"Cannot write {printable(what)}: {problem.strerror or problem}.", "red")
        _abandon_output()
        raise typer.Exit(ExitCode.NOT_HERE) from None
    except SystemExit as ending:
        # rich ends the program with 1 when it meets a closed pipe
        if isinstance(ending.__context__, BrokenPipeError):
            _abandon_output()
            raise typer.Exit(ExitCode.CLOSED_PIPE) from None
        raise
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def end(code: Any) -> NoReturn:
    """End the program with what `sys.exit` takes.

    To take an interpreter apart, object by object, takes a tenth of `palio pub`; so it is left as it is, unless
    somebody else is still at work. What is registered for the end is done all the same, and all is written.
    """
    if isinstance(code, int | None) and threading.active_count() == 1 and not _BUSY & sys.modules.keys():
        with suppress(OSError, ValueError):  # then it is reported as always
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code or 0)
    sys.exit(code)


def _abandon_output() -> None:
    """Nobody reads on: what is still in buffers must not cause an error when the interpreter flushes them."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(io.UnsupportedOperation):  # a stream that is no file
            os.dup2(nowhere, stream.fileno())
