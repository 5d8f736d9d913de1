"""The processes of a network: started together, watched, and ended together.

A member's standard input is a pipe of which this process holds the other end. Closing it stops the broker in
order; and if this process dies, however it dies, the system closes it. So no broker outlives its network.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from palio.broker.settings import Settings
from palio.cli.brokers.hosting import CannotStart
from palio.cli.network.file import NetworkPlan, with_addresses
from palio.cli.program.connecting import ask
from palio.model.errors import NotAllowed, NotAuthenticated, PalioError
from palio.protocol.addresses import SECURE_SCHEME

# How long a broker may take to be up, on a busy machine: one that ends is noticed at once.
START_WITHIN = 60.0
# How long an orderly end may take before a broker is killed.
STOP_WITHIN = 10.0
# A broker that ends is started again after this pause, which doubles up to the longest.
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0
# A broker that was up for so long counts as one that works.
STEADY = 5.0


class MemberState(Enum):
    STARTING = "starting"
    UP = "up"
    SILENT = "silent"
    STOPPED = "stopped"
    FAILED = "failed"


class Member:
    """One broker of a network, and its process."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.name
        self.settings = settings
        self.server = (SECURE_SCHEME if settings.security.certificate else "") + settings.listen
        self.log_file = Path(settings.data) / "broker.log"
        self.state = MemberState.STARTING
        self.reason = ""
        self.restarts = 0
        self.facts: dict[str, Any] = {}  # what the broker says about itself
        self.where: dict[str, Any] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()  # that there is a process

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    def row(self) -> dict[str, Any]:
        """Where it is and how it is, as plain data."""
        where = {"server": self.server, "http_port": self.where.get("http_port"), "pid": self.pid}
        how = {"state": self.state.value, "reason": self.reason, "restarts": self.restarts}
        return {"name": self.name} | where | how

    async def run(self, report: Callable[[Member], None]) -> None:
        """Start the process and wait for its end; `report` is called whenever the state changes."""
        self._go(MemberState.STARTING, "", report)
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "palio.cli.network.child"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the network as a whole
            )
        self._begun.set()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(self.settings) + b"\n")
        first = await process.stdout.readline()
        self.where = json.loads(first) if first else {}
        if "port" in self.where:
            self._go(MemberState.UP, "", report)
        code = await process.wait()
        said = (await process.stdout.read()).splitlines()
        told = json.loads(said[-1]) if said else self.where
        if code == 0:
            self._go(MemberState.STOPPED, "", report)
        else:
            ending = (
                f"It ended by signal {-code}." if code < 0 else f"It ended with {code}; see {self.log_file}."
            )
            self._go(MemberState.FAILED, str(told.get("error", ending)), report)

    async def start(self) -> None:
        """Run it beside what goes on here, and return when it is up. Raises `CannotStart`."""
        up = asyncio.Event()

        def report(member: Member) -> None:
            if member.state is MemberState.UP:
                up.set()

        self._begun.clear()
        self._running = asyncio.create_task(self.run(report))
        waiting = asyncio.create_task(up.wait())
        awaited: list[asyncio.Future[Any]] = [self._running, waiting]
        await asyncio.wait(awaited, timeout=START_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not up.is_set():
            self.kill()
            reason = self.reason or f"It was not up after {START_WITHIN:g} seconds; see {self.log_file}."
            raise CannotStart(f"The broker {self.name} did not start: {reason}")

    def send_signal(self, which: signal.Signals) -> None:
        if self.pid is not None:
            assert self._process is not None
            self._process.send_signal(which)

    async def end(self, how: signal.Signals) -> None:
        """End what `start` has started, and return when it has ended."""
        if self._running is not None:
            begun = asyncio.create_task(self._begun.wait())
            awaited: list[asyncio.Future[Any]] = [self._running, begun]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            self.send_signal(how)
            await self._running

    def stop(self) -> None:
        """Let the broker end in order."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def look(self, report: Callable[[Member], None]) -> None:
        """Ask the broker how it is."""
        if self.state not in (MemberState.UP, MemberState.SILENT):
            return
        try:
            stats, peers = await ask(self.server, "stats", "peers", timeout=2.0)
        except (NotAuthenticated, NotAllowed):
            self._go(MemberState.UP, "", report)  # it is well, and does not tell who has no token for that
            return
        except PalioError as problem:
            if self.state is MemberState.UP and self.pid is not None:
                self._go(MemberState.SILENT, str(problem).split(";")[0], report)
            return
        self.facts = stats[0] | {"peers": peers}
        if self.state is MemberState.SILENT:
            self._go(MemberState.UP, "", report)

    def _go(self, state: MemberState, reason: str, report: Callable[[Member], None]) -> None:
        changed = state is not self.state or reason != self.reason
        self.state, self.reason = state, reason
        if state is not MemberState.UP:
            self.facts = {}
        if changed or state is MemberState.STARTING:
            report(self)


class Supervisor:
    """All members of a network. `run` returns when they have ended."""

    def __init__(
        self, network: NetworkPlan, *, restart: bool, strict: bool, report: Callable[[Member], None]
    ) -> None:
        settings, self._reserved = with_addresses(network)
        self._network = network
        self._restart = restart
        self._strict = strict
        self._report_to = report
        self._stopping = asyncio.Event()
        self.members = {name: Member(one) for name, one in settings.items()}

    async def run(self) -> bool:
        """Until `stop`, or until nothing runs any more. Returns whether all went well."""
        tasks = [asyncio.create_task(self._keep(member)) for member in self.members.values()]
        looking = asyncio.create_task(self._look())
        ended = asyncio.gather(*tasks)
        try:
            stopping = asyncio.create_task(self._stopping.wait())
            awaited: list[asyncio.Future[Any]] = [ended, stopping]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            looking.cancel()
            for member in self.members.values():
                member.stop()
            try:
                async with asyncio.timeout(STOP_WITHIN):
                    await asyncio.shield(ended)
            except TimeoutError:
                self.kill()
                await ended
        finally:
            looking.cancel()
            self.kill()
            for held in self._reserved:
                held.close()
            self._network.state_file.unlink(missing_ok=True)
        return all(member.state is MemberState.STOPPED for member in self.members.values())

    def stop(self) -> None:
        """End all members in order."""
        self._stopping.set()

    def kill(self) -> None:
        """End all members at once."""
        for member in self.members.values():
            member.kill()

    async def _keep(self, member: Member) -> None:
        """Run a member, and again if it ends by itself and shall be restarted."""
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while True:
            began = loop.time()
            await member.run(self._report)
            if self._strict and not self._stopping.is_set():
                self.stop()
            if not self._restart or self._stopping.is_set():
                return
            pause = FIRST_PAUSE if loop.time() - began > STEADY else min(2 * pause, LONGEST_PAUSE)
            try:
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
                return
            except TimeoutError:
                member.restarts += 1

    async def _look(self) -> None:
        while True:
            await asyncio.gather(*[member.look(self._report) for member in self.members.values()])
            await asyncio.sleep(1.0)

    def _report(self, member: Member) -> None:
        self._write_state()
        self._report_to(member)

    def _write_state(self) -> None:
        """Where the brokers are, for `network status` and for scripts."""
        file = self._network.state_file
        rows = [member.row() for member in self.members.values()]
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"brokers": rows}, indent=1) + "\n")
        new.replace(file)
