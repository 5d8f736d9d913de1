"""Every setting refuses what is of another kind, and names itself, wherever it was said.

What a setting takes is told here by its default, and by nothing that the settings' own types say.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from enum import Enum
from math import inf
from typing import Any

import msgspec
import pytest

from palio.broker.settings import Peer, Settings, WrongSetting, gather, load
from palio.cli.brokers.config import problems

# By kind, as TOML has them; numbers that no setting may be are a kind of their own.
VALUES = {
    "text": ('"words"', '"5"', '"true"', '"2.5"'),
    "truth": ("true", "false"),
    "number": ("1", "0.25"),
    "no number": ("nan", "inf", "-inf", "-1", "-0.5", "9223372036854775808", "1e300", "1" + 30 * "0"),
    "list": ("[[]]", "[1]", "[true]"),
    "table": ("{}", "{colour = 1}"),
    "moment": ("2026-01-01", "2026-01-01T00:00:00Z", "12:00:00"),
}
TABLE = "table"
PEER = ("peers", 0)


def walked(settings: Any, before: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """All settings by their paths, with their defaults; a table before what is in it."""
    for name in settings.__struct_fields__:
        value, path = getattr(settings, name), (*before, name)
        yield path, value
        if isinstance(value, msgspec.Struct):
            yield from walked(value, path)


ALL = dict(walked(Settings())) | dict(walked(Peer("one:1"), PEER))
NAMES = {".".join(map(str, path)): path for path in ALL}


def kind_of(default: Any) -> str:
    if isinstance(default, bool):
        return "truth"
    if isinstance(default, int | float):
        return "number"
    if isinstance(default, str | Enum):
        return "text"
    return TABLE if isinstance(default, msgspec.Struct) else "list"


def said(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """A file's content that says one setting."""
    if path[:2] == PEER:
        return {"peers": [{"address": "one:1"} | ({path[2]: value} if len(path) > 2 else value)]}
    for key in reversed(path):
        value = {key: value}
    return value


def refused(path: tuple[str | int, ...], value: Any) -> str:
    with pytest.raises(WrongSetting) as refusal:
        load(environment={}, flags=said(path, value))
    named = "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    assert refusal.value.path.startswith(named)
    assert str(refusal.value).endswith(".")
    return refusal.value.path


@pytest.mark.parametrize("name", NAMES)
def test_what_is_of_another_kind_is_refused_and_named(name):
    path = NAMES[name]
    right = kind_of(ALL[path])
    for kind, values in VALUES.items():
        for text in values:
            value = tomllib.loads(f"value = {text}")["value"]
            if right == kind == TABLE:
                if value:
                    refused(path, value)
            elif kind != right or right == "list":
                refused(path, value)


@pytest.mark.parametrize("name", [name for name, path in NAMES.items() if kind_of(ALL[path]) == "number"])
def test_a_number_that_nothing_can_have_is_refused(name):
    for value in (inf, -inf, -1, 2**53, 2**64, 10**30):
        refused(NAMES[name], value)
    if isinstance(ALL[NAMES[name]], int):
        refused(NAMES[name], 1.5)
        refused(NAMES[name], 0)


def test_the_default_of_each_setting_is_taken():
    for path, default in ALL.items():
        if path != ("peers",):
            value = msgspec.to_builtins(default)
            load(environment={}, flags=said(path, value or "x" if path[-1] in ("export", "dialect") else value))


@pytest.mark.parametrize("name", [path[0] for path in ALL if len(path) == 1])
def test_the_environment_is_told_by_its_variable(name):
    """All of it that is not text is read as TOML; what is text is taken as it is, whatever it looks like."""
    variable = f"PALIO_{name.upper()}"
    default = getattr(Settings(), name)
    right = kind_of(default)
    if right == "text":
        assert getattr(load(environment={variable: default}), name) == default
        return
    for kind, values in VALUES.items():
        if kind == right or name == "peers":
            continue
        for text in (*values, "no TOML", "1\nx = 2"):
            with pytest.raises(WrongSetting) as refusal:
                load(environment={variable: text})
            assert refusal.value.origin == f"The environment variable {variable}"
            assert refusal.value.path.startswith(f"$.{name}")


def test_what_is_wrong_in_a_table_is_told_one_by_one_with_its_origin(tmp_path):
    file = tmp_path / "palio.toml"
    file.write_text(
        '[limits]\nframe = "1"\nlink = true\n[durable]\nretension = 1.0\n'
        "[durable.patience]\nattempts = 0\ncolour = 1\n"
        "[security]\ncertificate = 7\n"
    )
    gathered = gather(
        str(file),
        environment={"PALIO_LIMITS": '{connections = "many"}'},
        flags={"security": {"authentication": True}},
    )
    assert [(problem.path, problem.origin) for problem in problems(gathered)] == [
        ("$.limits.frame", str(file)),
        ("$.limits.link", str(file)),
        ("$.limits.connections", "The environment variable PALIO_LIMITS"),
        ("$.durable", str(file)),
        ("$.durable.patience.attempts", str(file)),
        ("$.durable.patience", str(file)),
        ("$.security.certificate", str(file)),
    ]


def test_a_table_of_the_environment_leaves_the_rest_of_the_files_table(tmp_path):
    file = tmp_path / "palio.toml"
    file.write_text('[security]\ncertificate = "c.pem"\nkey = "k.pem"\n')
    security = load(str(file), environment={"PALIO_SECURITY": "{authentication = true}"}).security
    assert (security.authentication, security.certificate, security.key) == (True, "c.pem", "k.pem")


def test_others_are_told_no_name_of_a_broker(tmp_path):
    file = tmp_path / "palio.toml"
    file.write_text('[overlay]\naddress = "broker.example:7070"\n')
    with pytest.raises(WrongSetting, match=r"write an address of this machine, as 10\.0\.0\.7\."):
        load(str(file))
    file.write_text('[overlay]\naddress = "[fd00::7]:7070"\n')
    assert load(str(file)).overlay.address == "[fd00::7]:7070"
