"""Sessions of commands: without the half dozen lines with which Spark greets everybody, and its last words.

Greetings name log profiles, native libraries and incubating modules of Java, and for streams each start of a
worker: nothing that a user could do anything about. Some come from Java itself before any setting of Spark is
read, so they are left out on their way: while the session starts, standard error is a pipe, which Spark
inherits, and a thread passes on everything else. It does so for as long as Spark runs, at once and unchanged:
Spark's progress bar arrives as ever.

Of a task that fails Spark logs a stack of Java for each attempt. The command says in a sentence why a job
failed, so from when the session is there the log is silent.

An interrupt is no error. It ends the job at once, and from then on nobody speaks but the command itself:
neither Java about the tasks that it gives up, nor the bridge to it about the answer that it was waiting for.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from palio.spark.runtime.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STANDARD_ERROR = 2
_LOG_LEVEL = "spark.log.level"
_GREETING = re.compile(
    rb"WARNING: Using incubator modules"
    rb"|Using Spark's default log4j profile"
    rb"|Setting default log level to "
    rb"|Setting Spark log level to "
    rb"|To adjust logging level use "
    rb"|(Starting )?Streaming TransformWithState"  # each worker of a stream, several times a batch
    rb"|[\d/]+ [\d:]+ WARN "  # those from before our own level holds
    rb"|\s+at [\w.$/]+\("  # where in Java it was that something went wrong
)


@contextmanager
def quiet_session(
    master: str | None = None,
    *,
    remote: str | None = None,
    name: str,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """What `palio.spark.runtime.session.session` gives. Whoever sets a level of logging gets everything.

    Interrupts end it with `KeyboardInterrupt`, and nothing else.
    """
    if _LOG_LEVEL in (settings or {}):
        with session(master, remote=remote, name=name, settings=settings) as spark:
            yield spark
        return
    chosen = {_LOG_LEVEL: "OFF"} | dict(settings or {})
    hearing = _Hearing()
    try:
        with ExitStack() as kept:
            kept.enter_context(hearing.of_interrupts())
            with hearing.without_greetings():
                spark = kept.enter_context(session(master, remote=remote, name=name, settings=chosen))
            hearing.listen()  # Spark has put an ear of its own there
            yield spark
    except Exception:
        if hearing.interrupted:  # what became of all that was under way does not matter any more
            raise KeyboardInterrupt from None
        raise


class _Hearing:
    """Who is heard: of Spark everything but greetings, and nothing any more once it was interrupted."""

    def __init__(self) -> None:
        self.interrupted = False
        self._passing: Passing | None = None

    @contextmanager
    def of_interrupts(self) -> Iterator[None]:
        """As long as this lasts, Ctrl-C is for us."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former, disabled = signal.getsignal(signal.SIGINT), logging.root.manager.disable
        self.listen()
        try:
            with warnings.catch_warnings():  # so that what an interrupt changes about them does not stay
                yield
        finally:
            signal.signal(signal.SIGINT, former)
            logging.disable(disabled)

    def listen(self) -> None:
        """Take the place of whoever hears of Ctrl-C now."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: Any) -> None:
        self.interrupted = True
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")
        if self._passing is not None:
            self._passing.silent = True
        raise KeyboardInterrupt

    @contextmanager
    def without_greetings(self) -> Iterator[None]:
        """Whatever is started meanwhile writes its standard error through `Passing`."""
        try:
            original = os.dup(_STANDARD_ERROR)
        except OSError:  # it is closed, so nobody hears anything anyway
            yield
            return
        reading, writing = os.pipe()
        sys.stderr.flush()
        os.dup2(writing, _STANDARD_ERROR)
        os.close(writing)
        self._passing = Passing(reading, original)
        threading.Thread(target=self._passing.run, name="standard error", daemon=True).start()
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(original, _STANDARD_ERROR)


class Passing:
    """Passes on what comes from one file to another, but for lines that are greetings."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self.silent = False  # from then on nothing is passed on any more
        self._in_line = False  # whether a part of the current line has been passed on already
        self._left_out = False  # whether the last line was not: some have an empty one behind them

    def run(self) -> None:
        """Until nobody is left who could write."""
        waiting = b""
        while data := os.read(self._source, 1 << 16):
            *lines, rest = (waiting + data).split(b"\n")
            for line in lines:
                self._line(line + b"\n")
            # A progress bar has no end of line; whatever else has none yet waits for it.
            waiting = b"" if self._in_line or rest.startswith(b"\r") else rest
            if rest and not waiting:
                self._write(rest)
                self._in_line = True
        if waiting:
            self._write(waiting)
        os.close(self._source)
        os.close(self._target)

    def _line(self, line: bytes) -> None:
        greeting = not self._in_line and _GREETING.match(line) is not None
        if not greeting and not (self._left_out and line == b"\n"):
            self._write(line)
        self._in_line, self._left_out = False, greeting

    def _write(self, data: bytes) -> None:
        if self.silent:
            return
        with suppress(OSError):  # nobody listens any more, but Spark must not wait for that
            while data:
                data = data[os.write(self._target, data) :]
