"""What the README shows is what happens."""

import os
import re
import shlex
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def readme(root) -> str:
    return (root / "README.md").read_text()


def test_the_first_example_runs_as_shown(readme):
    example, *_ = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(example, names)
    for line in example.splitlines():
        if shown := re.search(r"^(\w.*\))\s+# (True|\[.*?\])", line):
            assert eval(shown[1], names) == eval(shown[2]), line


def test_the_commands_print_what_is_shown(readme, root):
    sessions = re.findall(r"^```console\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert len(sessions) >= 4
    for session in sessions:
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
            if not command.startswith("palio "):
                continue
            ran = subprocess.run(
                [sys.executable, "-m", "palio.cli.main", *shlex.split(command)[1:]],
                cwd=root,
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"NO_COLOR": "1", "COLUMNS": "120"},
            )
            assert ran.stdout == shown, command
            assert ran.returncode in (0, 1), ran.stderr


def test_every_make_command_of_the_readme_exists(readme, root):
    makefile = (root / "Makefile").read_text()
    targets = set(re.findall(r"make ([a-z]+)", readme))
    assert {"demo", "test", "lint", "bench"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
