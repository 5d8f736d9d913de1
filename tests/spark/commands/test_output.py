"""Spark's greetings do not reach the user, and all else does."""

import os
import subprocess
import sys
import threading

import pytest

from palio.cli.spark.output import Passing

GREETINGS = b"""WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/17 06:11:41 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform
Setting Spark log level to "ERROR".
Starting Streaming TransformWithStateInPandas Python worker.

"""
ERROR = b"26/11/17 06:11:41 ERROR Executor: Exception in task 0.0\njava.lang.IllegalStateException: WARN\n"


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_only_greetings_are_left_out(size):
    bar = b"\r[Stage 0:>   (0 + 2) / 8]\r[Stage 1:>   (0 + 2) / 8]\r             \r"
    assert passed(GREETINGS + ERROR + bar + b"\n" + GREETINGS + ERROR + b"an end", size) == (
        ERROR + bar + b"\n" + ERROR + b"an end"
    )


def passed(data, size):
    sources, targets = os.pipe(), os.pipe()
    for start in range(0, len(data), size):
        os.write(sources[1], data[start : start + size])
    os.close(sources[1])
    Passing(sources[0], targets[1]).run()
    with os.fdopen(targets[0], "rb") as file:
        return file.read()


def test_a_progress_bar_is_not_held_back():
    sources, targets = os.pipe(), os.pipe()
    threading.Thread(target=Passing(sources[0], targets[1]).run, daemon=True).start()
    os.write(sources[1], b"\r[Stage 0:>")
    assert os.read(targets[0], 100) == b"\r[Stage 0:>"
    os.close(sources[1])


@pytest.mark.slow
def test_a_command_says_nothing_but_its_answer(environment, tmp_path):
    (tmp_path / "events.jsonl").write_text('{"event_id": 1, "price": 5.0}\n')
    (tmp_path / "filters.jsonl").write_text('{"subscription_id": "a", "filter": "price > 4"}\n')
    words = ["spark", "match", "--master", "local[1]", "-e", "events.jsonl", "-f", "filters.jsonl"]
    done = subprocess.run(
        [sys.executable, "-m", "palio.cli.main", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"event_id"' in done.stdout
