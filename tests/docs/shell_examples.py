"""Commands on a page, run as they are written: brokers as processes, on ports that are free."""

from __future__ import annotations

import os
import re
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cli.forks import Forked, forks

PATIENCE = 60.0


def waited(ready: Callable[[], object], otherwise: Callable[[], str]) -> None:
    """Wait until something is so. Fails with a text if it never is."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.01)


class PageShell:
    """Where the commands of a page are run."""

    def __init__(self, page: str, folder: Path, ports: dict[str, str]) -> None:
        self._folder = folder
        self.page = re.sub(r"127\.0\.0\.1:(\d+)", lambda found: f"127.0.0.1:{ports[found[1]]}", page)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PALIO_")}
        self._environment = environment | {"COLUMNS": "200", "XDG_CONFIG_HOME": str(folder / "config")}
        self.processes: list[Forked] = []

    def blocks(self, mark: str) -> list[str]:
        """The blocks of commands behind a mark."""
        return re.findall(rf"<!-- {mark} -->\n```sh\n(.*?)\n```", self.page, re.DOTALL)

    def start(self, command: str, output: str) -> Forked:
        """Start a command; what it says goes to a file of this name."""
        with (self._folder / output).open("wb") as file:
            words = shlex.split(command)[1:]
            process = forks().start(*words, environment=self._environment, folder=self._folder, output=file)
        self.processes.append(process)
        return process

    def said(self, output: str) -> str:
        text = (self._folder / output).read_text()
        return "\n".join(line.rstrip() for line in text.splitlines())

    def run(self, command: str) -> tuple[int, str]:
        """Run a command to its end. Returns its exit code, and what it said."""
        code = self.start(command, "answer").wait(PATIENCE)
        return code, self.said("answer")


@contextmanager
def page_shell(page: str, folder: Path) -> Iterator[PageShell]:
    """A shell for a page, on ports that are kept for whoever is told of them: bound, and never listened on."""
    with ExitStack() as kept:
        ports = {}
        for shown in set(re.findall(r"127\.0\.0\.1:(\d+)", page)):
            one = kept.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
            ports[shown] = str(one.getsockname()[1])
        shell = PageShell(page, folder, ports)
        try:
            yield shell
        finally:
            for process in shell.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
