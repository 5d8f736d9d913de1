"""`make` says what it does to the machine before it does it, and does no more than is needed."""

import os
import re
import shutil
import subprocess

import pytest


@pytest.fixture
def machine(tmp_path):
    """A machine without Java and PostgreSQL, where we are root and apt-get only tells what it is asked for."""
    for name in ("make", "sh", "ls", "date", "grep", "sed", "expand"):
        (tmp_path / name).symlink_to(shutil.which(name))
    for name, says in (("id", "echo 0"), ("apt-get", 'echo "apt-get $*" >&2')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def made(root, machine, *targets: str) -> str:
    environment = {"PATH": str(machine)}
    done = subprocess.run(
        [shutil.which("make"), *targets],
        cwd=root, env=environment, encoding="utf-8", check=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


def test_what_is_installed_is_said_before(root, machine):
    said, done = made(root, machine, "java").splitlines()[:2]
    assert "Spark needs Java" in said
    assert "default-jre-headless is installed now" in said
    assert done == "apt-get install --yes --quiet=2 default-jre-headless"
    (machine / "id").write_text("#!/bin/sh\necho 1000\n")
    assert "is left out" in made(root, machine, "java")
    assert "apt-get install --yes" not in made(root, machine, "java")


def test_the_demo_needs_no_postgresql_and_the_tests_do(root, machine):
    assert "initdb" not in made(root, machine, "-n", "demo")
    assert "initdb" in made(root, machine, "-n", "test")
    assert "apt-get install --yes" not in made(root, machine, "-n", "setup")


def test_what_the_readme_writes_is_ignored_by_git(root):
    if not os.path.exists(root / ".git") or shutil.which("git") is None:
        pytest.skip("this is no checkout, or there is no git")
    readme = (root / "README.md").read_text()
    typed = "".join(re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE))
    written = set(re.findall(r"(?:--data|--lake|--output|--picture|' >) ([\w./-]+[a-z0-9])\s", typed))
    assert {"palio-data-2", "palio-lake", "pairs", "difference.png", "jump.txt"} <= written
    for name in ("palio-data", "palio-report.html", *sorted(written)):
        path = name if "." in name else f"{name}/x"
        assert subprocess.run(["git", "check-ignore", "-q", path], cwd=root, check=False).returncode == 0, name
