"""Long jobs as users end them: with Ctrl-C, or for good. What they say then, and how they go on."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import palio.spark
from palio.spark.jobs import match_job
from palio.spark.matching import runs
from palio.store.lake.manifests import Lake
from tests.cli.conftest import ROOT
from tests.spark.lakes import EVENTS, content, copied

pytest.importorskip("pyspark", reason="pyspark is not installed")

PATIENCE = 600.0  # for what takes half a minute on a machine with nothing else to do
FILTERS = '{"id": "low", "filter": "x < 40"}\n{"id": "odd", "filter": "symbol = \\"S3\\""}\n'


@pytest.fixture
def lake(small_files, tmp_path) -> str:
    (tmp_path / "filters.jsonl").write_text(FILTERS)
    return copied(small_files, tmp_path)


# In this process


def at_the(number: int, function):
    """Calls a function, and is interrupted when it comes to it for the n-th time."""
    calls = []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == number:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return interrupted


def test_an_interrupted_archive_says_what_came_and_goes_on(spark, lake, command, monkeypatch, tmp_path):
    url, place = f"sqlite:///{tmp_path}/palio.db", str(tmp_path / "other")
    job = ("spark", "archive", url, "--lake", place)
    commit = Lake.commit
    monkeypatch.setattr(Lake, "commit", at_the(1, commit))
    stopped = command(*job)
    assert stopped.exit_code == 130
    assert f"Interrupted: 0 events came to {place}, and the same command goes on" in stopped.stderr
    monkeypatch.setattr(Lake, "commit", commit)
    assert json.loads(command(*job).stdout)["events"] == EVENTS
    assert content(palio.spark.read_lake(spark, place)) == content(palio.spark.read_lake(spark, lake))


def test_interrupted_runs_say_what_came_and_go_on(spark, lake, command, monkeypatch, tmp_path):
    monkeypatch.setattr(match_job, "ROWS_PER_RUN", 30)  # for each of two cores
    place = tmp_path / "new"
    job = ("spark", "match", "-e", lake, "-f", str(tmp_path / "filters.jsonl"), "-o", str(place), "--new")
    commit = runs._commit
    monkeypatch.setattr(runs, "_commit", at_the(2, commit))
    stopped = command(*job)
    assert stopped.exit_code == 130
    assert f"Interrupted: 1 run with 49 pairs came to {place}, and the same command goes on" in stopped.stderr
    assert pairs_in(palio.spark.matches(spark, place)) == [
        one for one in WANTED if int(one[0].split("/")[1]) <= 60
    ]
    monkeypatch.setattr(runs, "_commit", commit)
    again = command(*job)
    assert (again.exit_code, "Run 2: 5 pairs" in again.stderr) == (0, True), again.stderr
    assert pairs_in(palio.spark.matches(spark, place)) == WANTED


# The real commands, which are killed

PREAMBLE = """
    import os, signal
    from palio.spark.tables import parts, pieces
    from palio.spark.lake import rewriting
    from palio.spark.matching import runs
    from palio.spark.jobs import match_job
    from palio.cli.main import main

    match_job.ROWS_PER_RUN = pieces.LEAST_EVENTS = 20
    rewriting.ROWS_PER_COMMIT, rewriting.THINGS_A_CORE = 10, 1

    def dying(module, name, after):
        function, calls = getattr(module, name), []

        def die(*arguments):
            calls.append(arguments)
            if len(calls) == after:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        setattr(module, name, die)

    dying({module}, "{function}", {after})
    main()
"""


def killed(tmp_path: Path, environment: dict[str, str], where: tuple[str, str, int], *arguments: str) -> None:
    """Run a command in a process of its own, which dies when it calls a function for the n-th time."""
    script = tmp_path / "killed.py"
    module, function, after = where
    script.write_text(textwrap.dedent(PREAMBLE).format(module=module, function=function, after=after))
    done = subprocess.run(
        [sys.executable, str(script), "spark", *arguments, "--master", "local[1]"],
        capture_output=True, encoding="utf-8", env=environment, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr[-2_000:]


def pairs_in(frame) -> list[tuple[str, str]]:
    return sorted((row["event_id"], row["subscription_id"]) for row in frame.collect())


# What the subscriptions find: x is below 40 in the first forty events, and every seventh has that symbol.
WANTED = sorted(
    [(f"b/{at}", "low") for at in range(1, 41)] + [(f"b/{at}", "odd") for at in range(4, EVENTS + 1, 7)]
)


@pytest.mark.slow
def test_matching_what_is_new_goes_on_after_a_kill(spark, lake, command, environment, tmp_path):
    place = tmp_path / "new"
    new = ("match", "-e", lake, "-f", str(tmp_path / "filters.jsonl"), "-o", str(place), "--new")
    killed(tmp_path, environment, ("runs", "_commit", 3), *new)
    found = pairs_in(palio.spark.matches(spark, place))
    assert found == [one for one in WANTED if int(one[0].split("/")[1]) <= 40], "two runs are there"
    again = command("spark", *new)
    assert (again.exit_code, "Run 3: 8 pairs" in again.stderr) == (0, True), again.stderr
    assert pairs_in(palio.spark.matches(spark, place)) == WANTED


@pytest.mark.slow
def test_matching_in_parts_goes_on_after_a_kill(spark, lake, command, environment, tmp_path):
    filters, output, state = (tmp_path / name for name in ("filters.jsonl", "pairs", "state"))
    kept = ("match", "-e", lake, "-f", str(filters), "-o", str(output), "--checkpoint", str(state))
    killed(tmp_path, environment, ("parts", "create_once", 4), *kept)  # plan, filters, a part, and then
    parts = sorted((state / "pairs").glob("*.json"))
    times = [part.stat().st_mtime_ns for part in parts]
    assert len(parts) == 1
    again = command("spark", *kept)
    assert (again.exit_code, "54 pairs" in again.stderr) == (0, True), again.stderr
    assert pairs_in(spark.read.parquet(str(output))) == WANTED
    assert [part.stat().st_mtime_ns for part in parts] == times, "what was done stays done"
    filters.write_text(FILTERS.replace("40", "41"))
    changed = command("spark", *kept, "--overwrite")
    assert (changed.exit_code, "has changed" in changed.stderr) == (3, True)


@pytest.mark.slow
def test_a_lake_is_rewritten_by_the_same_command_after_a_kill(spark, lake, command, environment, tmp_path):
    whole = content(palio.spark.read_lake(spark, lake))
    compact = ("archive", f"sqlite:///{tmp_path}/palio.db", "--lake", lake, "--compact")
    killed(tmp_path, environment, ("rewriting", "_replace", 2), *compact)
    assert content(palio.spark.read_lake(spark, lake)) == whole
    again = command("spark", *compact)
    assert (again.exit_code, json.loads(again.stdout)["merged"]) == (0, 8)
    assert content(palio.spark.read_lake(spark, lake)) == whole

    forget = ("forget", 'symbol = "S3"', "--lake", lake, "--yes")
    killed(tmp_path, environment, ("rewriting", "_replace", 2), *forget)
    again = command("spark", *forget)
    assert again.exit_code == 0
    wanted = [row for row in whole if row[1] % 7 != 4]
    assert 0 < json.loads(again.stdout)["events"] < len(whole) - len(wanted)
    assert content(palio.spark.read_lake(spark, lake)) == wanted


# Ctrl-C


def interrupted(arguments: list[str], environment: dict[str, str], sight: str) -> tuple[int, str]:
    """Run in a terminal, press Ctrl-C when something is to be seen there, and return all that was."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "palio.cli.main", "spark", *arguments],
        cwd=ROOT,
        env=environment | {"TERM": "xterm-256color", "COLUMNS": "200"},
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = ""
    pressed = False
    deadline = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            shown += os.read(ours, 65536).decode()
            if sight in shown and not pressed:
                pressed = True
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all that run there
    except OSError:
        pass  # how Linux says that the other side has been closed
    os.close(ours)
    return process.wait(timeout=60), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        (
            "archive {url} --lake {folder}/other",
            "Archiving",
            r"Interrupted: \d+ events came to \S+other, and the",
        ),
        ("match -e {lake} -f {folder}/filters.jsonl -o {folder}/out", "Starting Spark", None),
        (
            "match -e {lake} -f {folder}/filters.jsonl -o {folder}/out --new",
            "Matching",
            r"Interrupted: \d+ runs? with \d+ pairs? came to \S+out, and the same command goes on",
        ),
    ],
)
def test_an_interrupt_is_a_sentence_and_exit_code_130(environment, lake, tmp_path, case):
    arguments, sight, said = case
    url = f"sqlite:///{tmp_path}/palio.db"
    words = [one.format(url=url, lake=lake, folder=tmp_path) for one in arguments.split()]
    code, shown = interrupted([*words, "--master", "local[1]"], environment, sight)
    assert code == 130, shown
    assert said is None or re.search(said, shown), shown
    for noise in ("Traceback", "ERROR", "Exception", "java.", "WARN"):
        assert noise not in shown, shown
