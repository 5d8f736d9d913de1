"""What is not well is said, with what to do about it, for this machine and for executors."""

from __future__ import annotations

import socket
from importlib.util import find_spec

import pytest

import palio.testing
from palio.spark.runtime import health


def test_all_is_well_here_and_on_executors(spark, command):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = command("doctor", "--listen", f"127.0.0.1:{port}")
    words = " ".join(result.stdout.split())
    if find_spec("palio.matching.core") is not None:
        assert result.exit_code == 0, result.stdout
        assert "All is well." in result.stdout
    else:  # where no compiler was, this is what is wrong
        assert result.exit_code == 1, result.stdout
        assert "not built" in words
    for name in ("Java", "compiled index", "pandas", "pyarrow", "protobuf", "store", "executor on"):
        assert name in words


def test_a_port_that_is_taken_and_a_store_that_is_not_there(command, java):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = command(
            "doctor", "--no-executors", "--listen", f"127.0.0.1:{port}",
            "--store", "postgresql://nobody@127.0.0.1:1/none",
        )  # fmt: skip
    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert "✗ this machine port" in words
    assert "✗ this machine store" in words


def test_a_port_of_a_running_broker_is_well(command, java):
    pytest.importorskip("palio.matching.core", reason="without the compiled index not everything is well")
    with palio.testing.broker() as address:
        result = command("doctor", "--no-executors", "--listen", address.removeprefix("palio://"))
    assert result.exit_code == 0, result.stdout
    assert "a broker of Palio has it" in " ".join(result.stdout.split())


def test_no_java_is_said_with_what_to_do(command, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = command("doctor")
    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert "✗ this machine Java none" in words
    assert "✗ executors not asked" in words


@pytest.mark.parametrize(
    ("installed", "well"),
    [("2.1.4", False), ("2.2.0", True), ("2.3.3", True), ("3.0.0", False), ("10.1", False)],
)
def test_versions_that_do_not_work_are_found(monkeypatch, installed, well):
    monkeypatch.setattr(health, "version", lambda name: installed)
    (check,) = [one for one in health.python_checks("here") if one.name == "pandas"]
    assert check.well == well
    assert well or ("is needed" in check.found and check.advice == "pip install 'palio[spark]'")
