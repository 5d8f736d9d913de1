"""A disk that lies: single bytes of what a store has written become others, on disk and behind its back."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg

from palio.store.records import encode_body
from tests.store.driving import envelope


def file_of(url: str) -> Path:
    """The file of a store of SQLite."""
    return Path(url.removeprefix("sqlite:///"))


def flip(file: Path, content: bytes, at: int = -1) -> None:
    """Change one byte of some content that is in a file once, wherever it lies there."""
    whole = bytearray(file.read_bytes())
    assert whole.count(content) == 1, f"It is there {whole.count(content)} times."
    whole[whole.index(content) + at % len(content)] ^= 1
    file.write_bytes(whole)


def damage_event(url: str, *sequences: int) -> None:
    """Change one byte of the bodies of events that `driving.envelope` made: a letter of a text in them.

    They are still encoded notifications then, that somebody could deliver. In a file it is done without SQLite.
    """
    for sequence in sequences:
        body = encode_body(envelope(sequence).notification.body)
        if url.startswith("sqlite:"):
            flip(file_of(url), body, body.index(b"text"))
        else:
            change(
                url,
                "UPDATE palio_journal SET body = set_byte(body, position('text'::bytea in body) - 1, 117) "
                f"WHERE sequence = {sequence}",
            )


def change(url: str, statement: str) -> None:
    """Do something in the database of a store, whatever a broker would say of it."""
    if url.startswith("sqlite:"):
        with sqlite3.connect(file_of(url)) as connection:
            connection.execute(statement)
        connection.close()
        return
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(statement)  # type: ignore[call-overload]
