"""The program as a whole: help that can be trusted, endings that scripts can rely on."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import palio
from palio.broker.broker import BrokerServer
from palio.broker.settings import Peer
from palio.cli.demo.stocks import Market, filter_texts
from palio.cli.main import Commands, app
from palio.cli.program.terminal import EXIT_CODES
from palio.protocol.durable.retry import Patience
from palio.routing.durable.desk import DurableSettings
from tests.broker.documents.cards import CARD, card
from tests.cli.live import live_broker
from tests.cli.processes import IN_FOREGROUND, PALIO, started

ROOT = Path(__file__).parents[2]
FILES = ("-f", "examples/filters.jsonl", "-e", "examples/events.jsonl")


def commands() -> list[tuple[str, ...]]:
    """Every command and group, and every command of a group, in the order of the help."""
    found: list[tuple[str, ...]] = [()]
    for name, one in Commands().items():
        found.append((name,))
        # Most measurements are programs of the checkout, with a help of their own.
        inside = ("filters",) if name == "bench" else getattr(one, "commands", ())
        found += [(name, inner) for inner in inside]
    return found


COMMANDS = commands()
# These run until they are stopped.
FOREVER = ("palio up", "palio network up")
# The examples of these run in tests/spark, in the session that all tests share.
SPARK = "palio spark"
BENCH_AS_JSON = "palio bench filters --seconds 0.02 --seed 7 --json"
# These are for the store of a broker that is stopped.
STOPPED = (
    *(f"palio journal {name}" for name in ("trim --store", "verify", "backup", "restore")),
    "palio audit --store",
)
# These talk to a broker until they are stopped, which tests/cli/test_audit.py and tests/folders do; or until it
# has stopped, which tests/live/test_leaving.py does; or let it talk to others, which test_looking.py does.
FOLLOWING = (
    "palio audit --follow",
    "palio files",
    "palio leave 127",
    "palio leave --to",
    "palio link add",
    "palio peers --watch",
)
# These talk to a broker.
TALKING = (
    *("pub", "sub", "advertise", "request", "reply", "replay", "backtest", "trace", "stats", "peers", "forget"),
    *("clients", "subs", "top", "dlq", "context", "config", "network status", "explain @", "token", "rights"),
    *("journal", "audit", "family", "files", "doc", "overlay", "leave", "link"),
    "patterns -p examples/patterns.jsonl --timeout",
)


def examples(help_text: str) -> list[str]:
    return re.findall(r"^\s*\$ (.*?)\s*$", help_text, re.MULTILINE)


@cache
def help_of(name: tuple[str, ...]) -> Result:
    return CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "80"}, catch_exceptions=False)


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_help_shows_exit_codes_and_examples_that_fit_eighty_columns(name):
    result = help_of(name)
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    assert EXIT_CODES in words
    assert "<bool>" not in words  # a flag takes no value
    found = examples(result.stdout)
    assert found
    for example in found:
        assert example.count("'") % 2 == 0, "broken over two lines"


@pytest.fixture(scope="module")
def shown() -> list[str]:
    """The examples of all help texts, each once, in their order."""
    texts = [help_of(name).stdout for name in COMMANDS]
    return list(dict.fromkeys(example for text in texts for example in examples(text)))


def talks(example: str) -> bool:
    return example.startswith(tuple(f"palio {name}" for name in TALKING))


def needs_shell(example: str) -> bool:
    """Whether there is more in it than words, and `&&` between commands."""
    return bool(re.search("[|<>&]", re.sub("'[^']*'", "", example).replace("&&", "")))


def run_example(example: str, command, environment: dict[str, str]) -> tuple[int, str, str]:
    """Its exit code, and what it wrote: within this process if it is plain, by a shell if it needs one."""
    if needs_shell(example):
        done = subprocess.run(
            ["bash", "-c", example],
            cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr
    written = errors = ""
    for one in example.split(" && "):
        name, *words = shlex.split(one)
        assert name == "palio"
        result = command(*words)
        written, errors = written + result.stdout, errors + result.stderr
        if result.exit_code:
            break
    return result.exit_code, written, errors


def shortened(example: str, folder: Path) -> str:
    """The example with less to do: for a shorter time, with fewer seeds, in one process."""
    for pattern, instead in (
        (r"--seconds 3\b", "--seconds 0.3"),
        (r"--seconds 0\.02", "--seconds 0.001"),
        (r"--seeds \d+", "--seeds 3"),
        (r"--workers \d+", "--workers 1"),
        (r"(sim run .*)", r"\1 --quick --workers 1"),
        (r"--timeout [12]s", "--timeout 0.2s"),
        (r"audit --follow", "audit"),
        (r"palio-data/palio.db", "palio.db"),
        (r"/tmp/palio-example", str(folder / "out")),
    ):
        example = re.sub(pattern, instead, example)
    return example


def test_the_examples_of_the_help_run(shown, command, environment, tmp_path):
    offline = [one for one in shown if not talks(one) and not one.startswith((*FOREVER, SPARK))]
    offline.remove("palio demo")  # ten seconds; a shorter one is among the others
    offline.remove(BENCH_AS_JSON)  # another test runs it
    slow = {
        name: sorted(one for one in offline if one.startswith(f"palio {name}"))
        for name in ("demo", "bench", "chaos")
    }
    quick = {one for one in slow["bench"] if one.startswith("palio bench filters")}
    tried = sorted(set(offline) - set(slow["demo"][1:]) - set(slow["bench"]) - set(slow["chaos"]) | quick)
    assert any(map(needs_shell, tried))
    for example in tried:
        assert "palio" in example
        code, said, errors = run_example(shortened(example, tmp_path), command, environment)
        assert code in (0, 1), (example, errors)
        assert said, example
        assert "\x1b" not in said + errors, example


def test_the_examples_that_talk_to_a_broker_run_against_one(shown, tmp_path, command, environment, monkeypatch):
    with ExitStack() as stack:
        impatient = DurableSettings(patience=Patience(attempts=1))
        live = stack.enter_context(live_broker(tmp_path, durable=impatient))
        stack.enter_context(live_broker(tmp_path, "lucca", peers=(Peer(live.server),)))
        live.do(_with_a_dead_letter(live.server))
        live.begin(_publish_for_ever(live.server))
        settings = {"PALIO_SERVER": live.server, "XDG_CONFIG_HOME": str(tmp_path), "PALIO_DATA": str(tmp_path)}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        live.broker.documents.readers.tell([CARD])
        for number in (1, 2):
            (tmp_path / f"card-{number}.xml").write_bytes(card(f"card-{number}"))
        (tmp_path / "orders").mkdir()
        (tmp_path / "network.toml").write_text(f'brokers = 2\ndata = "{tmp_path}/network"\n')
        # What others need is taken away at the end only.
        for example in sorted(filter(talks, shown), key=lambda one: "--force" in one):
            if example.startswith(STOPPED) or (example.startswith(FOLLOWING) and "--once" not in example):
                continue
            there = shortened(example, tmp_path).replace("palio.db", f"/{tmp_path}/siena/palio.db")
            there = there.replace("examples/network.toml", f"{tmp_path}/network.toml")
            there = there.replace("palio://127.0.0.1:7070", f"palio://{live.server}")
            there = re.sub(r"\b(card-\d\.xml)", rf"{tmp_path}/\1", there)
            there = there.replace("--in orders", f"--in {tmp_path}/orders")
            code, said, errors = run_example(there, command, environment | settings)
            said += errors
            assert code in (0, 1), (example, said)
            assert said or "--json" in example, example
            assert "Traceback" not in said, example
            assert "\x1b" not in said, example
    for example in shown:
        if example.startswith(STOPPED):
            there = example.replace("palio-data", f"{tmp_path}/siena").replace("copy.db", f"{tmp_path}/copy.db")
            result = command(*shlex.split(there)[1:])
            assert result.exit_code == 0, (example, result.stdout + result.stderr)


async def _publish_for_ever(server: str) -> None:
    async with palio.connect(f"palio://{server}") as client:
        while True:
            await client.publish({"symbol": "ACME", "price": 101.5})
            await asyncio.sleep(0.05)


async def _with_a_dead_letter(server: str) -> None:
    """A durable subscription desk-7 that has rejected its first event."""
    async with palio.connect(f"palio://{server}") as client:
        subscription = await client.subscribe("price > 100", durable="desk-7")
        await client.publish({"price": 200})
        await (await subscription.next(30)).reject()
        while not await client.inspect("dlq"):
            await asyncio.sleep(0.01)


def test_the_examples_that_run_until_they_are_stopped_come_up(shown, environment, tmp_path):
    running = [one for one in shown if one.startswith(FOREVER)]
    assert len(running) >= 4
    network = Path("examples/network.toml").read_text().replace("port = 7070", "port = 0")
    (tmp_path / "network.toml").write_text(network.replace("palio-data", "data"))
    (tmp_path / "one.toml").write_text("brokers = 1\n")
    free = {"PALIO_LISTEN": "127.0.0.1:0", "PALIO_HTTP": "127.0.0.1:0"}
    for number, example in enumerate(running):
        # With all its brokers the network is started once.
        file = "one.toml" if "--strict" in example else "network.toml"
        arguments = example.replace(":7171", ":0").replace("examples/network.toml", file)
        arguments = arguments.replace("examples/palio.toml", str(ROOT / "examples/palio.toml"))
        # A standby needs a store to stand by for: that of the first one, which has ended.
        more = free | {"PALIO_DATA": str(tmp_path / ("0" if "--standby" in example else str(number)))}
        with started(*shlex.split(arguments)[1:], environment=environment | more, folder=tmp_path) as process:
            said = []
            while not any("is up" in line for line in said):
                said.append(process.stderr.readline())
                assert said[-1], (example, said)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            assert process.returncode == 0, example


def test_version_and_wrong_usage(command):
    assert re.fullmatch(r"palio \d+\.\d+\S*\n", command("--version").stdout)
    assert command("mtch").exit_code == 2
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
        "palio demo --part matching --seconds 2 --filters 10 | head -n 1",
    ],
)
def test_a_closed_pipe_ends_it_quietly_with_141(environment, command_line):
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


@pytest.mark.parametrize("words", ["lint examples/filters.jsonl", "match --help", "--help"])
def test_a_pipe_that_nobody_reads_ends_it_quietly_with_141(environment, words):
    read, write = os.pipe()
    os.close(read)  # before anything is written, for sure
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run(
            [*PALIO, *words.split()],
            cwd=ROOT, env=environment, stdout=pipe, stderr=subprocess.PIPE, encoding="utf-8", check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, "")


def test_a_full_disk_is_reported(environment):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PALIO, "match", "-q", *FILES],
            cwd=ROOT, env=environment, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (6, "Cannot write the output: No space left on device.\n")


@pytest.mark.parametrize("code", [0, 3])
def test_whoever_is_still_at_work_is_waited_for_in_the_end(code):
    """Threads, what is registered for the end, and what is not yet written."""
    lines = (
        "import atexit, sys, threading",
        "from palio.cli.program.endings import end",
        "atexit.register(sys.stdout.write, 'registered')",
        "go_on = threading.Event()",
        "work = threading.Thread(target=lambda: go_on.wait() and sys.stdout.write('worked '))",
        "if len(sys.argv) > 1: work.start()",
        "sys.stdout.write('written ')",
        "go_on.set()",
        f"end({code})",
    )
    for arguments, expected in (([], "written registered"), (["a thread"], "written worked registered")):
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(lines), *arguments], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (code, expected, "")


def test_answers_stream_and_an_interrupt_ends_it_quietly_with_130(environment):
    process = subprocess.Popen(
        [*IN_FOREGROUND, *PALIO, "match", "-q", "-f", "examples/filters.jsonl", "-e", "-"],
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
    result = program("demo", "--seconds", "0.3", "--filters", "200", "--part", "matching")
    assert time.monotonic() - started < 20
    assert result.returncode == 0
    assert "matches/event" in result.stdout
    assert re.search(r"✓ \d+ answers? checked .* against all 200 filters: all right\.", result.stdout)
    assert "palio explain" in result.stdout
    code, shown = in_terminal(
        ["demo", "--seconds", "0.3", "--filters", "50", "--part", "matching"], environment
    )
    assert code == 0
    assert "busiest filters" in shown
    assert "all right." in shown


def test_the_demo_of_a_network_ends_by_itself_and_checks_itself(command):
    result = command("demo", "--part", "network", "--seed", "3")
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "Every delivery was as the filters say" in result.stdout
    assert "is back" in result.stdout
    assert "supersedes it" in " ".join(result.stdout.split())


def test_the_demo_of_a_network_notices_what_is_missing(command, monkeypatch):
    from palio.cli.demo import network as demo_network

    class Deaf(demo_network.Watcher):
        async def _watch(self):
            pass

    class Near(demo_network.Member):
        """A broker within this process."""

        async def start(self):
            self.broker = BrokerServer(self.settings)
            await self.broker.start()

        async def end(self, how):
            await self.broker.stop()

    monkeypatch.setattr(demo_network, "Watcher", Deaf)
    monkeypatch.setattr(demo_network, "Member", Near)
    monkeypatch.setattr(demo_network, "_ARRIVE_WITHIN", 0.5)
    result = command("demo", "--part", "network")
    assert result.exit_code == 1
    assert "did not come to" in result.stdout


def test_the_demo_fails_if_an_answer_is_wrong(command, monkeypatch):
    from palio.cli.demo import commands as demo

    class Forgetful(demo.MatchIndex):
        def match(self, notification):
            return super().match(notification)[1:]

    monkeypatch.setattr(demo, "MatchIndex", Forgetful)
    result = command("demo", "--seconds", "0.3", "--filters", "50", "--part", "matching")
    assert result.exit_code == 1
    assert "wrong!" in result.stdout


def test_bench_measures_each_thing_beside_a_yardstick(shown, command, tmp_path):
    assert BENCH_AS_JSON in shown
    result = command(*shlex.split(shortened(BENCH_AS_JSON, tmp_path))[1:])
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
        ("store --events 300 --group 50", "acknowledge, sync full"),
        ("routing --network --brokers 20", "messages handled"),
    ],
)
def test_measurements_of_the_checkout_run_through_the_program(words, shown, command, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    result = command("bench", *words.split())
    assert result.exit_code == 0, result.stderr
    assert shown in result.stdout


def test_the_busiest_filters_of_the_demo_are_different_ones():
    from palio.cli.demo.commands import _Stream

    market = Market(1)
    texts = dict(enumerate(filter_texts(3000, market, 1), start=1))
    stream = _Stream(palio.MatchIndex(texts.items()), texts, 1.0)
    for event in islice(market.events(), 300):
        stream.take(event)
    ranking = stream.busiest(6)
    assert len({text for text, _, _ in ranking}) == 6
    for text, subscribers, count in ranking:
        assert subscribers == list(texts.values()).count(text)
        assert all(stream.counts[id] == count for id, one in texts.items() if one == text)
    assert ranking[0][2] == max(stream.counts.values())


def test_every_example_is_on_one_line_of_the_help():
    """At the width of the help, 80 columns: what is folded cannot be copied."""
    for module in sorted((ROOT / "src/palio/cli").rglob("*.py")):
        for call in ast.walk(ast.parse(module.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "help_epilog":
                texts = [one.value for one in call.args if isinstance(one, ast.Constant)]
                assert all(len(f"   $ {text}") <= 80 for text in texts), (module.name, texts)
