"""What can be wrong with a store, each with a finished sentence."""

from __future__ import annotations

from dataclasses import InitVar

from palio.model.errors import PalioError


class StoreError(PalioError):
    """The base of all that can be wrong with a store."""


class WrongStoreUrl(StoreError):
    """A text that names no store."""

    url: str
    reason: InitVar[str]
    sentence = (
        "The store {url!r} cannot be used: {reason} Write sqlite:///folder/file.db or "
        "postgresql://user@host/database."
    )


class StoreInUse(StoreError):
    """Another broker has the store open."""

    store: str
    broker: str
    holder: str | None

    def sentence(self) -> str:
        return (
            f"The store {self.store} of the broker {self.broker!r} is in use by "
            f"{self.holder or 'another process'}. "
            "Stop that one first, or give this broker a store or a name of its own."
        )


class StoreReplaced(StoreError):
    """A file of a store that is not where it was, though its broker has it open."""

    store: str
    file: str
    how: InitVar[str]
    sentence = (
        "The file {file} of the store {store} was {how} while its broker had it open. Whatever is written now "
        "would be lost with it, so nothing more is confirmed. Stop the broker, put the file back or bring back "
        "a copy with `palio journal restore`, and start it again."
    )


class WrongBroker(StoreError):
    """A file that belongs to a broker of another name."""

    store: str
    broker: str
    owner: str
    sentence = (
        "The store {store} belongs to the broker {owner!r}, not to {broker!r}. Start the broker under that "
        "name, or give it a file of its own."
    )


class StoreTooNew(StoreError):
    """A store that a later version of Palio has written."""

    store: str
    version: int
    known: int
    sentence = (
        "The store {store} has version {version} of the schema; this Palio knows up to {known}. Use the Palio "
        "that wrote it, or a later one."
    )


class StoreCorrupt(StoreError):
    """A store that holds what nobody can have written."""

    store: str
    reason: InitVar[str]
    sentence = (
        "The store {store} is damaged: {reason} `palio journal verify` says what is lost of it, and `palio "
        "journal restore` brings back a copy. Or move it away: the broker begins anew, with a new lineage, "
        "without what was only there, and others are told which of its events they may have missed."
    )


class StoreUnavailable(StoreError):
    """A store that cannot be opened or reached now."""

    store: str
    reason: InitVar[str]

    def sentence(self, reason: str) -> str:
        if reason.startswith(f"The store {self.store} "):  # a database that is away says its name itself
            return reason
        return f"The store {self.store} cannot be opened: {reason}"


class StoreTooOld(StoreError):
    """A store that has to be migrated before it can be read."""

    store: str
    version: int
    sentence = (
        "The store {store} has version {version} of the schema. Start its broker once, which migrates it."
    )


class CopyRefused(StoreError):
    """A copy of a store that cannot be made, or cannot be brought back."""

    file: str
    reason: InitVar[str]
    sentence = "The copy {file} cannot be made or used: {reason}"


class StoreThere(StoreError):
    """A store where a copy was to be brought back."""

    store: str
    events: InitVar[str]
    sentence = (
        "There is a store in {store} already{events}. It would be moved aside, and everything that is not in "
        "the copy would be gone with it."
    )


class NoCopiesHere(StoreError):
    """A store of which its server makes copies."""

    store: str
    sentence = (
        "The store {store} is a database on a server, which makes and restores copies itself: use pg_dump "
        "--format=custom and, with the broker stopped, pg_restore --clean."
    )


class NoSuchJournal(StoreError):
    """A journal that is not in the store, or none named where there are several."""

    store: str
    broker: InitVar[str | None]
    known: tuple[str, ...]

    def sentence(self, broker: str | None) -> str:
        there = f"It has those of {', '.join(self.known)}." if self.known else "It has none yet."
        wanted = f"no journal of the broker {broker!r}" if broker is not None else "not exactly one journal"
        return f"The store {self.store} has {wanted}. {there}"


class JournalTrimmed(StoreError):
    """What was to be read next is gone."""

    store: str
    after: int
    trimmed: int
    sentence = (
        "The journal in {store} was trimmed up to {trimmed} while it was read, and {after} was reached. Read "
        "it again from where it begins now; a durable subscription would have kept what it needs."
    )


def sentence(problem: object) -> str:
    """What a driver says, on one line, as a sentence."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    return text if text.endswith((".", "?", "!")) else f"{text}."
