"""`Rights`: what a principal may do, as filters over content; and the file that says so, `rights.toml`.

    [principals.desk-7]
    publish = 'symbol = "ACME"'
    subscribe = 'price > 100'
    allow = ["inspect"]

With `dialect` beside them, these filters are in the language that it names. What Palio writes here itself is in
our own language, whatever it was read from.

Who is not named may do nothing but say hello, and what is not said is not allowed: no `publish` means that
nothing may be published. `true` is everything. `allow` has the rights that are not about content.
"""

from __future__ import annotations

import json
import re
import tomllib
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from palio.broker.access.files import locked, write_private
from palio.language import PALIO, UnknownDialect, read_filter, require_dialect
from palio.model.errors import FilterError, PalioError
from palio.model.filter import Filter

FILE = "rights.toml"
# A name ends where a slash begins: sessions and durable subscriptions are called `principal/name`.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


class Allowance(Enum):
    """A right that is not about content."""

    INSPECT = "inspect"  # look at the broker: statistics, clients, subscriptions of others
    TRACE = "trace"  # see who would get a notification
    DLQ = "dlq"  # requeue and discard dead letters of others, and see those that one may subscribe to
    JOURNAL = "journal"  # trim the journal, and let it be kept for readers such as a lake
    FORGET = "forget"  # say that a broker is gone for good, or let it go
    LINKS = "links"  # add and remove the links of a broker
    FAMILIES = "families"  # add, change and remove families of documents
    PATHS = "paths"  # have paths added to families by subscribing
    PEER = "peer"  # be a broker of the network


class WrongRights(PalioError):
    """Rights that cannot be; `path` says where in which file."""

    path: str
    reason: str
    sentence = "{path}: {reason}"


class Rights(msgspec.Struct, frozen=True):
    """What may be published and seen, and what else is allowed. No filter: nothing."""

    publish: Filter | None = None
    subscribe: Filter | None = None
    allow: frozenset[Allowance] = frozenset()

    def plain(self) -> dict[str, Any]:
        """As in the file."""
        return {
            "publish": _text(self.publish),
            "subscribe": _text(self.subscribe),
            "allow": sorted(one.value for one in self.allow),
        }


NOTHING = Rights()
EVERYTHING = Rights(Filter(), Filter(), frozenset(Allowance))


def _text(filter: Filter | None) -> str | None:
    return None if filter is None else filter.source or str(filter)


def require_name(name: str) -> str:
    """The name itself; raises `WrongRights` if no principal can have it."""
    if not _NAME.fullmatch(name):
        raise WrongRights(
            repr(name[:80]), "This is no name of a principal: up to 64 letters, digits and any of . _ @ -"
        )
    return name


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    publish: str | None = None
    subscribe: str | None = None
    dialect: str = PALIO
    allow: tuple[Allowance, ...] = ()


class _RightsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    principals: dict[str, _Entry] = {}


def parse_rights(
    publish: str | None, subscribe: str | None, allow: tuple[str, ...], place: str, dialect: str = PALIO
) -> Rights:
    """Rights from texts; the filters in a dialect. Raises `WrongRights` with the place."""
    try:
        allowed = frozenset(map(Allowance, allow))
    except ValueError as problem:
        there = ", ".join(one.value for one in Allowance)
        raise WrongRights(f"{place}.allow", f"{problem}; there are {there}.") from None
    try:
        require_dialect(dialect)
    except UnknownDialect as problem:
        raise WrongRights(f"{place}.dialect", str(problem)) from None
    may_publish = _filter(publish, f"{place}.publish", dialect)
    return Rights(may_publish, _filter(subscribe, f"{place}.subscribe", dialect), allowed)


def _filter(text: str | None, place: str, dialect: str) -> Filter | None:
    if text is None:
        return None
    try:
        return read_filter(text, dialect).require_satisfiable().require_sets("A right")
    except FilterError as problem:
        raise WrongRights(place, str(problem)) from None


def read_rights(folder: Path) -> dict[str, Rights]:
    """The rights of all principals. Raises `WrongRights`."""
    file = folder / FILE
    try:
        read = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _RightsFile)
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise WrongRights(str(file), f"This file cannot be read: {problem.strerror}.") from None
    except (ValueError, msgspec.ValidationError) as problem:
        raise WrongRights(str(file), f"{problem}.") from None
    return {
        require_name(name): parse_rights(
            entry.publish,
            entry.subscribe,
            tuple(one.value for one in entry.allow),
            f"{file}: {name}",
            entry.dialect,
        )
        for name, entry in read.principals.items()
    }


def write_rights(folder: Path, name: str, rights: Rights | None) -> None:
    """Set the rights of a principal, or (None) take all away. Raises `WrongRights`."""
    require_name(name)
    with locked(folder):
        known = read_rights(folder)
        known.pop(name, None)
        if rights is not None:
            known[name] = rights
        lines = [
            "# What principals may do; a running broker sees changes by itself. `palio rights set` writes this."
        ]
        for principal, one in sorted(known.items()):
            lines += ["", f"[principals.{_toml(principal)}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in one.plain().items() if value is not None]
        write_private(folder / FILE, "\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    # TOML takes what JSON escapes, but wants one character more to be.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
