"""`PublisherRegistrations`: who has said that they will publish documents of a family.

They are shared records, so a publisher is registered at all brokers, and after restarts. Only families that
want it (`registered`) look at them: there, who is not registered publishes nothing, whatever else they may.

1. A registration is the same however often it is made: its handle follows from who, what and from where.
2. Withdrawing one that is not there is no mistake: it is not there then, as was asked for.
3. It belongs to one family, and not to another one that gets its name later."""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final

import msgspec

from palio.broker.documents.registry import FamilyRegistry
from palio.broker.sharing import BrokerSharing
from palio.model.errors import NotAllowed, PalioError
from palio.model.values import Value
from palio.protocol.sharing import SharedRecord

PUBLISHERS: Final = "family.publisher"
MAX_REGISTRATIONS: Final = 10_000  # in a network; some megabytes, and more publishers than any family has
MAX_ADDRESS: Final = 2_000  # characters; what browsers take as an address


class TooManyRegistrations(PalioError):
    """There are as many registrations of publishers as may be."""

    limit: int
    sentence = "There are {limit:,} registrations of publishers, as many as may be; withdraw some."


class PublisherRecord(msgspec.Struct, frozen=True):
    """Somebody, as a publisher of documents of a family; `mark` says of which one of that name."""

    family: str
    mark: str
    principal: str
    address: str

    @property
    def handle(self) -> str:
        """By what the registration is known to whoever made it."""
        parts = msgspec.msgpack.encode((self.family, self.mark, self.principal, self.address))
        return blake2b(parts, digest_size=16).hexdigest()


class PublisherRegistrations:
    """All registrations, at one broker."""

    def __init__(self, sharing: BrokerSharing, families: FamilyRegistry) -> None:
        self._sharing = sharing
        self._families = families
        self._records: dict[str, PublisherRecord] = {}  # by handle
        self._publishers: dict[tuple[str, str, str], int] = {}  # by family, mark and principal: how many

    def begin(self) -> None:
        """Reads what is known already, and hears of changes from now on."""
        for key, value in self._sharing.of(PUBLISHERS).items():
            self._changed(key, value)
        self._sharing.listen(PUBLISHERS, self._heard)

    async def register(self, family: str, principal: str, address: str = "") -> str:
        """Have somebody registered, everywhere; returns the handle. Raises `UnknownFamily`, and
        `TooManyRegistrations`.
        """
        record = self._record(family, principal, address)
        if record.handle not in self._records and len(self._records) >= MAX_REGISTRATIONS:
            raise TooManyRegistrations(MAX_REGISTRATIONS)
        value = msgspec.msgpack.encode(record)
        gone = [(PUBLISHERS, handle, None) for handle in self._stale()]
        await self._sharing.put((PUBLISHERS, record.handle, value), *gone, everywhere=True)
        return record.handle

    async def withdraw(self, family: str, principal: str, address: str = "") -> None:
        """Have somebody not registered, everywhere. Raises `UnknownFamily`."""
        handle = self._record(family, principal, address).handle
        if handle in self._records:
            await self._sharing.put((PUBLISHERS, handle, None), everywhere=True)

    def listed(self, family: str) -> list[dict[str, Any]]:
        """Who is registered for a family. Raises `UnknownFamily`."""
        mark = self._families.known(family).mark
        return [
            {"handle": handle, "principal": one.principal, "address": one.address}
            for handle, one in sorted(self._records.items())
            if (one.family, one.mark) == (family, mark)
        ]

    def require(self, family: Value | None, principal: str) -> None:
        """Raises `NotAllowed` for a document of a family that wants to know its publishers."""
        if not isinstance(family, str) or family not in self._families.names():
            return
        known = self._families.known(family)
        if known.declared.registered and (family, known.mark, principal) not in self._publishers:
            said = "register first: `palio family register`, or RegisterPublisher by SOAP."
            raise NotAllowed(principal, f"publish documents of the family {family!r}", said)

    def _stale(self) -> list[str]:
        """Registrations for families that are gone, which mean nothing any more."""
        names = self._families.names()
        marks = {name: self._families.known(name).mark for name in names}
        return [handle for handle, one in self._records.items() if marks.get(one.family) != one.mark]

    def _record(self, family: str, principal: str, address: str) -> PublisherRecord:
        return PublisherRecord(family, self._families.known(family).mark, principal, address[:MAX_ADDRESS])

    def _heard(self, record: SharedRecord) -> None:
        self._changed(record.key, record.value)

    def _changed(self, key: str, value: bytes | None) -> None:
        if (before := self._records.pop(key, None)) is not None:
            self._count(before, -1)
        if value is not None:
            with suppress(msgspec.DecodeError):  # of a newer version
                record = msgspec.msgpack.decode(value, type=PublisherRecord)
                self._records[key] = record
                self._count(record, 1)

    def _count(self, record: PublisherRecord, change: int) -> None:
        name = record.family, record.mark, record.principal
        self._publishers[name] = self._publishers.get(name, 0) + change
        if not self._publishers[name]:
            del self._publishers[name]
