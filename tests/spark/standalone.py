"""A standalone cluster of separate processes on the loopback interface, from the pyspark package alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
# What must not reach the cluster's processes: they are to be on their own.
_HIDDEN = ("PYTHONPATH", "VIRTUAL_ENV", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_REMOTE")


class Standalone:
    """A master and its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if name not in _HIDDEN} | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        self.python = self._bare_python()
        self.master = self._start_master()

    def _bare_python(self) -> Path:
        """A Python in which nothing is installed."""
        place = self.folder / "bare"
        base = getattr(sys, "_base_executable", sys.executable)
        subprocess.run([base, "-m", "venv", "--without-pip", str(place)], check=True)
        python = place / "bin" / "python"
        found = subprocess.run(
            [python, "-c", "import palio"], env=self.environment, capture_output=True, check=False
        )
        assert b"ModuleNotFoundError" in found.stderr, "this Python should have nothing in it"
        return python

    def _start(self, name: str, *arguments: str) -> Path:
        log = self.folder / f"{name}.log"
        work = self.folder / name
        work.mkdir()
        with log.open("wb") as file:
            self._processes.append(
                subprocess.Popen(
                    [SPARK_HOME / "bin" / "spark-class", *arguments],
                    cwd=work, env=self.environment, stdout=file, stderr=file, start_new_session=True,
                )
            )  # fmt: skip
        return log

    def _start_master(self) -> str:
        log = self._start(
            "master", "org.apache.spark.deploy.master.Master",
            "--host", "127.0.0.1", "--port", "0", "--webui-port", "0",
        )  # fmt: skip
        return self._said(log, r"Starting Spark master at (spark://\S+)")

    def start_worker(self, name: str) -> None:
        log = self._start(
            name, "org.apache.spark.deploy.worker.Worker",
            "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g",
            "--work-dir", str(self.folder / name / "work"), self.master,
        )  # fmt: skip
        self._said(log, r"(Successfully registered with master)")

    def kill_last_worker(self) -> None:
        """End it at once, together with its executors."""
        process = self._processes.pop()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _said(self, log: Path, pattern: str) -> str:
        patience = time.monotonic() + 120
        while time.monotonic() < patience:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found:
                return found[1]
            time.sleep(0.2)
        raise AssertionError(f"{log.name} never said {pattern!r}:\n{log.read_text(errors='replace')[-3000:]}")


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    cluster = Standalone(folder)
    try:
        for number in range(workers):
            cluster.start_worker(f"worker-{number}")
        yield cluster
    finally:
        cluster.stop()
