"""`palio journal verify`, `backup` and `restore`, beside a running broker and without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.live import live_broker
from tests.store.damage import damage_event
from tests.store.driving import Driven, append


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store at rest, with ten events."""
    url = f"sqlite:///{tmp_path}/palio.db"
    with Driven(url) as driven:
        driven.do(append(1, 1, 10))
    return url


def test_a_sound_store_in_a_line_and_as_json(command, url):
    result = command("journal", "verify", "--store", url)
    assert (result.exit_code, result.stdout) == (0, "b: 10 events up to 10, 0 letters: all is well.\n")
    result = command("journal", "verify", "--store", url, "--deep", "--json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert said["sound"] is True
    assert [(one["broker"], one["first"], one["last"]) for one in said["journals"]] == [("b", 1, 10)]


def test_each_damaged_event_is_named(command, url):
    damage_event(url, 4, 7)
    result = command("journal", "verify", "--store", url)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "event b/4: Its checksum is not the one that it was written with.",
        "event b/7: Its checksum is not the one that it was written with.",
        "b: 10 events up to 10, 0 letters: 2 findings.",
    ]
    said = json.loads(command("journal", "verify", "--store", url, "--json").stdout)
    assert [one["first"] for one in said["journals"][0]["findings"]] == [4, 7]
    assert said["sound"] is False


def test_doctor_shows_what_was_put_aside(command, url):
    damage_event(url, 4)
    with Driven(url) as driven:
        from tests.store.test_damage import found_by

        assert 4 not in found_by(driven)
    result = command("doctor", "--no-executors", "--store", url)
    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert "b/4" in words
    assert "verify" in words
    assert "1 thing aside (palio doctor)" in command("journal", "verify", "--store", url).stdout


def test_a_copy_is_made_beside_a_broker_and_brought_back_without_it(command, tmp_path):
    copy = str(tmp_path / "copy.db")
    with live_broker(tmp_path) as live:
        url = f"sqlite:///{tmp_path}/siena/palio.db"
        assert command("pub", "price=1", "-s", live.server).exit_code == 0
        assert command("journal", "verify", "--store", url).exit_code == 0
        result = command("journal", "backup", copy, "--store", url)
        assert result.exit_code == 0, result.stderr
        made, well = result.stdout.splitlines()
        assert json.loads(made)["last"] == 1
        assert well.endswith("all is well.")
        result = command("journal", "restore", copy, "--store", url, "--yes")
        assert result.exit_code == 6
        assert "is in use by process" in result.stderr
    result = command("journal", "restore", copy, "--store", url)
    assert result.exit_code == 1
    assert "There is a store in" in result.stderr
    assert "add --yes" in result.stderr
    result = command("journal", "restore", copy, "--store", url, "--yes")
    assert result.exit_code == 0, result.stderr
    assert "Its next start begins a new lineage there." in result.stderr
    assert json.loads(result.stdout.splitlines()[0])["last"] == 1


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("verify", "--store", "sqlite:///{folder}/none.db"), 6, "There is no such file."),
        (("verify", "--store", "nonsense"), 3, "Write sqlite:///"),
        (("verify", "--store", "sqlite:///{folder}/palio.db", "--broker", "other"), 3, "It has those of b."),
        (("verify", "--store", "sqlite:///{folder}/text"), 3, "is damaged"),
        (("backup", "{folder}/copy.db", "--store", "sqlite:///{folder}/none.db"), 6, "There is no such file."),
        (("backup", "{folder}/palio.db", "--store", "sqlite:///{folder}/palio.db"), 3, "of that name"),
        (("backup", "{folder}/copy.db", "--store", "postgresql://u@h/d"), 3, "use pg_dump"),
        (
            ("restore", "{folder}/none.db", "--store", "sqlite:///{folder}/palio.db"),
            3,
            "There is no such file.",
        ),
        (("restore", "{folder}/text", "--store", "sqlite:///{folder}/palio.db"), 3, "is damaged"),
        (("restore", "{folder}/palio.db", "--store", "postgresql://u@h/d"), 3, "pg_restore"),
    ],
)
@pytest.mark.usefixtures("url")
def test_wrong_input_gives_a_sentence(command, tmp_path, words, code, sentence):
    (tmp_path / "text").write_bytes(b"This is no database at all. " * 500)
    result = command("journal", *[word.replace("{folder}", str(tmp_path)) for word in words])
    assert result.exit_code == code, result.stderr
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
