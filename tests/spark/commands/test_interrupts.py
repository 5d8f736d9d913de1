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
from palio.spark.lake import rewriting
from palio.spark.lake.archiving import archive
from palio.store.lake.manifests import Lake
from tests.cli.conftest import ROOT
from tests.spark.filling import a_day_passes, fill
from tests.spark.lake.test_lake import Killed, content, events

pytest.importorskip("pyspark", reason="pyspark is not installed")

PATIENCE = 180.0
EVENTS = 100
FILTERS = '{"id": "low", "filter": "x < 40"}\n{"id": "odd", "filter": "symbol = \\"S3\\""}\n'


@pytest.fixture
def lake(spark, tmp_path) -> str:
    """Fifteen small files: three classes of events, each in five spans."""
    fill(f"sqlite:///{tmp_path}/palio.db", events(EVENTS))
    archive(spark, f"sqlite:///{tmp_path}/palio.db", str(tmp_path / "lake"), rows_per_task=EVENTS // 5)
    assert len(Lake(tmp_path / "lake").state().files) == 15
    (tmp_path / "filters.jsonl").write_text(FILTERS)
    return str(tmp_path / "lake")


@pytest.fixture
def in_parts(monkeypatch):
    """A commit for every few events, as there would be for every few million."""
    monkeypatch.setattr(rewriting, "ROWS_PER_COMMIT", 10)
    monkeypatch.setattr(rewriting, "THINGS_A_CORE", 1)


# Forgetting and compaction, in this process


class Dying:
    """Dies at a step when it comes to it for the second time, or another one."""

    def __init__(self, where: str, time: int = 2) -> None:
        self.where, self.time, self.steps = where, time, 0

    def __call__(self, step: str) -> None:
        self.steps += step == self.where
        if self.steps == self.time:
            raise Killed(step)


@pytest.mark.parametrize("where", ["written", "committed"])
def test_forgetting_goes_on_after_a_death(spark, lake, in_parts, where):
    wanted = [row for row in content(palio.spark.read_lake(spark, lake)) if row[1] % 7 != 4]
    told = []
    with pytest.raises(Killed):
        rewriting.forget(spark, lake, palio.Filter.parse('symbol = "S3"'), step=Dying(where), told=told.append)
    state = Lake(lake).state()
    assert state.version == 2 + (1 if where == "written" else 2), "a version for each part"
    assert [one.looked_at for one in told] == sorted({one.looked_at for one in told})
    left = content(palio.spark.read_lake(spark, lake))
    assert set(wanted) < set(left), "nothing else was forgotten"
    done = rewriting.forget(spark, lake, palio.Filter.parse('symbol = "S3"'))
    assert done.events == len(left) - len(wanted), "only what was left"
    assert content(palio.spark.read_lake(spark, lake)) == wanted
    a_day_passes(lake)
    rewriting.sweep(lake, grace=0.0)
    assert content(palio.spark.read_lake(spark, lake)) == wanted
    assert len(list(Path(lake).rglob("*.parquet"))) == len(Lake(lake).state().files)


@pytest.mark.parametrize(("where", "time"), [("written", 2), ("committed", 1)])
def test_compaction_goes_on_after_a_death(*, spark, lake, in_parts, where, time):
    """There are two parts: the files of two classes, and those of the third."""
    wanted = content(palio.spark.read_lake(spark, lake))
    with pytest.raises(Killed):
        rewriting.compact(spark, lake, step=Dying(where, time))
    left = len(Lake(lake).state().files)
    assert left == 2 + 5
    assert content(palio.spark.read_lake(spark, lake)) == wanted
    told = []
    assert rewriting.compact(spark, lake, told=lambda *one: told.append(one)) == left - 3
    assert told[-1][0] == told[-1][1], "all that was left"
    assert content(palio.spark.read_lake(spark, lake)) == wanted


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
    [(f"b:{at}", "low") for at in range(1, 41)] + [(f"b:{at}", "odd") for at in range(4, EVENTS + 1, 7)]
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
