"""What can be wrong with a store, each with a finished sentence."""

from __future__ import annotations

from palio.model.errors import PalioError


class StoreError(PalioError):
    """The base of all that can be wrong with a store."""


class WrongStoreUrl(StoreError):
    """A text that names no store."""

    url: str

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"The store {url!r} cannot be used: {reason} "
            "Write sqlite:///folder/file.db or postgresql://user@host/database.",
            url=url,
        )


class StoreInUse(StoreError):
    """Another broker has the store open."""

    store: str
    broker: str
    holder: str | None

    def __init__(self, store: str, broker: str, holder: str | None) -> None:
        who = f"by {holder}" if holder else "by another process"
        super().__init__(
            f"The store {store} of the broker {broker!r} is in use {who}. "
            "Stop that one first, or give this broker a store or a name of its own.",
            store=store,
            broker=broker,
            holder=holder,
        )


class WrongBroker(StoreError):
    """A file that belongs to a broker of another name."""

    store: str
    broker: str
    owner: str

    def __init__(self, store: str, broker: str, owner: str) -> None:
        super().__init__(
            f"The store {store} belongs to the broker {owner!r}, not to {broker!r}. "
            "Start the broker under that name, or give it a file of its own.",
            store=store,
            broker=broker,
            owner=owner,
        )


class StoreTooNew(StoreError):
    """A store that a later version of Palio has written."""

    store: str
    version: int
    known: int

    def __init__(self, store: str, version: int, known: int) -> None:
        super().__init__(
            f"The store {store} has version {version} of the schema; this Palio knows up to {known}. "
            "Use the Palio that wrote it, or a later one.",
            store=store,
            version=version,
            known=known,
        )


class StoreCorrupt(StoreError):
    """A store that holds what nobody can have written."""

    store: str

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(
            f"The store {store} is damaged: {reason} Restore it from a copy, or move it away to begin anew.",
            store=store,
        )


class StoreUnavailable(StoreError):
    """A store that cannot be opened or reached now."""

    store: str

    def __init__(self, store: str, reason: str) -> None:
        # A database that is away says its name itself.
        named = (
            reason
            if reason.startswith(f"The store {store} ")
            else f"The store {store} cannot be opened: {reason}"
        )
        super().__init__(named, store=store)


class StoreTooOld(StoreError):
    """A store that has to be migrated before it can be read."""

    store: str
    version: int

    def __init__(self, store: str, version: int) -> None:
        super().__init__(
            f"The store {store} has version {version} of the schema. Start its broker once, which migrates it.",
            store=store,
            version=version,
        )


class NoSuchJournal(StoreError):
    """A journal that is not in the store, or none named where there are several."""

    store: str
    known: tuple[str, ...]

    def __init__(self, store: str, broker: str | None, known: tuple[str, ...]) -> None:
        there = f"It has those of {', '.join(known)}." if known else "It has none yet."
        wanted = f"no journal of the broker {broker!r}" if broker is not None else "not exactly one journal"
        super().__init__(f"The store {store} has {wanted}. {there}", store=store, known=known)


class JournalTrimmed(StoreError):
    """What was to be read next is gone."""

    after: int
    trimmed: int

    def __init__(self, store: str, after: int, trimmed: int) -> None:
        super().__init__(
            f"The journal in {store} was trimmed up to {trimmed} while it was read, and {after} was reached. "
            "Read it again from where it begins now; a durable subscription would have kept what it needs.",
            store=store,
            after=after,
            trimmed=trimmed,
        )


def sentence(problem: object) -> str:
    """What a driver says, on one line, as a sentence."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if text.endswith((".", "?", "!")) else f"{text}."
