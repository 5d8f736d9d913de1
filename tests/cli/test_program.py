"""The program as a whole: help that can be trusted, endings that scripts can rely on."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from palio.cli.stocks import Market, filter_texts
from palio.cli.terminal import EXIT_CODES

ROOT = Path(__file__).parents[2]
PALIO = [sys.executable, "-m", "palio.cli.main"]
FILES = ("-f", "examples/filters.jsonl", "-e", "examples/events.jsonl")
COMMANDS = [
    *((), ("match",), ("explain",), ("covers",), ("lint",), ("demo",), ("bench",), ("bench", "filters")),
    *(("sim",), ("sim", "replay"), ("sim", "soak"), ("sim", "run"), ("sim", "list")),
]


def examples(help_text: str) -> list[str]:
    return re.findall(r"^\s*\$ (.*?)\s*$", help_text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_help_shows_exit_codes_and_examples_that_fit_eighty_columns(command, name):
    result = command(*name, "--help")
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    assert EXIT_CODES in words
    found = examples(result.stdout)
    assert found
    for example in found:
        assert example.count("'") % 2 == 0, "broken over two lines"


def test_the_examples_of_the_help_run(command, environment):
    shown = {example for name in COMMANDS for example in examples(command(*name, "--help").stdout)}
    shown.remove("palio demo")  # ten seconds; a shorter one is among the others
    slow = {name: sorted(one for one in shown if one.startswith(f"palio {name}")) for name in ("demo", "bench")}
    quick = {one for one in slow["bench"] if one.startswith("palio bench filters")}
    for example in sorted(shown - set(slow["demo"][1:]) - set(slow["bench"]) | quick):
        example = example.replace("--seconds 3", "--seconds 0.3").replace("--seconds 0.02", "--seconds 0.001")
        assert "palio" in example
        done = subprocess.run(
            ["bash", "-c", example],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode in (0, 1), (example, done.stderr)
        assert done.stdout, example
        assert "\x1b" not in done.stdout + done.stderr, example


def test_version_and_wrong_usage(command):
    assert re.fullmatch(r"palio \d+\.\d+\S*\n", command("--version").stdout)
    assert command("mtch").exit_code == 2
    assert "Did you mean" in command("mtch").stderr
    assert command("match").exit_code == 2
    assert command().exit_code == 2


def test_what_cannot_be_read_is_a_sentence_and_not_a_stack_trace(command):
    for path, reason in (
        ("no-such", "there is no such file"),
        ("examples", "it is a directory"),
        ("a\0b", "null"),
    ):
        result = command("match", "-f", path, "-e", "examples/events.jsonl")
        assert result.exit_code == 3
        assert reason in result.stderr
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "command_line",
    [
        "yes '{\"price\": 1}' | palio match -q -f examples/filters.jsonl -e - | head -n 1",
        "palio lint examples/filters.jsonl | true",
        "palio match --help | true",
        "palio --help | true",
        "palio demo --seconds 2 --filters 10 | head -n 1",
    ],
)
def test_a_closed_pipe_ends_it_quietly_with_141(environment, command_line):
    # `true` may end so late that the pipe still takes everything; this one closes it for sure.
    command_line = command_line.replace("| true", "| { exec <&-; sleep 1; }")
    done = subprocess.run(
        ["bash", "-c", f"{command_line}; echo ${{PIPESTATUS[@]: -2:1}}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "141"
    assert done.stderr == ""


def test_a_full_disk_is_reported(environment):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PALIO, "match", "-q", *FILES],
            cwd=ROOT, env=environment, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "Cannot write the output: No space left on device.\n")


def test_answers_stream_and_an_interrupt_ends_it_quietly_with_130(environment):
    process = subprocess.Popen(
        [*PALIO, "match", "-q", "-f", "examples/filters.jsonl", "-e", "-"],
        cwd=ROOT, env=environment, encoding="utf-8",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write('{"temperature": 31}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"event": 1, "matches": ["weather"]}
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == ""


def in_terminal(arguments: list[str], environment: dict[str, str], **streams) -> tuple[int, str]:
    """Run with a terminal as standard error, and as standard output unless that goes elsewhere."""
    ours, theirs = pty.openpty()
    settings = environment | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*PALIO, *arguments], cwd=ROOT, env=settings, **({"stdout": theirs, "stderr": theirs} | streams)
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass  # how Linux says that the other side has been closed
    os.close(ours)
    return process.wait(timeout=60), shown.decode()


def test_a_terminal_gets_colours_unless_they_are_not_wanted(environment):
    code, shown = in_terminal(["explain", "x > 1", '{"x": 2}'], environment)
    assert code == 0
    assert "\x1b[1;32m✓" in shown
    _, plain = in_terminal(["explain", "x > 1", '{"x": 2}'], environment | {"NO_COLOR": "1"})
    assert "\x1b[1m✓" in plain
    assert not re.search(r"\x1b\[[\d;]*3\dm", plain)


def test_a_progress_bar_in_the_terminal_leaves_redirected_answers_alone(environment, tmp_path):
    events = tmp_path / "events"
    events.write_text("".join(f"{event.to_json()}\n" for event in islice(Market(1).events(), 2000)))
    filters = tmp_path / "filters"
    filters.write_text("".join(f"{text}\n" for text in filter_texts(100, Market(1), 1)))
    answers = tmp_path / "answers"
    with answers.open("w") as file:
        code, shown = in_terminal(["match", "-f", str(filters), "-e", str(events)], environment, stdout=file)
    assert code == 0
    assert "matching" in shown
    assert '{"event"' not in shown
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [one["event"] for one in lines] == list(range(1, 2001))


def test_the_demo_ends_by_itself_and_checks_itself(program, environment):
    started = time.monotonic()
    result = program("demo", "--seconds", "1", "--filters", "200")
    assert time.monotonic() - started < 20
    assert result.returncode == 0
    assert "matches/event" in result.stdout
    assert re.search(r"✓ \d+ answers? checked .* against all 200 filters: all right\.", result.stdout)
    assert "palio explain" in result.stdout
    code, shown = in_terminal(["demo", "--seconds", "0.5", "--filters", "50"], environment)
    assert code == 0
    assert "busiest filters" in shown
    assert "all right." in shown


def test_the_demo_fails_if_an_answer_is_wrong(command, monkeypatch):
    from palio.cli import demo

    class Forgetful(demo.MatchIndex):
        def match(self, notification):
            return super().match(notification)[1:]

    monkeypatch.setattr(demo, "MatchIndex", Forgetful)
    result = command("demo", "--seconds", "0.3", "--filters", "50")
    assert result.exit_code == 1
    assert "wrong!" in result.stdout


def test_bench_measures_each_thing_beside_a_yardstick(command):
    result = command("bench", "filters", "--seconds", "0.001", "--json")
    document = json.loads(result.stdout)
    assert {"cpu", "python", "seed"} <= document["setup"].keys()
    assert len(document["measurements"]) >= 9
    for row in document["measurements"]:
        assert row["nanoseconds"] > 0
        assert row["ratio"] == pytest.approx(
            row["nanoseconds"] / row["yardstick_nanoseconds"], rel=0.1, abs=0.01
        )


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("matching --filters 300 --workload stock", "stock"),
        ("poset --filters 300 --workload stock", "stock"),
        ("routing --subscriptions 300 --notifications 100", "covering"),
        ("routing --network --brokers 20", "messages handled"),
    ],
)
def test_measurements_of_the_checkout_run_through_the_program(words, shown, environment):
    done = subprocess.run(
        [sys.executable, "-m", "palio.cli.main", "bench", *words.split()],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
