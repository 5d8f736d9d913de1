"""`palio token`, `palio rights`, and what else the command line knows of security."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from palio.broker.access.rights import WrongRights, parse_rights, read_rights, write_rights
from palio.broker.access.tokens import create_token, read_tokens
from palio.broker.settings import Security
from palio.cli.network.file import network_of, with_addresses
from palio.model.filter import Filter
from tests.cli.live import live_broker

EVENT = '{"symbol": "ACME", "price": 101.5}'


def test_a_token_is_shown_once_or_written_for_ones_own_eyes(command, tmp_path):
    where = ("--folder", str(tmp_path / "access"))
    shown = command("token", "create", "desk", "--expires", "90d", "--note", "for the desk", *where)
    assert shown.exit_code == 0
    text = shown.stdout.strip()
    assert text.startswith("palio_")
    assert text not in shown.stderr
    assert "no rights yet" in shown.stderr
    file = tmp_path / "desk.token"
    hidden = command("token", "create", "desk", "--output", str(file), *where)
    assert hidden.stdout == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    listed = command("token", "list", *where).stdout
    assert listed.count("desk") >= 2
    rows = [json.loads(line) for line in command("token", "list", "--json", *where).stdout.splitlines()]
    assert [row["note"] for row in rows] == ["for the desk", ""]
    assert "hash" not in rows[0]
    assert command("token", "revoke", rows[0]["id"], *where).exit_code == 0
    assert command("token", "revoke", rows[0]["id"], *where).exit_code == 3
    assert command("token", "revoke", "--principal", "desk", *where).exit_code == 0
    assert command("token", "revoke", *where).exit_code == 2
    assert read_tokens(tmp_path / "access") == {}


def test_rights_are_set_listed_tested_and_removed(command, tmp_path):
    folder = tmp_path / "data" / "access"
    data = ("--data", str(tmp_path / "data"))
    said = command("rights", "set", "desk", "--publish", 'symbol = "ACME"', "--allow", "trace", *data)
    assert 'may publish what satisfies symbol = "ACME" and see nothing; and trace' in said.stderr
    command("rights", "set", "desk", "--subscribe", "price > 200", "--allow", "dlq", *data)
    assert read_rights(folder)["desk"].plain() == {
        "publish": 'symbol = "ACME"',
        "subscribe": "price > 200",
        "allow": ["dlq", "trace"],
    }
    tested = command("rights", "test", "desk", EVENT, *data)
    assert tested.exit_code == 1
    assert "✓ desk may publish it" in tested.stdout
    assert "✗ desk may not see it" in tested.stdout
    assert "price > 200  (price is 101.5)" in tested.stdout
    assert json.loads(command("rights", "test", "desk", EVENT, "--json", *data).stdout) == {
        "principal": "desk",
        "publish": True,
        "see": False,
    }
    command("rights", "set", "desk", "--no-publish", "--subscribe", "true", "--disallow", "dlq", *data)
    assert "nothing" in command("rights", "list", *data).stdout
    assert json.loads(command("rights", "list", "--json", *data).stdout)["allow"] == ["trace"]
    assert command("rights", "set", "desk", "--publish", "x > >", *data).exit_code == 3
    assert command("rights", "set", "desk", "--allow", "fly", *data).exit_code == 3
    assert command("rights", "set", "a/b", "--publish", "true", *data).exit_code == 3
    assert command("rights", "remove", "desk", *data).exit_code == 0
    assert command("rights", "remove", "desk", *data).exit_code == 1


@pytest.mark.parametrize("flag", ["--listen", "--http"])
def test_a_broker_is_not_opened_by_mistake(flag, command, tmp_path):
    refused = command("up", flag, "0.0.0.0:0", "--data", str(tmp_path / "data"))
    assert refused.exit_code == 3
    assert "--insecure" in refused.stderr
    assert "--authentication" in refused.stderr


@pytest.mark.parametrize("flag", ["--listen", "--http"])
@pytest.mark.parametrize("more", [(), ("--insecure",)])
def test_what_is_no_address_is_not_taken_for_an_open_one(flag, more, command, tmp_path):
    data = ("--data", str(tmp_path / "data"), *more)
    refused = command("up", flag, "no-such-host.invalid", *data)
    assert refused.exit_code == 3
    assert "no-such-host.invalid is no address of this machine, nor the name of one." in refused.stderr
    assert f"{flag} 127.0.0.1:7070" in refused.stderr
    refused = command("up", flag, "7171", *data)
    assert refused.exit_code == 3
    assert f"7171 is a port, and no host; write {flag} 127.0.0.1:7171" in refused.stderr
    assert "other machines" not in refused.stderr
    assert not (tmp_path / "data").exists()


def test_rights_may_be_in_another_language(command, tmp_path):
    data, folder = ("--data", str(tmp_path)), tmp_path / "access"
    folder.mkdir()
    (folder / "rights.toml").write_text(
        '[principals.shop]\ndialect = "mqtt"\npublish = "shop/+"\nsubscribe = "shop/#"\n'
        "[principals.rule]\ndialect = 'eventbridge'\nsubscribe = '{\"n\": [{\"exists\": true}]}'\n"
    )
    rights = read_rights(folder)
    assert rights["shop"].publish == Filter.parse('topic matches "shop/*"')
    assert rights["rule"].plain() == {"publish": None, "subscribe": "exists(n)", "allow": []}
    said = command("rights", "set", "desk", "--publish", "till/+", "--dialect", "mqtt", *data)
    assert said.stderr == 'desk may publish what satisfies topic matches "till/*" and see nothing.\n'
    # What is kept is in our own language, and says the same as before.
    assert "mqtt" not in (folder / "rights.toml").read_text()
    assert {name: one for name, one in read_rights(folder).items() if name != "desk"} == rights
    wrong = command("rights", "set", "desk", "--publish", "till/b#", "--dialect", "mqtt", *data)
    assert (wrong.exit_code, wrong.stderr) == (
        3,
        "desk.publish: Column 7 (mqtt): `#` stands for a whole level, between slashes.\n",
    )
    for text in ('dialect = "klingon"', 'dialect = "klingon"\npublish = "a"'):
        (folder / "rights.toml").write_text(f"[principals.shop]\n{text}\n")
        with pytest.raises(WrongRights, match="'klingon' is not supported; there are palio, "):
            read_rights(folder)
    (folder / "rights.toml").write_text('[principals.shop]\ndialect = "mqtt"\npublish = "a?topic=\'b\'"\n')
    with pytest.raises(WrongRights, match=r"shop\.publish: This filter can never match"):
        read_rights(folder)


def test_config_check_knows_what_goes_together(command, tmp_path):
    file = tmp_path / "palio.toml"
    file.write_text('listen = "0.0.0.0:7070"\n')
    assert "nobody has to say who they are" in command("config", "check", str(file)).stderr
    file.write_text('listen = "0.0.0.0:7070"\n[security]\nauthentication = true\ncertificate = "none.pem"\n')
    assert "There is no file none.pem" in command("config", "check", str(file)).stderr
    file.write_text('[[peers]]\naddress = "palios://a:1"\nexport = "x > >"\n')
    assert "peers[0].export" in command("config", "check", str(file)).stderr
    file.write_text('[[peers]]\naddress = "palios://a:1"\nexport = "bid > ask"\n')
    assert "An export cannot have `ask < bid`" in command("config", "check", str(file)).stderr
    file.write_text('[[peers]]\naddress = "palios://a:1"\nexport = "a/b#"\ndialect = "mqtt"\n')
    assert "peers[0].export: Column 4 (mqtt): `#` stands for" in command("config", "check", str(file)).stderr
    file.write_text('[[peers]]\naddress = "palios://a:1"\ndialect = "klingon"\n')
    assert "'klingon' is not supported; there are palio, " in command("config", "check", str(file)).stderr
    file.write_text("[security]\ninsecure = true\n")
    assert command("config", "check", str(file)).exit_code == 0


def test_networks_of_a_file_speak_tls_where_there_is_a_certificate():
    document = {
        "brokers": {"a": {}, "b": {}},
        "settings": {"security": {"authentication": True, "certificate": "a.pem", "token_file": "t"}},
    }
    settings, reserved = with_addresses(network_of(document, "network.toml"))
    for one in reserved:
        one.close()
    assert settings["b"].peers[0].address.startswith("palios://127.0.0.1:")
    assert settings["b"].security.token_file == "t"


def test_explain_with_rights_and_limits(command, tmp_path, monkeypatch):
    folder = tmp_path / "access"
    write_rights(folder, "desk", parse_rights(None, 'symbol = "ACME"', ("inspect",), "desk"))
    write_rights(folder, "other", parse_rights("true", "price > 200", (), "other"))
    (tmp_path / "desk.token").write_text(create_token(folder, "desk", now=1.0)[1])
    with live_broker(tmp_path, security=Security(authentication=True, folder=str(folder))) as live:
        server = ("--server", live.server)
        without = command("explain", "price > 100", EVENT, "--rights", *server)
        assert without.exit_code == 5
        assert "wants to know who connects" in without.stderr
        monkeypatch.setenv("PALIO_TOKEN_FILE", str(tmp_path / "desk.token"))
        told = command("explain", "price > 100", EVENT, "--rights", *server)
        assert told.exit_code == 0, told.stderr
        assert "✗ desk may not publish it" in told.stdout
        assert "✓ desk may see it" in told.stdout
        assert "✓ the event has 2 attributes; the limit is 1,024" in told.stdout
        other = command("explain", "price > 100", EVENT, "--as", "other", "--json", *server)
        assert other.exit_code == 1
        rights = json.loads(other.stdout)["rights"]
        assert (rights["may_publish"], rights["may_see"], rights["filter_within_limit"]) == (True, False, True)
        assert Path(tmp_path / "desk.token").exists()
