"""Whatever extra is installed, and with none: every command works, or says in one sentence what it needs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from palio.cli.main import COMMANDS, Commands
from palio.cli.program.extras import BRINGS, missing_of, told
from palio.cli.spark.commands import JOBS
from palio.model.errors import MissingDependency
from tests.cli.live import live_broker
from tests.cli.plain_runs import AT_WORK, NOBODY, words

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: wanted for name, wanted in PROJECT["optional-dependencies"].items() if name != "dev"}
NONE = "none"
CASES = [NONE, *EXTRAS]
FIRST = "broker"  # the extra that is tried each time
HEAVY = ("pyarrow", "numpy", "pandas", "pyspark", "sqlalchemy", "starlette", "aiohttp", "matplotlib", "uvicorn")
ADVICE = re.compile(r"This needs \S+, which is not installed; `pip install 'palio\[(\w+)\]'` brings it\.")


def commands() -> list[str]:
    """Every command, and every command of a group, as they are typed."""
    found = [""]
    for name, one in Commands().items():
        found.append(name)
        found += [f"{name} {inner}" for inner in getattr(one, "commands", ())]
    return found


def distributions_of(extra: str) -> set[str]:
    """What `pip install 'palio[extra]'` would install, as pyproject.toml and the packages here say."""
    found: set[str] = set()
    waiting = [Requirement(one) for one in PROJECT["dependencies"] + EXTRAS.get(extra, [])]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        name = canonicalize_name(wanted.name)
        if name == "palio":
            waiting += [Requirement(one) for inner in wanted.extras for one in EXTRAS[inner]]
            continue
        found.add(name)
        try:
            more = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        for text in more:
            inner = Requirement(text)
            if inner.marker is None or any(
                inner.marker.evaluate({"extra": one}) for one in ("", *wanted.extras)
            ):
                waiting.append(inner)
    return found


@cache
def owners() -> dict[str, set[str]]:
    """To which distributions each package belongs, by the name under which it is imported."""
    return {
        package: {canonicalize_name(one) for one in names}
        for package, names in packages_distributions().items()
    }


def packages_of(extra: str) -> set[str]:
    wanted = distributions_of(extra)
    return {package for package, names in owners().items() if names & wanted}


def test_the_table_of_extras_is_what_pyproject_says():
    assert BRINGS.keys() == EXTRAS.keys()
    alone = packages_of(NONE)
    for extra, wanted in EXTRAS.items():
        assert packages_of(extra) - alone >= BRINGS[extra], extra
        for one in map(Requirement, wanted):
            packages = {name for name, names in owners().items() if canonicalize_name(one.name) in names}
            assert one.name == "palio" or packages & BRINGS[extra], (extra, one.name)
        for inner in (inner for one in map(Requirement, wanted) for inner in one.extras if one.name == "palio"):
            assert BRINGS[extra] >= BRINGS[inner], (extra, inner)


def test_an_extra_that_a_command_needs_as_a_whole_is_told_instead_of_a_part_of_it():
    assert told(ModuleNotFoundError(name="pyarrow.parquet"), "").extra == "arrow"
    assert told(ModuleNotFoundError(name="pyarrow"), "spark").extra == "spark"
    assert told(ModuleNotFoundError(name="matplotlib"), "spark").extra == "sim"
    assert told(MissingDependency("pyarrow", "arrow"), "sim").extra == "sim"
    assert told(MissingDependency("pyspark", "connect"), "spark").extra == "connect"
    assert told(ModuleNotFoundError(name="palio.nonsense"), "spark") is None
    assert missing_of("broker") is None


def test_the_help_loads_nothing_that_it_does_not_use(environment):
    script = (
        "import sys\n"
        "from palio.cli.main import app\n"
        "try:\n    app(sys.argv[1:], prog_name='palio')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    for arguments in (["--help"], ["spark", "--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True, encoding="utf-8", env=environment, check=True,
        )  # fmt: skip
        loaded = set(re.findall(r"'(\w+)'", done.stderr))
        assert "typer" in loaded
        assert not loaded & set(HEAVY), arguments


def test_publishing_loads_nothing_that_it_does_not_use(environment, tmp_path):
    script = (
        "import sys\n"
        "from palio.cli.main import app\n"
        "try:\n    app(sys.argv[1:], prog_name='palio')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print(len(sys.modules), *sys.modules)\n"
    )
    with live_broker(tmp_path) as live:
        words = ("pub", "n=1", "--count", "2", "--priority=3", "--server", live.server)
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            capture_output=True, encoding="utf-8", env=environment, check=True,
        )  # fmt: skip
    count, *loaded = done.stdout.split()
    assert "2 events confirmed by siena" in done.stderr
    assert "typer" in loaded
    needless = {"pydantic", "rich", "palio.language", "palio.matching", *HEAVY}
    assert not needless & {*loaded, *(one.partition(".")[0] for one in loaded)}
    assert int(count) < 480  # 428 when this was written


def test_the_list_of_commands_says_what_each_says_of_itself():
    for name, command in Commands().items():
        assert COMMANDS[name].summary == " ".join(command.help.split("\n\n")[0].split()), name
    jobs = Commands()["spark"]
    for name, entry in jobs.entries.items():
        assert entry.summary == " ".join(jobs.commands[name].help.split("\n\n")[0].split()), name


def judge(here: set[str], one: dict[str, Any]) -> None:
    """A call worked, or said in a sentence which extra it needs, and that is one that is not here."""
    call, code, said = one["words"], one["code"], one["said"]
    where = f"palio {' '.join(call)}, with {one['case']}: {code}\n{said}{one['trace']}"
    assert not one["trace"], where
    assert "Traceback" not in said, where
    assert "Error importing" not in said, where
    advised = ADVICE.findall(" ".join(said.split()))
    for extra in advised:
        assert not here >= BRINGS[extra], where
    if "--help" in call and (call[0] != "spark" or here >= BRINGS["spark"]) and call[0] != "bench":
        assert code == 0, where
    if code and advised:
        assert len(said.strip().splitlines()) == 1, where


def attempted(
    calls: dict[str, list[list[str]]], environment: dict[str, str], folder: Path
) -> list[dict[str, Any]]:
    """What came of calls, by the extra that is installed while the others are not; each is judged."""
    brought = {case: packages_of(case) for case in CASES}
    everything = set().union(*brought.values())
    asked = {
        "missing": {case: sorted(everything - brought[case]) for case in calls},
        "modules": sorted({f"palio.cli.{one.module}" for one in [*COMMANDS.values(), *JOBS.values()]}),
        "calls": calls,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.without"],
        cwd=ROOT, input=json.dumps(asked), encoding="utf-8", capture_output=True, check=False,
        env=environment | {"PALIO_SERVER": NOBODY, "XDG_CONFIG_HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == sum(map(len, calls.values()))
    for one in lines:
        judge(brought[one["case"]], one)
    return lines


@pytest.mark.parametrize(
    "extras",
    [
        pytest.param([FIRST], id=FIRST),
        pytest.param([one for one in EXTRAS if one != FIRST], id="the others", marks=pytest.mark.slow),
    ],
)
def test_every_command_works_or_says_what_it_needs_with_each_extra(extras, environment, tmp_path):
    """With none all are tried; with one extra, those that said something of extras without any."""
    helps = {one: [*one.split(), "--help"] for one in commands()}
    plain = {one: words(one, tmp_path) for one in commands()}
    alone = attempted({NONE: [*helps.values(), *plain.values()]}, environment, tmp_path)
    bare = {tuple(one["words"]): one for one in alone}
    assert bare["--help",]["code"] == bare["spark", "--help"]["code"] == 0
    demo = bare[tuple(plain["demo"])]
    assert demo["code"] == 0
    assert "palio[broker]" in demo["said"]
    missed = {call for call, one in bare.items() if ADVICE.search(" ".join(one["said"].split()))}
    assert len(missed) > len(JOBS)
    calls = {}
    for case in extras:
        here = packages_of(case)
        busy = {one for one, extra in AT_WORK.items() if here >= BRINGS[extra]}
        tried = [helps[one] for one in helps] + [plain[one] for one in plain if one not in busy]
        calls[case] = [call for call in tried if tuple(call) in missed]
    assert all(calls.values())
    attempted(calls, environment, tmp_path)
