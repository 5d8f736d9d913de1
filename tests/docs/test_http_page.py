"""The page about HTTP is run: every command on it says what the page says."""

import ast
import asyncio
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest

import palio
from palio.broker.gateway.problems import STATUSES
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.gateway.streams import WINDOW
from palio.language import MEMBERS
from tests.cli.conftest import environment as environment  # noqa: PLC0414 (a fixture)
from tests.cli.processes import await_condition, broker_up


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "http.md").read_text()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def commands(page):
    """Every command of the page with what it prints, in order."""
    for block in re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def lives(printed):
    """What is printed, whatever the lives of the broker are called, in which events were numbered."""
    return re.sub(r"^(id: .+/[0-9]+)@[0-9a-f]+\.[0-9a-f]{16}\.[0-9]+$", r"\1@life", printed, flags=re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_every_command_says_what_the_page_says(page, root, environment, tmp_path):
    setting = re.search(r"^PALIO_GATEWAY='(.*)' palio up --name siena$", page, re.MULTILINE)[1]
    hook_port = free_port()
    hook = subprocess.Popen(
        [sys.executable, str(root / "examples" / "webhook.py"), str(hook_port)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        await_condition(lambda: listens(hook_port))
        more = environment | {"PALIO_GATEWAY": setting}
        with broker_up("--name", "siena", "--http", "127.0.0.1:0", environment=more, folder=tmp_path) as (
            _,
            ready,
        ):
            checked = 0
            for command, printed in commands(page):
                ports = {
                    "127.0.0.1:7080": f"127.0.0.1:{ready['http_port']}",
                    "127.0.0.1:9000": f"127.0.0.1:{hook_port}",
                }
                for shown, real in ports.items():
                    command, printed = command.replace(shown, real), printed.replace(shown, real)
                command = command.replace("curl ", "curl --silent --show-error --max-time 20 ", 1)
                deadline = time.monotonic() + 30
                while lives(found := said(command)) != lives(printed.strip()):
                    # A stream ends after a moment, in which a machine that is busy may not have come to it.
                    assert "wait=" in command, f"{command}\n{found}"
                    assert time.monotonic() < deadline, f"{command}\n{found}"
                checked += 1
            assert checked > 12
            assert hook.stdout.readline() == 'order.created 19 {"price":99}\n'
            [example] = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
            example = example.replace("127.0.0.1:7080", f"127.0.0.1:{ready['http_port']}")
            code = compile(example, "docs/http.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

            async def run():
                await eval(code, {"palio": palio})

            asyncio.run(run())
    finally:
        hook.kill()
        hook.communicate()


def said(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.strip()


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_what_the_page_says_about_numbers(page):
    settings = GatewaySettings()
    assert f"up to {settings.push_longest_pause:.0f}\nseconds" in page
    assert f"after {settings.push_attempts} attempts" in page
    assert f"After {WINDOW} events" in page
    for dialect in MEMBERS:
        assert f"`{dialect}`" in page
    table = page.split("## What is wrong")[1]
    for status in set(STATUSES.values()) - {500}:
        assert str(status) in table
