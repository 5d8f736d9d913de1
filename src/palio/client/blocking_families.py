"""The families of a blocking client (`palio.sync`): as `palio.client.families`, and each call waits."""

from __future__ import annotations

from typing import Any

from palio.client.blocking import Worker
from palio.client.families import Families
from palio.model.filter import Filter


class BlockingFamilies:
    """Asks the broker about families. Arguments: as in `palio.client.families.Families`."""

    def __init__(self, families: Families, worker: Worker) -> None:
        self._families = families
        self._worker = worker

    def add(self, name: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Add a family. Returns what it is."""
        return self._worker.run(self._families.add(name, *arguments, **options))

    def add_paths(self, name: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Have paths extracted from documents of a family from now on."""
        return self._worker.run(self._families.add_paths(name, *arguments, **options))

    def ls(self, **options: Any) -> list[dict[str, Any]]:
        """All families that this client may see."""
        return self._worker.run(self._families.ls(**options))

    def show(self, name: str, **options: Any) -> dict[str, Any]:
        """One family, with the files of its schema."""
        return self._worker.run(self._families.show(name, **options))

    def paths(self, name: str, **options: Any) -> dict[str, list[dict[str, Any]]]:
        """The paths of a family, and with `all=True` those that its schema has."""
        return self._worker.run(self._families.paths(name, **options))

    def change(self, name: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Change a family. Returns what it is then, and what that breaks."""
        return self._worker.run(self._families.change(name, *arguments, **options))

    def read(self, filter: str, **options: Any) -> Filter:
        """The plain filter that one about documents means."""
        return self._worker.run(self._families.read(filter, **options))

    def remove(self, name: str, **options: Any) -> None:
        """Remove a family."""
        self._worker.run(self._families.remove(name, **options))

    def register(self, name: str, address: str = "", **options: Any) -> str:
        """Be a publisher of documents of a family. Returns a handle."""
        return self._worker.run(self._families.register(name, address, **options))

    def withdraw(self, name: str, address: str = "", **options: Any) -> None:
        """Be no publisher of documents of a family any more."""
        self._worker.run(self._families.withdraw(name, address, **options))

    def publishers(self, name: str, **options: Any) -> list[dict[str, str]]:
        """Who is registered."""
        return self._worker.run(self._families.publishers(name, **options))
