"""Brokers as processes on this machine: started, killed, stopped, frozen, linked by wires that break.

Nothing is waited for by a fixed time: `until` asks again and again for a condition, and fails after a while
with what was awaited. Leaving the `async with` ends every process; if a test fails, the logs are printed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvloop

from palio.cli.chaos.proxy import LinkProxy
from tests.cli.forks import PROGRAM, Forked, forks
from tests.live.talking import inspect

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 60.0  # seconds for which a condition may not hold; a busy machine is slow
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.02  # seconds between two looks; what takes long is asked for less often
_LINES = 60  # of a log that are printed when a test fails


async def until(
    what: str,
    holds: Callable[[], Any],
    patience: float = PATIENCE,
    progress: Callable[[], object] = lambda: None,
) -> Any:
    """Wait for a condition; `holds` may be a coroutine function. Returns what it gives.

    Patience begins anew whenever `progress` gives something else.
    """
    deadline, reached = time.monotonic() + patience, progress()
    pause = _FIRST_PAUSE
    while True:
        if reached != (now := progress()):
            deadline, reached = time.monotonic() + patience, now
        result = holds()
        if asyncio.iscoroutine(result):
            result = await result
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"After {patience:g} seconds: not {what}.")
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)


def play(scene: Callable[[], Any]) -> None:
    """Run a coroutine function to its end."""
    uvloop.run(scene())


class Node:
    """One broker: its settings, its folder, and its process, if it has one."""

    def __init__(self, folder: Path, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.settings = settings
        # Bound and never listened on: the port is kept for this broker, which others can be told of at once.
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        self.port: int = self._port.getsockname()[1]
        self.process: Forked | None = None
        self.clock: Path | None = None
        self._ready = self.folder / "ready.json"

    @property
    def address(self) -> str:
        return f"palio://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log(self) -> str:
        file = self.folder / "log.txt"
        return file.read_text(errors="replace") if file.exists() else ""

    def launch(self, *more: str) -> None:
        """Start the process, with more words for the program."""
        file = self.folder / "palio.toml"
        all_settings = {
            "name": self.name,
            "listen": f"127.0.0.1:{self.port}",
            "http": "off",
            "data": str(self.folder / "data"),
        } | self.settings
        file.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in all_settings.items()))
        self._ready.unlink(missing_ok=True)
        function = PROGRAM
        words = ["up", "--config", str(file), "--ready-file", str(self._ready), *more]
        if self.clock is not None:
            function = "tests.live.serve:main"
            words = [str(file), str(self._ready), str(self.clock)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PALIO_")}
        with (self.folder / "log.txt").open("ab") as log:
            self.process = forks().start(
                *words, environment=environment, folder=ROOT, function=function, output=log
            )

    async def up(self) -> None:
        """Wait until it is up."""

        def is_up() -> bool:
            if self.process is None or self.process.poll() is not None:
                raise AssertionError(f"The broker {self.name} did not start:\n{self.log[-4_000:]}")
            return self._ready.exists()

        await until(f"{self.name} is up", is_up)

    async def start(self) -> None:
        self.launch()
        await self.up()

    async def set_clock(self, seconds: float) -> None:
        """Let the clock be wrong by so many seconds, from its next start or, if it is up, from now on."""
        self.clock = self.folder / "clock"
        self.clock.write_text(str(seconds))
        if self.process is not None:
            os.kill(self.pid, signal.SIGUSR1)
            read = self.clock.with_suffix(".read")
            await until("the clock is set", lambda: read.read_text() == str(seconds))

    # Ends and pauses

    def kill(self) -> None:
        """`kill -9`."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def stop(self) -> int:
        """End it in order. Returns its exit code."""
        assert self.process is not None
        self.process.terminate()
        return await asyncio.to_thread(self.process.wait, PATIENCE)

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def discard(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self._port.close()

    # Looking in

    def memory(self) -> float:
        """The megabytes that the process has in memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) / 1_024

    async def inspect(self, what: str) -> list[Any]:
        """What the broker says about itself."""
        return await inspect(self.port, what)

    async def neighbours(self) -> set[str]:
        """The brokers that it has a link to."""
        return {row["name"] for row in await self.inspect("peers") if row["name"]}


class Network:
    """Brokers and the links between them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self._folder = folder
        self._settings = settings
        self.nodes: dict[str, Node] = {}
        self.wires: dict[tuple[str, str], LinkProxy] = {}
        self._links: list[tuple[str, str]] = []

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes.values():
            node.discard()
        for wire in self.wires.values():
            await wire.close()
        if problem is not None:
            for node in self.nodes.values():
                lines = node.log.splitlines()[-_LINES:]
                print(f"--- the log of {node.name}", *lines, sep="\n")

    def add(self, name: str, /, **settings: Any) -> Node:
        """A broker that is not started yet."""
        node = self.nodes[name] = Node(self._folder, name, self._settings | settings)
        return node

    async def link(self, one: str, other: str, *, kind: str = "peer", wire: bool = False) -> None:
        """Let `one` connect to `other` when it is started."""
        port = self[other].port
        if wire:
            proxy = self.wires[one, other] = LinkProxy(lambda: self[other].port)
            await proxy.start()
            port = proxy.port
        settings = self[one].settings
        peer = {"address": f"127.0.0.1:{port}", "kind": kind}
        settings["peers"] = [*settings.get("peers", ()), peer]
        self._links.append((one, other))

    async def build(self, links: list[tuple[str, str]], *, kind: str = "peer", wires: bool = False) -> None:
        """Start all brokers that the links name, and wait for the links; the first of each connects."""
        for name in sorted({name for link in links for name in link} - set(self.nodes)):
            self.add(name)
        for one, other in links:
            await self.link(one, other, kind=kind, wire=wires)
        for node in self.nodes.values():
            node.launch()
        await asyncio.gather(*[node.up() for node in self.nodes.values()])
        await self.linked()

    async def linked(self) -> None:
        """Wait until all links are there."""

        async def all_there() -> bool:
            wanted: dict[str, set[str]] = {}
            for one, other in self._links:
                wanted.setdefault(one, set()).add(other)
                wanted.setdefault(other, set()).add(one)
            for name, others in wanted.items():
                if not others <= await self[name].neighbours():
                    return False
            return True

        await until("all links are there", all_there)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
