"""Doing what a text says, word by word: commands as they are typed, and Python in one session.

What cannot be done here as it stands is done as nearly as it can: what would go on for ever is asked for what
there is now, the broker listens on a port of its own, folders that Spark writes have their whole name (its Java
was started elsewhere), and a command for a cluster is looked at only, whether everything that it names exists.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from palio.cli.main import Commands, app

ADDRESS = "127.0.0.1:7070"
# The options of `spark-submit` that are ours to name; its own help has them, which takes a JVM to read.
SUBMIT = {"--master", "--deploy-mode", "--archives", "--conf"}
# Folders that Spark itself writes, by the options or the words that come before them.
WRITTEN = {"-o", "--output", "--checkpoint"}
WRITTEN_IN_PYTHON = re.compile(r'(?<=arquet\("|kpoint="|output="|antine=")(?=\w)')
# Settings with a name of one's own at the end.
FREE = ("spark.executorEnv.", "spark.yarn.appMasterEnv.")


def blocks(text: str, *kinds: str) -> Iterator[tuple[str, str]]:
    """The blocks of a page, in their order."""
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if kind in kinds:
            yield kind, block


def typed(block: str) -> list[str]:
    """The command lines of a block, each in one piece; what is printed is left out."""
    joined = re.sub(r" *\\\n *", " ", block)
    if re.search(r"^\$ ", joined, re.MULTILINE):
        return re.findall(r"^\$ (.*)$", joined, re.MULTILINE)
    return [line for line in joined.splitlines() if line.strip()]


class Walk:
    """One folder, one broker, one session, and somebody who types."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.names: dict[str, Any] = {}
        self.said: dict[str, Result] = {}

    def python(self, text: str) -> None:
        text = WRITTEN_IN_PYTHON.sub(f"{Path.cwd()}/", text.replace(ADDRESS, self.server))
        exec(compile(text, "the page", "exec"), self.names)

    def type(self, line: str) -> Result | None:
        """Run a command; None if it is for another machine, and all that it names is there."""
        words = shlex.split(line, comments=True)
        if words[0] in ("pip", "export", "spark-submit") or "--master" in words:
            require_known(words)
            return None
        if words[0] == "mkdir":
            subprocess.run(line, shell=True, check=True)
            return None
        if words[:2] == ["python", "-c"]:
            self.python(words[2])
            return None
        assert words[0] == "palio", line
        if words[1] == "up":
            return None  # it is there already
        words = [word.replace(ADDRESS, self.server) for word in words[1:] if word != "--follow"]
        for at, word in enumerate(words):
            if word in WRITTEN:
                words[at + 1] = str(Path(words[at + 1]).absolute())
        if words[0] == "sub":
            words += ["--timeout", "1s"]
        sent = ""
        if "<" in words:
            sent = Path(words.pop()).read_text()
            words.remove("<")
        done = CliRunner().invoke(app, words, input=sent, catch_exceptions=False)
        assert done.exit_code in (0, 1), (line, done.stdout + done.stderr)
        assert "Traceback" not in done.stdout + done.stderr, line
        self.said[line] = done
        return done


def require_known(words: list[str]) -> None:
    """Every option that a command line names is one."""
    named = {word.partition("=")[0] for word in words if word.startswith("--")}
    if words[0] == "spark-submit":
        assert named <= SUBMIT, words
    elif words[:2] == ["palio", "spark"]:
        known = {name for one in Commands()["spark"].commands[words[2]].params for name in one.opts}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= known, words


def settings_of(words: list[str]) -> Iterator[str]:
    """The settings of Spark that a command line names."""
    for option, value in pairwise(words):
        if option == "--conf":
            yield value.partition("=")[0]


def settings_known_to(spark: Any) -> Callable[[str], bool]:
    """Whether Spark has a setting, by what its own code registers."""
    jvm = spark._jvm
    jvm.java.lang.Class.forName("org.apache.spark.deploy.k8s.Config$")
    entries = jvm.org.apache.spark.internal.config.ConfigEntry
    return lambda name: name.startswith(FREE) or entries.findEntry(name) is not None
