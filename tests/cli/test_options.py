"""Options mean the same wherever they stand, help shows them as they are typed, and shells complete them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import typer
from typer._coercion import build_runtime_param
from typer.testing import CliRunner

from palio.broker.access.rights import parse_rights, write_rights
from palio.broker.access.tokens import create_token
from palio.broker.settings import Security
from palio.cli.main import Commands, app
from palio.cli.program.credentials import OPTIONS, SAID, said
from palio.cli.program.nearest import SYNONYMS, nearest
from palio.cli.program.plain_values import NOT_PLAIN, plain_value
from palio.cli.program.saved_contexts import chosen
from tests.cli.live import live_broker
from tests.cli.processes import PALIO, PATIENCE, broker_up, started
from tests.security.papers import Papers


@cache
def leaves() -> list[tuple[str, object]]:
    found = []
    for name, one in Commands().items():
        inside = getattr(one, "commands", None)
        found += [(f"{name} {inner}", leaf) for inner, leaf in inside.items()] if inside else [(name, one)]
    return found


def test_a_short_option_means_one_thing_in_all_commands():
    meant = defaultdict(set)
    for _, command in leaves():
        for option in command.params:
            longs = {one for one in option.opts if one.startswith("--")}
            for short in set(option.opts) - longs:
                if short.startswith("-"):
                    meant[short] |= longs
    assert {"-s", "-f", "-p", "-n", "-e", "-o"} <= meant.keys()
    assert {short: longs for short, longs in meant.items() if len(longs) > 1} == {}
    assert meant["-f"] == {"--filters"}
    assert meant["-p"] == {"--patterns"}


def test_count_is_a_number_everywhere():
    counts = [one for _, command in leaves() for one in command.params if "--count" in one.opts]
    assert len(counts) >= 5
    for one in counts:
        assert not one.is_flag
        assert set(one.opts) == {"--count", "-n"}


def test_flags_are_shown_without_a_value(command):
    assert re.search(r"--quiet +-q +Nothing", command("sub", "--help").stdout)
    assert re.search(r"--help +-h +Show", command("sub", "--help").stdout)


# What is plainly right, what only looks so, and what is wrong.
VALUES = (
    "",
    "a",
    "a\nb",
    "\ud800",
    "é",
    "0",
    "3",
    "10",
    "-1",
    " 3",
    "٣",
    "3.0",
    "007",
    "1" * 30,
    "yes",
    "True",
)


def test_plain_values_are_what_a_validator_makes_of_them():
    plain = 0
    for name, command in leaves():
        for one in command.params:
            several = one.multiple or one.nargs == -1
            values = [None, one.default, *(((value, "b") for value in VALUES) if several else VALUES)]
            validator = build_runtime_param(one.type_descriptor)
            for value in values:
                if callable(value):
                    continue
                found = plain_value(value, one)
                if found is not NOT_PLAIN:
                    wanted = validator.coerce(value, param=one, ctx=typer.Context(command))
                    assert (type(found), found) == (type(wanted), wanted), (name, one.name, value)
                    plain += 1
    assert plain > 5_000


def test_what_shows_who_one_is_stands_before_a_command_or_behind_it(command, tmp_path, monkeypatch):
    folder, token = tmp_path / "access", str(tmp_path / "desk.token")
    write_rights(folder, "desk", parse_rights("true", "true", ("inspect", "journal"), "desk"))
    Path(token).write_text(create_token(folder, "desk", now=1.0)[1])
    calls = (
        ("--token-file", token, "journal", "list"),
        ("journal", "--token-file", token, "list"),
        ("journal", "list", "--token-file", token),
        ("--token-file", "nonsense", "journal", "list", f"--token-file={token}"),
        ("explain", "--token-file", token, "n > 1", '{"n": 2}', "--rights"),
    )
    with live_broker(tmp_path, security=Security(authentication=True, folder=str(folder))) as live:
        monkeypatch.setenv("PALIO_SERVER", live.server)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for environment in ("", "nonsense", token):
            monkeypatch.setenv("PALIO_TOKEN_FILE", environment)
            for call in calls:
                result = command(*call)
                assert result.exit_code == 0, (call, result.stderr)
        assert command("journal", "list").exit_code == 0
        assert command("--token-file", "nonsense", "journal", "list").exit_code == 3
        monkeypatch.delenv("PALIO_TOKEN_FILE")
        assert command("journal", "list").exit_code == 5


def test_what_was_said_is_forgotten_with_the_next_call(command, monkeypatch):
    for name in OPTIONS:
        monkeypatch.delenv(f"PALIO_{name.upper()}", raising=False)
    command("--key", "a.key", "--authority", "a.pem", "context", "list", "--authority", "b.pem")
    assert (said(), chosen("x").key) == ({"key": "a.key", "authority": "b.pem"}, "a.key")
    command("context", "list")
    assert (said(), SAID.get()) == ({}, {})


def test_a_command_keeps_options_of_the_same_name_to_itself(command):
    commands = dict(leaves())
    for name in ("up", "context add"):
        names = [one.name for one in commands[name].params]
        assert len(names) == len(set(names))
    assert "broker's certificate" in " ".join(command("context", "add", "--help").stdout.split())
    assert command("up", "--token-file", "x").exit_code == 2


def test_what_a_broker_with_tls_says_to_type_works(environment, tmp_path):
    papers = Papers(tmp_path)
    certificate, key = papers.sign("siena", "127.0.0.1")
    folder, token = tmp_path / "access", tmp_path / "desk.token"
    write_rights(folder, "desk", parse_rights("true", "true", (), "desk"))
    token.write_text(create_token(folder, "desk", now=1.0)[1])
    (tmp_path / "palio.toml").write_text(f'[security]\nfolder = "{folder}"\n')
    tls = ("--certificate", certificate, "--key", key, "--authority", papers.ca)
    asked = ("--authentication", *tls)
    environment |= {"XDG_CONFIG_HOME": str(tmp_path), "PALIO_SERVER": ""}
    with broker_up(*asked, environment=environment, folder=tmp_path) as (process, _):
        typed = []
        while len(typed) < 2:
            line = process.stderr.readline()
            assert line, typed
            typed += re.findall(r"^  palio ((?:sub|pub) .*)$", line)
        for line in reversed(typed):
            words = shlex.split(line.replace("FILE", str(token)))
            if words[0] == "sub":
                words += ["--since", "all", "--count", "1", "--timeout", "20s"]
            with started(*words, environment=environment, folder=tmp_path) as done:
                shown, complaints = done.communicate(PATIENCE)
            assert done.returncode == 0, (line, complaints)
    assert "ACME" in shown


def test_a_word_of_other_systems_names_our_command(command):
    for typed, meant in (("subscribe", "sub"), ("publish", "pub"), ("subscibe", "sub"), ("mtch", "match")):
        result = command(typed)
        assert result.exit_code == 2
        assert f"Did you mean `palio {meant}`" in " ".join(result.stderr.split())
    assert "Did you mean `palio spark archive`" in command("spark", "archve").stderr
    assert "lists all" in command("xyzzy").stderr


def test_nearest_names_are_near_and_there():
    names = list(Commands())
    assert set(SYNONYMS.values()) <= set(names)
    assert not SYNONYMS.keys() & set(names)
    for word, name in SYNONYMS.items():
        assert nearest(word, names) == [name]
        assert nearest(word, []) == []
    assert nearest("xyzzy", names) == []
    for name in names:
        slip = name[:-2] + name[-1]
        if len(name) > 3 and slip not in names:
            assert nearest(slip, names)[0] == name


def asked_of_bash(words: str) -> dict[str, str]:
    """How bash asks what to offer for the last word."""
    return {"_PALIO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


def complete(words: str) -> list[str]:
    """What bash would offer for the last word."""
    result = CliRunner().invoke(app, [], env=asked_of_bash(words), prog_name="palio")
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.split()


def test_a_shell_completes_commands_and_options(environment, tmp_path):
    done = subprocess.run(
        PALIO, env=environment | asked_of_bash("palio su"), capture_output=True, encoding="utf-8", check=True
    )
    assert (done.stdout.split(), done.stderr) == (["sub", "subs"], "")
    assert complete("palio su") == ["sub", "subs"]
    assert "archive" in complete("palio spark a")
    assert complete("palio sub --dur") == ["--durable"]
    assert complete("palio sub --token") == ["--token-file"]
    home = environment | {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for flag in ("--show-completion", "--install-completion"):
        done = subprocess.run(
            [*PALIO, flag, "bash"],
            env=home, capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "_PALIO_COMPLETE=complete_bash" in done.stdout or "installed in" in done.stdout
    installed = [file for file in Path(tmp_path).rglob("*") if file.is_file()]
    assert any("_PALIO_COMPLETE=complete_bash" in file.read_text() for file in installed)
    assert os.path.exists(tmp_path / ".bashrc")
