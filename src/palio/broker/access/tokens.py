"""Tokens: `palio_<id>_<secret>`. Of the secret only a hash is kept, in `tokens.json`.

The exception is a token that was made for digests: a client that never sends its password, but a hash over it
and the time (WS-Security), can only be checked by who knows the password. Nobody gets such a token who did not
ask.

A secret has 256 bits of chance, so one round of SHA-256 is all that its hash needs: nobody can guess it, be it
ever so fast. Who shows a token is looked up by its id, which is no secret, and compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from palio.broker.access.files import locked, write_private
from palio.broker.access.rights import WrongRights, require_name
from palio.model.errors import NotAuthenticated, PalioError, TokenExpired

FILE = "tokens.json"
_TOKEN = re.compile(r"palio_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
# Compared with when there is no token of that id, so that this takes as long.
_NO_HASH = hashlib.sha256(b"").hexdigest()


class UnknownToken(PalioError):
    """There is no token of that id."""

    id: str
    sentence = "There is no token {id!r}; `palio token list` shows them."


class Token(msgspec.Struct, frozen=True):
    """A token as it is kept. Times are in seconds since 1970."""

    id: str
    principal: str
    hash: str
    created: float
    expires: float | None = None
    note: str = ""
    secret: str = ""  # of those that are for digests only

    def has_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


def read_tokens(folder: Path) -> dict[str, Token]:
    """All tokens by their ids. Raises `WrongRights` if the file cannot be read."""
    file = folder / FILE
    try:
        return {one.id: one for one in msgspec.json.decode(file.read_bytes(), type=list[Token])}
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise WrongRights(str(file), f"This file cannot be read: {problem.strerror}.") from None
    except (ValueError, msgspec.ValidationError) as problem:
        raise WrongRights(str(file), f"This is no file of tokens: {problem}.") from None


def create_token(
    folder: Path,
    principal: str,
    *,
    now: float,
    expires: float | None = None,
    note: str = "",
    digest: bool = False,
) -> tuple[Token, str]:
    """A new token, and its text, which is not to be had again. Raises `WrongRights`.

    One for digests keeps its secret, so that passwords which are only proved can be checked.
    """
    require_name(principal)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = Token(id, principal, _hash(secret), now, expires, note, secret if digest else "")
    with locked(folder):
        _write(folder, read_tokens(folder) | {id: token})
    return token, f"palio_{id}_{secret}"


def revoke_tokens(folder: Path, ids: list[str]) -> list[Token]:
    """Take tokens away. Raises `UnknownToken`, and has changed nothing then."""
    with locked(folder):
        known = read_tokens(folder)
        for id in ids:
            if id not in known:
                raise UnknownToken(id)
        gone = [known.pop(id) for id in dict.fromkeys(ids)]
        _write(folder, known)
    return gone


def check_token(known: dict[str, Token], text: str, now: float) -> Token:
    """The token that a text is. Raises `NotAuthenticated` or `TokenExpired`."""
    found = _TOKEN.fullmatch(text)
    token = known.get(found[1]) if found else None
    same = hmac.compare_digest(token.hash if token else _NO_HASH, _hash(found[2] if found else ""))
    if token is None or not same:
        raise NotAuthenticated(
            "This token is not known here: it is misspelt, for another broker, or was revoked."
        )
    if token.has_expired(now):
        assert token.expires is not None
        raise TokenExpired(token.id, datetime.fromtimestamp(token.expires, UTC).isoformat(timespec="seconds"))
    return token


def texts_for_digests(known: dict[str, Token], name: str) -> list[str]:
    """The texts of all tokens for digests that a principal has, or of the one that has this id."""
    found = [one for one in known.values() if one.secret and name in (one.principal, one.id)]
    return [f"palio_{one.id}_{one.secret}" for one in found]


def _write(folder: Path, tokens: dict[str, Token]) -> None:
    rows = b",\n".join(map(msgspec.json.encode, tokens.values()))
    write_private(folder / FILE, f"[\n{rows.decode()}\n]\n")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
