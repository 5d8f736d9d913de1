"""Whatever a user gets wrong, a job ends in one sentence that says what to do, and never in a stack trace."""

from __future__ import annotations

import json

import pytest

from palio.cli.spark.options import _failure, _in_a_sentence
from palio.client.client import connect
from palio.spark.errors import JobFailed, JournalMissing, SparkUnavailable
from palio.spark.runtime.session import session
from palio.spark.source import from_broker
from tests.spark.filling import fill

pytest.importorskip("pyspark", reason="pyspark is not installed")

PATTERNS = ("-p", "examples/patterns.jsonl")
FILTERS = ("-f", "examples/filters.jsonl")
NO_BROKER = "palio://127.0.0.1:1"


@pytest.fixture(scope="module")
def place(spark, tmp_path_factory):
    """A folder with all sorts of things that are not what they should be."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "nothing").mkdir()
    (folder / "half-a-lake" / "_palio").mkdir(parents=True)
    (folder / "table.csv").write_text("a,b\n1,2\n")
    (folder / "empty.jsonl").write_text("")
    (folder / "garbage.jsonl").write_text("not json\n{\n")
    (folder / "slips.jsonl").write_text('{"id": "a", "fliter": "x > 1"}\n{"id": "b", "filter": 3}\n')
    fill(f"sqlite:///{folder}/store.db", [{"x": number} for number in range(9)])
    return folder


@pytest.fixture
def impatient(monkeypatch):
    """A broker that is not there is not waited for."""

    def soon(url, **more):
        return connect(url, **more | {"connect_within": 0.1})

    monkeypatch.setattr(from_broker, "connect", soon)


@pytest.fixture
def told_where(monkeypatch):
    """Errors of Spark say where in the program they come from, as they do for users."""
    monkeypatch.setattr("pyspark.errors.utils._enable_debugging_cache", True)


CASES = {
    "a lake that is not there": (("backtest", "x > 1", "{}/palio-lake"), "`palio spark archive` makes a lake."),
    "a lake without a version": (("stats", "{}/half-a-lake"), "`palio spark archive` makes one."),
    "an empty folder": (("match", "-e", "{}/nothing", *FILTERS), "the folder is empty."),
    "no format that we read": (("stats", "{}/table.csv"), "it is neither Parquet, a lake, nor a file of lines"),
    "lines for patterns": (("patterns", "examples/trades.jsonl", *PATTERNS), "`palio patterns` takes lines."),
    "patterns in half a lake": (
        ("patterns", "{}/half-a-lake", *PATTERNS, "--checkpoint", "{}/state"),
        "`palio spark archive` makes one.",
    ),
    "lines that are no events": (("stats", "{}/garbage.jsonl"), "2 of its lines cannot be read."),
    "lines that have no filter": (
        ("match", "-e", "examples/events.jsonl", "-f", "{}/slips.jsonl"),
        "2 filters cannot be read, for example that of subscription a: ",
    ),
    "filters that are none, for a report": (
        ("stats", "examples/events.jsonl", "-f", "{}/slips.jsonl", "-o", "{}/r.html"),
        "none of the filters can be read, for example that of a: ",
    ),
    "nothing in that time": (
        ("stats", "sqlite:///{}/store.db", "--since", "1d", "-o", "{}/r.html"),
        "nothing was published in that time, or nothing that the filter selects.",
    ),
    "no broker": (("archive", NO_BROKER, "--lake", "{}/new"), "Is one running there? `palio up` starts one."),
    "a folder that cannot be": (("package", "-o", "/proc/none/palio.tar.gz"), "Cannot write /proc/none: "),
    "a report that cannot be": (("stats", "examples/events.jsonl", "-o", "/proc/none/r.html"), "Cannot write "),
    "an output that is there": (
        ("backtest", "x > 1", "sqlite:///{}/store.db", "-o", "{}/nothing"),
        "already exists. Choose another one, or remove it first.",
    ),
}


# What is not the input's fault: there is no broker, or nothing can be written there.
CODES = {"no broker": 4, "a folder that cannot be": 6, "a report that cannot be": 6}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("impatient", "told_where")
def test_it_ends_in_a_sentence(spark, command, place, case):
    words, sentence = CASES[case]
    result = command("spark", *(word.replace("{}", str(place)) for word in words))
    assert result.exit_code == CODES.get(case, 3), result.stdout
    (said,) = result.stderr.strip().splitlines()
    assert sentence in said


@pytest.mark.slow
def test_a_broker_that_a_task_does_not_reach_is_named(spark, command):
    """After ten seconds, in which it may come back."""
    result = command("spark", "match", "-e", NO_BROKER, *FILTERS)
    assert result.exit_code == 4
    assert "Is one running there? `palio up` starts one." in result.stderr


def test_nothing_to_show_is_said(spark, command, place):
    job = ("spark", "backtest", "x > 1", f"sqlite:///{place}/store.db", "--since", "1d")
    looked = command(*job)
    assert looked.exit_code == 1
    assert looked.stdout == "0 of 0 events\nNothing was published in that time.\n"
    assert json.loads(command(*job, "--json").stdout)["events"] == 0
    matched = command("spark", "match", "-e", str(place / "empty.jsonl"), *FILTERS)
    assert (matched.exit_code, matched.stdout) == (0, "")
    assert matched.stderr.startswith("There are no pairs")


STACK = """An error occurred while calling o57.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
{}
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
"""


@pytest.mark.parametrize(
    ("line", "said", "advised"),
    [
        ("java.io.IOException: No space left on device", "No space left on device.", "spark.local.dir"),
        (
            'java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory',
            'Cannot run program "/no/python".',
            "PYSPARK_PYTHON",
        ),
        ("ModuleNotFoundError: No module named 'palio'", "No module named 'palio'.", "palio spark package"),
        ("java.io.FileNotFoundException: /data/x (Permission denied)", "Permission denied.", "may write to"),
        ("palio.model.errors.NotAllowed: You may not publish this.", "You may not publish this.", ""),
    ],
)
def test_what_spark_says_becomes_what_to_do(line, said, advised):
    problem = str(_failure(STACK.format(line)))
    assert problem.startswith(f"The job failed: {said}")
    assert advised in problem
    assert "\n" not in problem


def test_an_error_of_python_is_told_by_its_own_words():
    trace = "Traceback (most recent call last):\n  File 'x.py'\n    1 / 0\nZeroDivisionError: division by zero"
    assert str(_failure(STACK.format(trace))).startswith("The job failed: ZeroDivisionError: division by zero.")
    with pytest.raises(JobFailed, match="Spark's Java has ended"), _in_a_sentence():
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_master_that_is_none(java, monkeypatch):
    monkeypatch.setattr("palio.spark.runtime.session._sessions", lambda: _NoSession)
    with pytest.raises(SparkUnavailable, match="a master is local"), session("nonsense"):
        pass


class _NoSession:
    @staticmethod
    def getActiveSession() -> None:  # noqa: N802 - Spark's own name
        return None


def test_journals_out_of_reach_say_what_the_command_can_do():
    assert "`palio forget lucca --yes`" in str(JournalMissing(("lucca",)))
    assert "--lossy" in str(JournalMissing(("lucca",)))
