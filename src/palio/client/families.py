"""`Families`: families of XML documents, as a client sees and changes them (`client.families`).

    await client.families.add("card", ["card.xsd"], ["price=/card/price"], key=["/card/code"])
    for family in await client.families.ls():
        print(family["name"], family["revision"])

A family is told as plain data: `name`, `namespace`, `root`, `revision`, `registered`, `key`, `prefixes`,
`paths` (each with `expression`, `kind`, `many` and `name`) and the names of its `schemas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from palio.client.attaching import as_filter
from palio.client.selecting import read_at
from palio.client.session import ClientSession
from palio.model.filter import Filter

# The file of a schema, or what it is called with its content.
SchemaGiven: TypeAlias = "str | PathLike[str] | tuple[str, bytes]"
# `price=/card/price`, or what is asked for: `expression`, `kind`, `many`, `name`.
PathGiven: TypeAlias = "str | Mapping[str, Any]"
ReadyAt = Literal["broker", "network"]

# Seconds for what compiles a schema and goes through a network.
_PATIENCE = 60.0


class Families:
    """Asks the broker about families. Everything raises what it refuses with, as `RequestRefused`."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def add(
        self,
        name: str,
        schemas: Iterable[SchemaGiven] = (),
        paths: Iterable[PathGiven] = (),
        *,
        key: Iterable[str],
        prefixes: Mapping[str, str] | None = None,
        namespace: str | None = None,
        root: str | None = None,
        registered: bool = False,
        ready: ReadyAt = "network",
        timeout: float = _PATIENCE,
    ) -> dict[str, Any]:
        """Add a family. Returns what it is, when all brokers in reach (or with `ready` this one) know it.

        The first of `schemas` is the one that the others belong to; what they include and import is looked up
        among them by name. `paths` are written `price=/card/price`, `price:float=/card/price` or
        `/card/price`; their kinds follow from the schema. `prefixes`, `namespace` and `root` do, too, unless
        they are said.
        """
        argument: dict[str, Any] = {
            "name": name,
            "schemas": schema_files(schemas),
            "paths": list(paths),
            "key": list(key),
            "prefixes": dict(prefixes or {}),
            "namespace": namespace,
            "root": root,
            "registered": registered,
            "ready": ready,
        }
        made: dict[str, Any] = await self._session.invoke("family.add", argument, timeout=timeout)
        return made

    async def add_paths(
        self,
        name: str,
        paths: Iterable[PathGiven],
        *,
        ready: ReadyAt = "network",
        timeout: float = _PATIENCE,
    ) -> dict[str, Any]:
        """Have paths extracted from documents of a family from now on; those that it has are fine, too."""
        argument = {"name": name, "paths": list(paths), "ready": ready}
        made: dict[str, Any] = await self._session.invoke("family.paths.add", argument, timeout=timeout)
        return made

    async def ls(self, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """All families that this client may see, by name."""
        found: list[dict[str, Any]] = []
        onward: str | None = ""
        while onward is not None:
            page = await self._session.invoke("family.ls", {"after": onward}, timeout=timeout)
            found += page["families"]
            onward = page["onward"]
        return found

    async def show(self, name: str, *, timeout: float | None = None) -> dict[str, Any]:
        """One family, with the files of its schema: `schemas` have `name` and `content`, in bytes."""
        found: dict[str, Any] = await self._session.invoke("family.show", {"name": name}, timeout=timeout)
        return found

    async def paths(
        self, name: str, *, all: bool = False, timeout: float | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """The `paths` of a family, and with `all` the `others` that its schema has, short ones first."""
        argument = {"name": name, "all": all}
        found: dict[str, Any] = await self._session.invoke("family.paths", argument, timeout=timeout)
        return found

    async def change(
        self,
        name: str,
        schemas: Iterable[SchemaGiven] | None = None,
        paths: Iterable[PathGiven] = (),
        *,
        without: Iterable[str] = (),
        key: Iterable[str] | None = None,
        prefixes: Mapping[str, str] | None = None,
        registered: bool | None = None,
        force: bool = False,
        dry: bool = False,
        ready: ReadyAt = "network",
        timeout: float = _PATIENCE,
    ) -> dict[str, Any]:
        """Change a family: another schema, more `paths` or others, some fewer (`without`), another key.

        What is not said stays. A change that breaks what may be in use is refused (`FamilyIncompatible`) unless
        it is forced; `dry` only says what it would break, as `broken`. Returns what the family is then, and how
        many of the broker's current `documents` were held against it, and whether these were all (`whole`).
        """
        argument: dict[str, Any] = {
            "name": name,
            "schemas": None if schemas is None else schema_files(schemas),
            "paths": list(paths),
            "without": list(without),
            "key": None if key is None else list(key),
            "prefixes": dict(prefixes or {}),
            "registered": registered,
            "force": force,
            "dry": dry,
            "ready": ready,
        }
        made: dict[str, Any] = await self._session.invoke("family.change", argument, timeout=timeout)
        return made

    async def read(self, filter: str, *, timeout: float | None = None) -> Filter:
        """What a filter about documents means, such as `family card where card.price < 10`. Nothing is changed;
        `subscribe` reads such texts, too, and then has all brokers extract their paths.
        """
        return as_filter((await read_at(self._session, filter, add=False, timeout=timeout))["filter"])

    async def remove(self, name: str, *, ready: ReadyAt = "network", timeout: float = _PATIENCE) -> None:
        """Remove a family. Its documents are not read any more; what was published stays what it is."""
        await self._session.invoke("family.remove", {"name": name, "ready": ready}, timeout=timeout)

    async def register(self, name: str, address: str = "", *, timeout: float = _PATIENCE) -> str:
        """Be a publisher of documents of a family, at all brokers, until `withdraw`; needed where the family is
        `registered`. Returns a handle, the same for the same `address`, which tells several of a client apart.
        """
        argument = {"name": name, "address": address}
        made: dict[str, str] = await self._session.invoke("family.register", argument, timeout=timeout)
        return made["handle"]

    async def withdraw(self, name: str, address: str = "", *, timeout: float = _PATIENCE) -> None:
        """Be no publisher of documents of a family any more. To withdraw twice is no mistake."""
        await self._session.invoke("family.withdraw", {"name": name, "address": address}, timeout=timeout)

    async def publishers(self, name: str, *, timeout: float | None = None) -> list[dict[str, str]]:
        """Who is registered: `handle`, `principal` and `address` of each."""
        found: list[dict[str, str]] = await self._session.invoke(
            "family.publishers", {"name": name}, timeout=timeout
        )
        return found


def schema_files(schemas: Iterable[SchemaGiven]) -> list[dict[str, Any]]:
    """Files of a schema as they are sent. Raises `OSError` for one that cannot be read."""
    found = []
    for one in schemas:
        if isinstance(one, tuple):
            name, content = one
        else:
            file = Path(one)
            name, content = file.name, file.read_bytes()
        found.append({"name": name, "content": content})
    return found
