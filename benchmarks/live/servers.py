"""The servers: ours, nats-server, mosquitto. Each is a process of its own on a port that was free."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from palio.model.errors import PalioError

PATIENCE = 60.0
# What may wait for one subscriber, everywhere the same, so that no server drops what the window allows.
PENDING_BYTES = 512 * 1024 * 1024
_TICKS = os.sysconf("SC_CLK_TCK")
_ELSEWHERE = ":/usr/sbin:/usr/local/sbin"  # Debian has servers there, which is not on everybody's path


_library = ctypes.CDLL(None, use_errno=True)
_PARENT_DEATH_SIGNAL = 1  # of prctl


def die_with_parent() -> None:
    """Called in a new process: it ends when the one that started it does, even if that is killed (on Linux)."""
    if sys.platform == "linux":
        _library.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


class ServerFailed(PalioError):
    """A server that did not start."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} did not start: {reason}.", name=name, reason=reason)


def find(program: str) -> str | None:
    """Where a program is, if it is installed."""
    return shutil.which(program, path=os.environ.get("PATH", os.defpath) + _ELSEWHERE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A process, its port, and what it has used so far."""

    def __init__(self, name: str, words: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.port = 0
        self._log = folder / "log"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509 (there are no threads yet)
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self, until: float) -> None:
        """Raises `ServerFailed` if it has ended, or if it is too late."""
        if self._process.poll() is not None or time.monotonic() > until:
            tail = self._log.read_text(errors="replace")[-2_000:].strip()
            raise ServerFailed(self.name, tail or "it said nothing")

    def cpu(self) -> float:
        """Seconds of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident(self) -> int:
        """Bytes in memory."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1_024
        return 0

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start_palio(
    folder: Path,
    *,
    journal: bool,
    sync: str = "full",
    store: str = "",
    further: Sequence[str] = (),
    pending: int = PENDING_BYTES,
) -> Server:
    """A broker; with a journal in the folder, or at the URL of a store; and with further options."""
    ready = folder / "ready.json"
    words = [sys.executable, "-m", "palio.cli.main", "up", "--listen", "127.0.0.1:0", "--http", "off"]
    words += ["--data", str(folder / "data"), "--ready-file", str(ready), "--log-level", "warning"]
    words += ["--sync", sync] if journal else ["--no-journal"]
    words += ["--store", store] if store else []
    words += further
    server = Server("palio", words, folder, {"PALIO_LIMITS": f"{{outgoing = {pending}}}"})
    until = time.monotonic() + PATIENCE
    while not ready.exists():
        server.check(until)
        time.sleep(0.02)
    server.port = json.loads(ready.read_text())["port"]
    return server


def start_nats(folder: Path) -> Server:
    """nats-server; None of its streams, and a slow subscriber may be as far behind as with the others."""
    settings = folder / "nats.conf"
    settings.write_text(f"max_pending: {PENDING_BYTES}\n")
    port = free_port()
    words = [_required("nats-server"), "-a", "127.0.0.1", "-p", str(port), "-c", str(settings)]
    return _accepting(Server("nats", words, folder, {}), port)


def start_mosquitto(folder: Path) -> Server:
    port = free_port()
    settings = folder / "mosquitto.conf"
    settings.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n"
        "max_queued_messages 0\n"
    )
    return _accepting(Server("mosquitto", [_required("mosquitto"), "-c", str(settings)], folder, {}), port)


def _required(program: str) -> str:
    found = find(program)
    if found is None:
        raise ServerFailed(program, "it is not installed")
    return found


def _accepting(server: Server, port: int) -> Server:
    until = time.monotonic() + PATIENCE
    while True:
        server.check(until)
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.02)
        else:
            server.port = port
            return server


def version_of(program: str, *words: str) -> str:
    """The first line that a program says of itself."""
    found = find(program)
    if found is None:
        return "not installed"
    said = subprocess.run([found, *words], capture_output=True, encoding="utf-8", check=False)
    return (said.stdout or said.stderr).strip().partition("\n")[0]
