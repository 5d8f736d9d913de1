"""`palio config` and `palio context`: what is in force, and who said so."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from pathlib import Path

import msgspec
import pytest

from palio.broker.settings import Peer, Settings, WrongSetting, load
from palio.cli.brokers.config_example import EXAMPLE
from palio.cli.program.saved_contexts import Contexts, chosen, contexts_file, read_contexts

# Settings


def test_the_example_shows_every_setting_with_its_default(command):
    shown = command("config", "example").stdout
    assert shown == EXAMPLE
    bare = re.sub(r"^#(?=[a-z\[])", "", shown, flags=re.MULTILINE)
    said = tomllib.loads(bare)
    defaults = msgspec.json.decode(msgspec.json.encode(Settings()))
    assert said.keys() == defaults.keys()
    for name, value in said.items():
        if name == "peers":
            assert value == [msgspec.to_builtins(Peer("127.0.0.1:7171"))]
        elif isinstance(value, dict):
            assert value == {key: defaults[name][key] for key in value}
        elif name != "name":
            assert value == defaults[name]
    assert shown == Path("examples/palio.toml").read_text()
    load("examples/palio.toml", environment={})


BAD = """\
lisen = "x"
sync = "often"

[limits]
connections = 3
frame = 0

[[peers]]
address = "one:1"

[[peers]]
address = "two:99999"
kind = "uncle"
"""


def test_check_tells_all_that_is_wrong_and_where(command, tmp_path, monkeypatch):
    file = tmp_path / "palio.toml"
    file.write_text(BAD)
    monkeypatch.setenv("PALIO_STRATEGY", "hope")
    monkeypatch.setenv("PALIO_COLOUR", "red")
    result = command("config", "check", str(file))
    assert result.exit_code == 3
    assert result.stdout == ""
    said = result.stderr.splitlines()
    assert said == [
        f"{file}:1: There is no setting 'lisen'. Did you mean 'listen'?",
        f"{file}:2: sync: Invalid enum value 'often'; there are full, normal, off.",
        f"{file}:6: limits.frame: Expected `int` >= 1.",
        f"{file}:13: peers[1].kind: Invalid enum value 'uncle'; there are peer, master, below, graph.",
        "The environment variable PALIO_STRATEGY: strategy: Invalid enum value 'hope'; there are flooding, "
        "simple, identity, covering, merging.",
        "The environment variable PALIO_COLOUR is no setting; it is ignored.",
        "5 wrong settings.",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("listen = ", "This is not TOML"),
        (b"name = '\xff'", "This file is not UTF-8"),
        (None, "This file cannot be read: No such file or directory."),
    ],
)
def test_a_file_that_is_none_is_told(command, tmp_path, content, said):
    file = tmp_path / "palio.toml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = command("config", "check", str(file))
    assert result.exit_code == 3
    assert said in result.stderr


def test_show_says_where_each_setting_comes_from(command, tmp_path, monkeypatch):
    file = tmp_path / "palio.toml"
    file.write_text('name = "siena"\nsync = "normal"\n')
    monkeypatch.setenv("PALIO_SYNC", "off")
    monkeypatch.setenv("PALIO_HEARTBEAT", "2.5")
    shown = json.loads(command("config", "show", str(file), "--json").stdout)
    assert (shown["settings"]["name"], shown["origins"]["name"]) == ("siena", str(file))
    assert (shown["settings"]["sync"], shown["origins"]["sync"]) == (
        "off",
        "The environment variable PALIO_SYNC",
    )
    assert shown["settings"]["heartbeat"] == 2.5
    assert shown["origins"]["listen"] == "default"
    result = command("config", "check", str(file))
    assert result.exit_code == 0
    assert "environment variable" in result.stdout


# Saved connections


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PALIO_SERVER", raising=False)


def test_the_one_that_is_meant(command, monkeypatch):
    assert chosen(None).shown == "127.0.0.1:7070"
    command("context", "add", "work", "work.example:1")
    secret = contexts_file().parent / "home.token"
    command("context", "add", "home", "palio://home.example:2,other.example", "--token-file", str(secret))
    secret.write_text("a secret\n")
    assert chosen(None).shown == "work.example:1"  # the first one is used
    assert chosen("home").address == "palio://home.example:2,other.example"
    assert chosen("home").token == "a secret"
    command("context", "use", "home")
    assert chosen(None).shown == "home.example:2,other.example"
    monkeypatch.setenv("PALIO_SERVER", "work")
    assert chosen(None).shown == "work.example:1"
    monkeypatch.setenv("PALIO_SERVER", "there:3")
    assert chosen(None).address == "palio://there:3"
    assert chosen("elsewhere").address == "palio://elsewhere"


def test_they_are_listed_without_tokens_and_kept_from_others(command):
    assert "127.0.0.1:7070 (the default)" in command("context", "list").stdout
    command("context", "add", "home", "home.example", "--token-file", "home.token")
    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600
    for arguments in ((), ("--json",)):
        shown = command("context", "list", *arguments).stdout
        assert "home.example" in shown
        assert "secret" not in shown
    assert command("context", "remove", "home").exit_code == 0
    assert read_contexts() == Contexts()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "a b", "host"), "is no name for a connection"),
        (("add", "a", "host:port"), "is no address of a broker"),
        (("use", "nobody"), "There is no saved connection 'nobody'; there are none yet."),
        (("remove", "nobody"), "There is no saved connection"),
    ],
)
def test_what_cannot_be_is_told(command, arguments, said):
    result = command("context", *arguments)
    assert result.exit_code == 3
    assert said in result.stderr


def test_a_broken_file_is_told_and_not_overwritten(command):
    contexts_file().parent.mkdir(parents=True)
    contexts_file().write_text("current = ")
    for arguments in (("context", "add", "a", "host"), ("pub", "a=1")):
        result = command(*arguments)
        assert result.exit_code == 3
        assert "Mend or remove the file." in result.stderr
    assert contexts_file().read_text() == "current = "


def test_brokers_on_any_free_port_do_not_share_a_name(tmp_path):
    names = set()
    for folder in ("a", "b", "a"):
        (tmp_path / folder).mkdir(exist_ok=True)
        settings = Settings(listen="127.0.0.1:0", data=str(tmp_path / folder)).named()
        settings.keep_name()
        names.add(settings.name)
    assert len(names) == 2, "and each keeps its own"


def test_a_name_follows_the_port_until_there_is_something_of_that_name(tmp_path):
    """A start that fails leaves nothing behind; what is kept in a folder has the name for good."""
    first = Settings(listen="127.0.0.1:7070", data=str(tmp_path)).named()
    second = Settings(listen="127.0.0.1:7171", data=str(tmp_path)).named()
    assert first.name.endswith("-7070")
    assert second.name.endswith("-7171")
    second.keep_name()
    assert Settings(listen="127.0.0.1:7272", data=str(tmp_path)).named().name == second.name


def test_a_name_that_no_envelope_has_room_for_is_refused():
    with pytest.raises(WrongSetting, match="at most 255 characters; this one has 256"):
        load(environment={}, flags={"name": "n" * 256})
    assert load(environment={}, flags={"name": "𝔫" * 255}).name == "𝔫" * 255
