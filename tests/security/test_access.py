"""Tokens and rights on disk: hashed, private, read again when they change, and never half of them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from palio import NotAuthenticated, TokenExpired
from palio.broker.access import Access, WrongRights
from palio.broker.access.access import common_name
from palio.broker.access.principal import ANYONE
from palio.broker.access.rights import parse_rights, read_rights, require_name, write_rights
from palio.broker.access.tokens import UnknownToken, create_token, read_tokens, revoke_tokens
from palio.client.options import Options
from palio.protocol.greeting import PROTOCOL, Greet, Role


def opened(folder: Path, now: float = 100.0) -> Access:
    access = Access(folder, lambda: now)
    access.open()
    return access


def test_a_token_is_kept_as_a_hash_in_a_private_file(tmp_path):
    token, text = create_token(tmp_path, "desk", now=1.0)
    kept = (tmp_path / "tokens.json").read_text()
    assert text.split("_", 2)[2] not in kept
    assert token.hash in kept
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600
    assert opened(tmp_path).authenticate(text).name == "desk"


def test_tokens_expire_and_are_revoked_while_the_broker_runs(tmp_path):
    access = opened(tmp_path)
    with pytest.raises(NotAuthenticated):
        access.authenticate(None)
    good, text = create_token(tmp_path, "desk", now=1.0)
    _, old = create_token(tmp_path, "desk", now=1.0, expires=99.0)
    principal = access.authenticate(text)  # made after the broker began
    assert access.objection(principal) is None
    with pytest.raises(TokenExpired, match="1970-01-01T00:01:39"):
        access.authenticate(old)
    with pytest.raises(UnknownToken):
        revoke_tokens(tmp_path, [good.id, "nobody"])
    assert len(read_tokens(tmp_path)) == 2
    revoke_tokens(tmp_path, [good.id])
    access.refresh()
    assert "revoked" in str(access.objection(principal))
    with pytest.raises(NotAuthenticated):
        access.authenticate(text)


def test_rights_that_change_are_seen_by_who_was_let_in_before(tmp_path):
    access = opened(tmp_path)
    _, text = create_token(tmp_path, "desk", now=1.0)
    principal = access.authenticate(text)
    assert principal.rights.publish is None
    rights = parse_rights("a = 1", 'name = "\x7f\\"\n é"', ("inspect",), "desk")
    write_rights(tmp_path, "desk", rights)
    assert access.refresh() == {"desk"}
    assert principal.rights == rights
    write_rights(tmp_path, "other", rights)
    assert access.refresh() == {"other"}
    write_rights(tmp_path, "desk", None)
    assert access.refresh() == {"desk"}
    assert principal.rights.publish is None


@pytest.mark.parametrize(
    "wrong",
    ["principals = 3", "[principals.a]\nallow = ['fly']", "[principals.a]\npublish = 'x > >'", "\x00", "[a"],
)
def test_a_mistake_in_the_file_leaves_everything_as_it_was(wrong, tmp_path):
    write_rights(tmp_path, "desk", parse_rights("true", None, (), "desk"))
    access = opened(tmp_path)
    (tmp_path / "rights.toml").write_text(wrong)
    assert access.refresh() == frozenset()
    assert access.rights_of("desk").publish is not None
    with pytest.raises(WrongRights):
        read_rights(tmp_path)
    with pytest.raises(WrongRights):
        opened(tmp_path)  # who starts with it is told


@pytest.mark.parametrize("name", ["", "a/b", "../a", " a", "a\n", "x" * 65, "-a", "é"])
def test_names_that_no_principal_can_have(name):
    with pytest.raises(WrongRights):
        require_name(name)
    assert common_name({"subject": ((("commonName", name),),)}) is None


def test_without_authentication_anybody_is_everybody():
    access = Access(None, lambda: 0.0)
    assert access.authenticate(None) is ANYONE
    assert ANYONE.own("x") == ANYONE.called("x") == "x"


def test_secrets_are_not_in_what_is_shown():
    assert "secret" not in repr(Greet(PROTOCOL, Role.CLIENT, "c", "secret"))
    assert "secret" not in repr(Options(token="secret"))
    assert "secret" not in str(NotAuthenticated("This token is not known here."))
