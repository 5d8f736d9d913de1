"""Networks in which things go wrong, live: promises are kept, what breaks one is found, and nothing is left."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from palio.cli.chaos.commands import EPILOG
from palio.cli.chaos.load import Load
from palio.cli.chaos.running import ChaosOptions, ChaosRun
from palio.cli.program.connecting import run
from tests.cli.processes import PATIENCE, await_condition, started


def options(**more) -> ChaosOptions:
    """A short run. Silence counts late, so that a busy machine accuses nobody."""
    given = {
        "seed": 34, "seconds": 1.0, "brokers": 3, "durable": 2, "rate": 60.0, "overlay": "tree",
        "faults": ("kill",), "heartbeat": 3.0, "settle": PATIENCE, "command": "palio chaos", "every": 1.0,
        "pace": 0.3,
    }  # fmt: skip
    return ChaosOptions(**(given | more))


def processes_of(folder: Path) -> list[int]:
    """The brokers that write into a folder."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                files = [os.readlink(one) for one in (place / "fd").iterdir()]
            except OSError:
                continue
            if any(one.startswith(str(folder)) for one in files):
                found.append(int(place.name))
    return found


@pytest.mark.slow
def test_promises_are_kept_when_the_root_is_killed(tmp_path):
    chaos = ChaosRun(options(), tmp_path, print)
    record = run(chaos.play())
    assert record.violations == []
    assert [(one.what, one.group) for one in record.moments] == [
        ("killed", "root killed"),
        ("back", "back after it was killed"),
    ]
    assert record.counts["confirmed"] > 50
    assert all(one.owed == one.got > 0 for one in record.durable)
    assert processes_of(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("overlay", ["tree", "fixed"])
def test_promises_are_kept_whatever_goes_wrong(tmp_path, overlay):
    faults = ("kill", "cut", "split", "stop", "restart")
    settings = options(
        overlay=overlay, faults=faults, brokers=6, seconds=45.0, heartbeat=1.0, pace=1.0, every=4.0, seed=11
    )
    record = run(ChaosRun(settings, tmp_path, print).play())
    assert record.violations == []
    assert {one.kind for one in record.troubles} == set(faults)


@pytest.mark.slow
def test_a_taker_that_is_deaf_is_found(tmp_path, monkeypatch):
    take = Load._take

    async def deaf(load, name, events):
        if name != "d01":
            await take(load, name, events)

    monkeypatch.setattr(Load, "_take", deaf)
    record = run(ChaosRun(options(settle=1.0), tmp_path, print).play())
    assert any("d01 at b01 misses" in one for one in record.violations)


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(environment, tmp_path):
    words = ("chaos", "--brokers", "3", "--for", "1m", "--data", "kept", "--faults", "stop")
    with started(*words, environment=environment, folder=tmp_path) as process:
        await_condition(lambda: len(processes_of(tmp_path / "kept")) >= 3, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    assert processes_of(tmp_path / "kept") == []


@pytest.mark.slow
@pytest.mark.parametrize("example", re.findall(r"\$ palio (chaos .*?)\[", EPILOG))
def test_the_examples_of_the_help_run(example, environment, tmp_path):
    words = re.sub(r"--(for|rate) \S+", "", example).split()
    with started(*words, "--for", "5s", environment=environment, folder=tmp_path) as process:
        said, _ = process.communicate(timeout=5 * PATIENCE)
    assert process.returncode == 0, said
    assert "Every promise was kept." in said
    assert "every promise kept" in (tmp_path / "palio-chaos.html").read_text()


def test_what_is_asked_for_wrongly_is_said(command, tmp_path):
    for words, said in (
        (("--faults", "kil"), "There is no kind of fault 'kil'"),
        (("--overlay", "auto"), "There is no kind 'auto'"),
        (("--config", "none.toml"), "cannot be read"),
        (("--faults", ","), "Name at least one kind"),
        (("--for", "3h"), "3h is not between"),
        (("--data", str(tmp_path)), "is there already"),
        (("--report", str(tmp_path / "none" / "page.html")), "There is no folder"),
    ):
        result = command("chaos", *words)
        assert result.exit_code == 3, result.stderr
        assert said in " ".join(result.stderr.split())
