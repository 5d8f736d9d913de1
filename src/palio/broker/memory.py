"""Memory of a broker: how much it may need at the most, by its settings, and giving back what it needs no more.

The bound is a sum of what is bounded by settings, each part with where it comes from. What one event, or one
filter, takes in memory was measured; with other versions of Python it may be a little more or less.
"""

from __future__ import annotations

import ctypes
import os

import msgspec

from palio.broker.settings import Settings

# Of an idle broker with HTTP and a journal (`palio bench neighbours`: 87 MB).
_ITSELF = 100 << 20
# Of one connection: what it has for itself, and what is not counted of what is under way.
_CONNECTION = 48 << 10
# Of one that came by QUIC, beside that: itself, what has come and nobody reads, what is not acknowledged
# (measured: 132 KB in its handshake, 395 KB more when it is full).
_QUIC_CONNECTION = 576 << 10
# Of one delivery that waits for its taker, beside what it brings; of an id that is remembered.
_DELIVERY, _ID = 600, 250
# Of a thread that reads documents: a tree of as many nodes as are allowed takes 40 MiB, and as much take the
# names that libxml2 keeps until the thread is worn (`tests/broker/documents/test_memory.py`).
_READING = 128 << 20
# What waits for the disk is there twice: as objects, and as rows.
_TWICE = 2
# Who is over its share goes on for a moment.
_MOMENT = 1.25
# The C library gives back at once what is larger than this, and keeps the rest for later.
_LARGE = 1 << 20
_M_MMAP_THRESHOLD = -3


class MemoryPart(msgspec.Struct, frozen=True):
    """A part of the memory that a broker may need: what for, how many bytes, and which settings say so."""

    what: str
    bytes: int
    settings: str


def memory_bound(settings: Settings, principals: int = 1) -> list[MemoryPart]:
    """What a broker may need at the most, for so many principals, beside its links to neighbours."""
    limits, durable = settings.limits, settings.durable
    parts = [
        MemoryPart("itself", _ITSELF, ""),
        MemoryPart("connections", limits.connections * _CONNECTION, "limits.connections"),
        MemoryPart("what is under way", int(limits.held_in_all * _MOMENT), "limits.held_in_all"),
        MemoryPart("subscriptions", limits.kept_in_all, "limits.kept_in_all"),
    ]
    if settings.quic != "off":
        size = limits.connections * _QUIC_CONNECTION
        parts.append(MemoryPart("connections by QUIC", size, "limits.connections"))
    if settings.http != "off":
        parts.append(MemoryPart("bodies of requests by HTTP", settings.gateway.bodies, "gateway.bodies"))
    documents = settings.documents
    parts.append(
        MemoryPart(
            "documents that are being read",
            documents.workers * (documents.size + _READING),
            "documents.workers, documents.size",
        )
    )
    if settings.journal:
        kept = 2 * durable.outboxes_bytes + durable.outboxes * _DELIVERY  # as much again of dead letters
        parts += [
            MemoryPart("what waits for the disk", _TWICE * limits.unwritten, "limits.unwritten"),
            MemoryPart("ids of events", durable.remembered * _ID, "durable.remembered"),
            MemoryPart("durable subscriptions", principals * kept, "durable.outboxes, durable.outboxes_bytes"),
        ]
    return parts


def memory_of_machine() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _library() -> ctypes.CDLL | None:
    """The C library, if it is one that keeps what was freed."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None


def keep_little() -> None:
    """Let the C library give large pieces of memory back to the system as soon as they are free."""
    if (library := _library()) is not None:
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)


def give_back() -> None:
    """Give back to the system what is free; takes some milliseconds."""
    if (library := _library()) is not None:
        library.malloc_trim(0)
