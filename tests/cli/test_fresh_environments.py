"""The built wheel in fresh environments, each with one extra or none. (Slow: it installs from the index.)"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.plain_runs import AT_WORK, NOBODY, words
from tests.cli.test_installing import BRINGS, CASES, NONE, ROOT, commands, judge

PATIENCE = 1800  # seconds; an index may be slow, and Spark is large
FOREVER = "network up"  # runs until it is stopped


def succeed(*command: str | Path, **settings) -> str:
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False, **settings
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """Built from the source distribution, so that this has all that is needed."""
    folder = tmp_path_factory.mktemp("built")
    ignored = shutil.ignore_patterns(
        ".venv", ".git", "*.so", "core.c", "quick.c", "build", "*.egg-info", "__pycache__", ".*_cache"
    )
    shutil.copytree(ROOT, folder / "palio", ignore=ignored)
    script = "from setuptools.build_meta import build_sdist; print(build_sdist('..'))"
    source = succeed(sys.executable, "-c", script, cwd=folder / "palio").splitlines()[-1]
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    succeed(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder / "wheel", folder / source)
    return next((folder / "wheel").glob("palio-*.whl"))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_command_works_or_says_what_it_needs_in_a_fresh_environment(case, wheel, tmp_path):
    there = tmp_path / "environment"
    venv.create(there, with_pip=True)
    extra = "" if case == NONE else f"[{case}]"
    python, program = there / "bin" / "python", there / "bin" / "palio"
    succeed(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", f"{wheel}{extra}")
    work = tmp_path / "work"
    shutil.copytree(ROOT / "examples", work / "examples")
    shutil.copy(ROOT / "tests" / "cli" / "without.py", work)
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "FORCE_COLOR", "PYTHONWARNINGS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {
        "PALIO_SERVER": NOBODY,
        "XDG_CONFIG_HOME": str(tmp_path),
        "COLUMNS": "80",
        "PYTHONUTF8": "1",
    }
    here = set(json.loads(succeed(python, "-c", _WHAT_IS_HERE)))
    assert case == NONE or here >= BRINGS[case]
    busy = [one for one, needed in AT_WORK.items() if here >= BRINGS[needed]]
    calls = [[*one.split(), "--help"] for one in commands()]
    calls += [words(one, tmp_path) for one in commands() if one not in busy]
    asked = {"missing": {case: []}, "modules": [], "calls": {case: calls}}
    said = succeed(python, "without.py", input=json.dumps(asked), cwd=work, env=environment)
    lines = [json.loads(line) for line in said.splitlines()]
    assert len(lines) == len(calls)
    for one in lines:
        judge(here, one)
    for one in ("", "--help", "spark --help", *(one for one in busy if one != FOREVER)):
        call = words(one, tmp_path)
        done = subprocess.run(
            [program, *call],
            cwd=work, env=environment, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        judge(here, {"case": case, "words": call, "code": done.returncode, "said": said, "trace": ""})


_WHAT_IS_HERE = """
import json
from importlib.util import find_spec
from palio.cli.program.extras import BRINGS
print(json.dumps([one for one in set().union(*BRINGS.values()) if find_spec(one)]))
"""
