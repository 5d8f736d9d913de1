"""`palio up`: a broker that starts without a word of configuration, says where it is, and ends in order."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import urllib.request

import pytest

from palio.broker.settings import Security, Settings
from palio.cli.brokers.up import _who
from palio.cli.program.connecting import ask
from tests.cli.processes import PATIENCE, await_condition, broker_up, started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_what_to_type_and_ends_in_order(environment, tmp_path, number):
    here = {"environment": environment, "folder": tmp_path, "anew": number is signal.SIGINT}
    with broker_up("--http", "127.0.0.1:0", **here) as (process, ready):
        assert ready["server"] == f"127.0.0.1:{ready['port']}"
        assert ready["pid"] == process.pid
        with urllib.request.urlopen(f"http://127.0.0.1:{ready['http_port']}/health") as answer:
            assert answer.read() == b"well\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert f"clients  palio://{ready['server']}  this machine only" in said
    assert "data     palio-data (what is confirmed is on disk)" in said
    assert f"palio sub --server {ready['server']} 'price > 100'" in said
    assert "The broker has stopped." in said
    assert (tmp_path / "palio-data" / "palio.db").exists()
    assert not (tmp_path / "ready.json").exists()


def test_a_start_that_fails_says_why_and_nothing_else(environment, tmp_path):
    """The port for HTTP is taken: everything else had been opened by then, and is closed without a word."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with started(
            "up", "--listen", "127.0.0.1:0", "--http", address, environment=environment, folder=tmp_path
        ) as failed:
            _, said = failed.communicate(timeout=PATIENCE)
        assert failed.returncode != 0
    assert f"The address {address} for HTTP is in use" in said
    assert "has stopped" not in said
    assert "is up" not in said


async def asked_name(server: str) -> str:
    [[stats]] = await ask(server, "stats")
    return str(stats["broker"]["name"])


def test_flags_win_over_the_environment_and_that_over_the_file(environment, tmp_path):
    (tmp_path / "palio.toml").write_text('name = "by-file"\njournal = false\nlog_format = "json"\n')
    for more, arguments, expected in (
        ({}, (), "by-file"),
        ({"PALIO_NAME": "by-environment"}, (), "by-environment"),
        ({"PALIO_NAME": "by-environment"}, ("--name", "by-flag"), "by-flag"),
    ):
        with broker_up(*arguments, environment=environment | more, folder=tmp_path) as (process, ready):
            assert ready["name"] == asyncio.run(asked_name(ready["server"])) == expected
            process.terminate()
            _, said = process.communicate(timeout=PATIENCE)
        assert "nothing is durable" in said
        logged = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        assert logged[0]["message"] == "The broker is up."
    assert not (tmp_path / "palio-data").exists()


def test_brokers_link_by_flags(environment, tmp_path):
    (tmp_path / "second").mkdir()
    with broker_up("--name", "top", environment=environment, folder=tmp_path) as (_, top):
        more = ("--name", "low", "--peer", f"master={top['server']}")
        with broker_up(*more, environment=environment, folder=tmp_path / "second") as (process, _):

            def linked():
                [peers] = asyncio.run(ask(top["server"], "peers"))
                return [one for one in peers if one["kind"] != "not in use"]

            [peer] = await_condition(linked, process)
            assert (peer["name"], peer["kind"]) == ("low", "below")


def test_what_prevents_a_start_is_a_sentence_that_says_what_to_do(environment, tmp_path):
    def ends(*arguments: str) -> str:
        with started("up", *arguments, environment=environment, folder=tmp_path) as process:
            _, said = process.communicate(timeout=PATIENCE)
            assert process.returncode == 6
            assert "Traceback" not in said
            return said

    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = ends("--listen", address)
        assert f"The address {address} for clients is in use" in said
        assert "choose another address with --listen" in said
        said = ends("--listen", "127.0.0.1:0", "--http", address)
        assert f"The address {address} for HTTP is in use" in said
        assert "--http" in said
    (tmp_path / "file").touch()
    assert "Choose another one with --data" in ends("--data", "file/data", "--http", "off")
    with broker_up(environment=environment, folder=tmp_path):
        said = ends("--listen", "127.0.0.1:0", "--http", "off")
        assert "is in use" in said
        assert "Stop that one first" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", ":7070"), "The flag --listen"),
        (("--peer", "uncle=127.0.0.1:7070"), "The flag --peer"),
        (("--strategy", "hope"), "The flag --strategy"),
        (("--config", "no-such.toml"), "no-such.toml: $: This file cannot be read"),
    ],
)
def test_wrong_settings_are_told_with_their_origin(command, arguments, said):
    result = command("up", *arguments)
    assert result.exit_code == 3
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_open_address_is_called_open():
    assert "this machine only" in _who(Settings(), "[::1]:7070")
    assert "open to everyone" in _who(Settings(), "0.0.0.0:7070")
    secured = Settings(security=Security(authentication=True))
    assert _who(secured, "127.0.0.1:7070") == "with a token"
    assert "others may listen in" in _who(secured, "0.0.0.0:7070")
