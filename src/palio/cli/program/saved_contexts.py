"""Saved connections: which broker is meant when nobody says so.

In this order: `--server`, which is an address or the name of a saved connection; the environment variable
PALIO_SERVER, likewise; the saved connection in use; the broker that `palio up` starts on this machine.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from pathlib import Path

import msgspec

from palio.cli.program.credentials import TOKEN_VARIABLE, said
from palio.client.address import is_secure, parse_addresses
from palio.model.errors import PalioError
from palio.protocol.addresses import DEFAULT_PORT
from palio.transport.tls import client_context
from palio.transport.tokens import read_token

DEFAULT_SERVER = f"127.0.0.1:{DEFAULT_PORT}"
VARIABLE = "PALIO_SERVER"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a broker is, and what it asks for. Tokens, certificates and authorities are in files."""

    server: str
    token_file: str | None = None
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None

    @property
    def address(self) -> str:
        """As the client wants it. Raises `WrongAddress`."""
        text = self.server if "://" in self.server else f"palio://{self.server}"
        parse_addresses(text)
        return text

    @property
    def token(self) -> str | None:
        """The token to show: that of the file, or of the environment. Raises `NoToken`."""
        return read_token(self.token_file) if self.token_file else os.environ.get(TOKEN_VARIABLE)

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The context for an address that speaks TLS. Raises `WrongCertificate`."""
        if not is_secure(self.address):
            return None
        return client_context(self.authority or "", self.certificate or "", self.key or "")

    @property
    def shown(self) -> str:
        return self.server.removeprefix("palio://").rstrip("/")


class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All saved connections, and which one is in use."""

    current: str | None = None
    contexts: dict[str, Context] = {}


class WrongContext(PalioError):
    """A saved connection that cannot be, or is not there."""


def contexts_file() -> Path:
    """Where they are saved."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "palio" / "contexts.toml"


def read_contexts() -> Contexts:
    """What is saved. Raises `WrongContext` if that cannot be read."""
    file = contexts_file()
    if not file.exists():
        return Contexts()
    import tomllib  # noqa: PLC0415 (most have saved nothing, and every command asks)

    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Contexts)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise WrongContext(
            f"The saved connections in {file} cannot be read: {reason}. Mend or remove the file."
        ) from None


def write_contexts(saved: Contexts) -> None:
    """Save them, for this user's eyes only. Raises `WrongContext`."""
    lines = [] if saved.current is None else [f"current = {json.dumps(saved.current)}"]
    for name, context in saved.contexts.items():
        lines += ["", f"[contexts.{name}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in msgspec.to_builtins(context).items()]
    file = contexts_file()
    new = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.touch(mode=0o600)
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        new.replace(file)
    except OSError as problem:
        raise WrongContext(f"{file} cannot be written: {problem.strerror or problem}.") from None


def checked_name(name: str) -> str:
    """A name for a connection: one that cannot be taken for an address."""
    if not _NAME.fullmatch(name):
        raise WrongContext(f"{name!r} is no name for a connection: use letters, digits, - and _.")
    return name


def known(saved: Contexts, name: str) -> Context:
    """The connection of that name. Raises `WrongContext`."""
    if name not in saved.contexts:
        there = f"there are {', '.join(saved.contexts)}" if saved.contexts else "there are none yet"
        raise WrongContext(f"There is no saved connection {name!r}; {there}. `palio context add` makes one.")
    return saved.contexts[name]


def chosen(server: str | None) -> Context:
    """The connection that is meant, with what was said for all. Raises `WrongContext`."""
    return msgspec.structs.replace(_meant(server), **said())


def _meant(server: str | None) -> Context:
    saved = read_contexts()
    text = server or os.environ.get(VARIABLE)
    if text:
        return saved.contexts.get(text) or Context(text)
    if saved.current is not None:
        return known(saved, saved.current)
    return Context(DEFAULT_SERVER)
