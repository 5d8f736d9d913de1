"""What a process that was killed has left in the temporary folder goes with the next one."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from palio.spark.runtime import scratch


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


SCRIPT = """
import sys
from palio.spark.runtime.scratch import scratch_folder
print(scratch_folder(), flush=True)
sys.stdin.read()
"""


def other() -> tuple[subprocess.Popen, Path]:
    """Another process with a folder of an hour ago, which ends when it is told nothing more."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    folder = Path(process.stdout.readline().strip())
    (folder / "large").write_bytes(b"x")
    os.utime(folder, (time.time() - 3600,) * 2)
    return process, folder


def test_folders_of_the_dead_go_and_those_of_the_living_stay(temporary):
    alive, used = other()
    dead, left = other()
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    fresh = temporary / "palio-shards-fresh"
    fresh.mkdir()
    (fresh / ".lock").touch()
    somebody_elses = temporary / "palio-shards-unknown"
    somebody_elses.mkdir()
    os.utime(somebody_elses, (0, 0))
    try:
        assert left.exists()
        own = Path(scratch.scratch_folder())
        assert not left.exists()
        assert (used / "large").exists()
        assert fresh.exists(), "perhaps it will be locked in a moment"
        assert somebody_elses.exists(), "it has no lock"
        assert own.is_dir()
    finally:
        alive.kill()
        alive.communicate()


def test_who_ends_in_order_leaves_nothing(temporary):
    process, folder = other()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not folder.exists()
