"""Where no compiler is, the package installs and works, and its tests run. (Slow: it sets up from nothing.)"""

import os
import shutil
import subprocess

import pytest

# Seconds. No speed is tested here: on a machine with nothing else to do it takes a quarter of an hour.
PATIENCE = 2 * 3600


@pytest.mark.slow
def test_everything_works_without_a_compiler(root, tmp_path):
    copy = tmp_path / "palio"
    ignored = shutil.ignore_patterns(
        ".venv", ".git", "*.so", "core.c", "quick.c", "build", "__pycache__", ".*_cache", ".hypothesis"
    )
    shutil.copytree(root, copy, ignore=ignored)
    environment = os.environ | {"CC": "/bin/false", "CXX": "/bin/false"}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        ["make", "test"],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert not list(copy.glob("src/**/*.so")), "there was a compiler after all"
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
