"""The program as users start it, and the quick way in where no process is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from palio.cli.main import app
from tests.cli.live import LiveBroker, live_broker

ROOT = Path(__file__).parents[2]
Program = Callable[..., "subprocess.CompletedProcess[str]"]
Command = Callable[..., Result]


@pytest.fixture
def environment() -> dict[str, str]:
    """Without what may make rich believe in a terminal."""
    hidden = {"FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TTY_COMPATIBLE", "NO_COLOR"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    # Where the core could not be built, that is said once in each process; here it would be in the way.
    quiet = {"PYTHONWARNINGS": "ignore:Palio runs without its compiled match index"}
    return kept | quiet | {"PATH": path, "COLUMNS": "80", "PYTHONUTF8": "1"}


@pytest.fixture
def program(environment: dict[str, str]) -> Program:
    """Run it as a process of its own, from the root of the repository."""

    def run(*arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "palio.cli.main", *arguments]
        return subprocess.run(
            command,
            input=input,
            capture_output=True,
            encoding="utf-8",
            cwd=ROOT,
            env=environment,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run it within this process."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str, input: str | bytes = "") -> Result:
        return CliRunner().invoke(app, list(arguments), input=input, catch_exceptions=False)

    return run


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBroker]:
    """A broker of the test's own, which the commands take for the one that is meant."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with live_broker(tmp_path) as broker:
        monkeypatch.setenv("PALIO_SERVER", broker.server)
        yield broker
