"""The page about XML is run: every command and example on it does what the page says."""

import ast
import asyncio
import re
import shutil
import subprocess

import pytest

import palio
from tests.cli.conftest import environment as environment  # noqa: PLC0414 (a fixture)
from tests.cli.forks import forks
from tests.cli.processes import broker_up
from tests.docs.test_http_page import commands


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_every_command_and_example_does_what_the_page_says(root, environment, tmp_path, monkeypatch, capsys):
    page = (root / "docs" / "xml.md").read_text()
    shutil.rmtree(root / "palio-data-in", ignore_errors=True)  # of a run that failed
    with broker_up(
        "--name", "siena", "--soap", "--http", "127.0.0.1:0", environment=environment, folder=tmp_path
    ) as (
        _,
        ready,
    ):
        addresses = {"127.0.0.1:7080": f"127.0.0.1:{ready['http_port']}", "127.0.0.1:7070": ready["server"]}
        more = environment | {"PALIO_SERVER": ready["server"], "COLUMNS": "200"}
        for kind, block in re.findall(r"^```(console|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
            for shown, real in addresses.items():
                block = block.replace(shown, real)
            if kind == "python":
                monkeypatch.chdir(root)
                code = compile(block, "docs/xml.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                asyncio.run(run(code))
                said = re.findall(r"print\(.*\)  # (.*)$", block, re.MULTILINE)
                assert capsys.readouterr().out.splitlines() == said
                continue
            for command, printed in commands(f"```console\n{block}```"):
                assert output(command, root, more) == lines(printed), command


async def run(code):
    if (waiting := eval(code, {"palio": palio})) is not None:
        await waiting


def output(command, root, environment):
    """What is printed on both streams, in its order."""
    command = command.replace("curl ", "curl --silent --show-error --max-time 20 ", 1)
    words = ["bash", "-c", f"({command}) 2>&1"]
    there = forks().on_path(environment)
    done = subprocess.run(words, capture_output=True, text=True, cwd=root, env=there, check=False)
    return lines(done.stdout)


def lines(text):
    return [line.rstrip() for line in text.strip().splitlines()]
