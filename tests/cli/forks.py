"""Processes of the program that are ready at once: forked from one that has loaded it, and did nothing else.

Each is a process of its own, with its own memory, files and signals: it can be killed, frozen and limited as
any other. Only what happens between `exec` and the first line of the program is left out; the tests of the
program as a whole have that. The process that forks (`python -m tests.cli.forks FD`) is started with the first
request. A request is one packet on a socket, with the three standard streams; answers are the number of the new
process, and later how it ended. When the socket ends, so do all processes that came from it and are left.

Shells find a program `palio` that asks in the same way (`on_path`, `tests/cli/asking.py`).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from tests.forking import stand_in

ROOT = Path(__file__).parents[2]
PROGRAM = "palio.cli.main:main"
# What a broker loads when it is started, and the commands that talk to it.
_LOADED = (
    *("palio.cli.main", "palio.cli.brokers.up", "palio.cli.network.commands"),
    *("palio.cli.events.pub", "palio.cli.events.sub"),
    *("palio.broker.broker", "palio.broker.logs", "palio.broker.http", "palio.broker.gateway.gateway"),
    *(
        "palio.store.lake.reading",
        "palio.store.postgresql",
        "sqlalchemy.dialects.sqlite",
        "sqlalchemy.dialects.postgresql",
    ),
    *(
        "aiohttp",
        "prometheus_client",
        "starlette",
        "uvicorn",
        "uvloop",
        "websockets",
        "zoneinfo",
        "encodings.idna",
    ),
)
_PACKET = 1 << 17  # bytes; an environment is the largest part
_PAUSE = 0.005  # seconds between two looks for an end


class Forked:
    """A process, with as much of `subprocess.Popen` as the tests need."""

    def __init__(
        self, pid: int, poll: Callable[[], None], stdout: TextIO | None, stderr: TextIO | None
    ) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._hear = poll

    def poll(self) -> int | None:
        self._hear()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(_PAUSE)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it still writes, and its end."""
        said = {"stdout": "", "stderr": ""}

        def read(name: str, stream: TextIO) -> None:
            said[name] = stream.read()
            stream.close()

        streams = {"stdout": self.stdout, "stderr": self.stderr}
        readers = [
            threading.Thread(target=read, args=(name, stream), daemon=True)
            for name, stream in streams.items()
            if stream is not None and not stream.closed
        ]
        for one in readers:
            one.start()
        self.wait(timeout)
        for one in readers:
            one.join(timeout)
        return said["stdout"], said["stderr"]


class Forks:
    """The process that forks, and those that came from it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _PACKET)
        self._lock = threading.Lock()
        self._control = ours
        self._running: dict[int, Forked] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="palio-forks-")
        self._path = Path(self._folder.name) / "socket"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as shells:
            shells.bind(str(self._path))
            shells.listen()
            passed = [theirs.fileno(), shells.fileno()]
            self._origin = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.forks", *map(str, passed)],
                cwd=ROOT, pass_fds=passed, stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONUTF8": "1"},
            )  # fmt: skip
        theirs.close()
        atexit.register(self.end)

    def on_path(self, environment: dict[str, str]) -> dict[str, str]:
        """An environment in which `palio` is a process that is forked, for the commands of a shell."""
        program = Path(self._folder.name) / "bin" / "palio"
        if not program.exists():
            words = [sys.executable, "-I", "-S", str(ROOT / "tests/cli/asking.py"), str(self._path)]
            program.parent.mkdir()
            program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            program.chmod(0o755)
        return environment | {"PATH": f"{program.parent}{os.pathsep}{environment['PATH']}"}

    def start(
        self,
        *arguments: str,
        environment: dict[str, str],
        folder: Path,
        function: str = PROGRAM,
        output: Any = None,
    ) -> Forked:
        """Run a function with arguments as those of a program; with pipes, or into an open file."""
        request = {"function": function, "words": arguments, "folder": str(folder), "environment": environment}
        pipes = [] if output is not None else [os.pipe(), os.pipe()]
        written = [write for _, write in pipes] or [output.fileno()] * 2
        with open(os.devnull) as nothing, self._lock:
            socket.send_fds(self._control, [json.dumps(request).encode()], [nothing.fileno(), *written])
            while "started" not in (answer := self._receive()):
                self._ended(answer)
            read = [os.fdopen(one, encoding="utf-8") for one, _ in pipes] or [None, None]
            process = Forked(answer["started"], self._hear, *read)
            self._running[process.pid] = process
        for _, write in pipes:
            os.close(write)
        return process

    def _receive(self) -> dict[str, int]:
        packet = self._control.recv(_PACKET)
        assert packet, "the process that forks is gone"
        return dict(json.loads(packet))

    def _hear(self) -> None:
        """Take note of all that has ended."""
        with self._lock:
            while select.select([self._control], [], [], 0)[0]:
                self._ended(self._receive())

    def _ended(self, answer: dict[str, int]) -> None:
        self._running.pop(answer["ended"]).returncode = answer["code"]

    def end(self) -> None:
        self._control.close()
        self._origin.wait()
        self._folder.cleanup()


@cache
def forks() -> Forks:
    """Those of this process."""
    return Forks()


# The process that forks


def serve(control: socket.socket, shells: socket.socket) -> Callable[[], Any] | None:
    """Fork until the socket ends. Returns what a new process has to do; None in the first one."""
    for name in _LOADED:
        import_module(name)
    from typer.testing import CliRunner

    from palio.cli.main import app
    from palio.cli.program import endings

    assert CliRunner().invoke(app, ["covers", "x > 1", "x > 2"]).exit_code == 0  # some is loaded by any command
    # What is loaded need not be in use; to take all of it apart would take half of a command.
    endings._BUSY = frozenset()
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal of the tests ends them, and so this
    signal.set_wakeup_fd(wake)
    asking = {control}
    children: dict[int, socket.socket] = {}  # by whom each was asked for
    while control in asking:
        ready, _, _ = select.select([*asking, shells, woken], [], [])
        if woken in ready:
            os.read(woken, 1024)
            _reap(children)
        if shells in ready:
            asking.add(shells.accept()[0])
        for one in asking.intersection(ready):
            request, streams, _, _ = socket.recv_fds(one, _PACKET, 3)
            if not request:
                asking.discard(one)
                _kill(children, one)
                one.close()
                continue
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                for number in (woken, wake):
                    os.close(number)
                for open_one in (*asking, shells):
                    open_one.close()
                return _become(json.loads(request), streams)
            children[child] = one
            _answer(one, started=child)
            for number in streams:
                os.close(number)
    for one in asking:
        _kill(children, one)
    return None


def _reap(children: dict[int, socket.socket]) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        _answer(children.pop(child), ended=child, code=os.waitstatus_to_exitcode(status))


def _answer(asking: socket.socket, **answer: int) -> None:
    with suppress(OSError):  # whoever asked has gone, which is seen when it is listened to
        asking.send(json.dumps(answer).encode())


def _kill(children: dict[int, socket.socket], asking: socket.socket) -> None:
    for child, one in children.items():
        if one is asking:
            os.kill(child, signal.SIGKILL)


def _become(request: dict[str, Any], streams: list[int]) -> Callable[[], Any]:
    """Be a process as one is that a shell has started in the foreground."""
    stand_in(streams, request["environment"])
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    module, _, name = request["function"].partition(":")
    sys.argv = [module, *request["words"]]
    function: Callable[[], Any] = getattr(import_module(module), name)
    return function


if __name__ == "__main__":
    work = serve(*[socket.socket(fileno=int(number)) for number in sys.argv[1:]])
    if work is not None:
        sys.exit(work())
