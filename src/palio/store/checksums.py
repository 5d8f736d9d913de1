"""Checksums: how a store notices that its disk gives back something else than was written.

An event has a checksum of its body from the append on, and a letter one of its bytes: CRC-32, as in Kafka's
journal and in Ethernet, since it finds every damage of up to four bytes in a row, of any other all but one in
four thousand million, and costs a fraction of a microsecond. The sequence, or the number of the delivery, is
part of it: the right bytes in another row are wrong, too.

What was appended together is a link of a chain: a hash over the link before, and over sequences, times,
publishers and checksums of these events. It tells what no row can tell by itself: that rows were exchanged or
changed with their checksums, that a part of a file came back as it was long ago. The last row of a link keeps
it, so that a chain can be followed from the middle on; the row of the broker has that of the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import pack
from typing import Any
from zlib import crc32

WRONG_CHECKSUM = "Its checksum is not the one that it was written with."

# Of the bytes of an event or a letter, and of its sequence or the number of its delivery, of which the last 32
# bits count. It is zlib's own function, without one of ours around it: it is called for every event.
checksum = crc32

_CHAIN_BYTES = 8


def is_intact(number: int, data: Any, written: int | None) -> bool:
    """Whether something is what it was when it was written with that checksum; without one nobody knows."""
    if written is None:
        return True
    try:
        return checksum(data, number) == written
    except TypeError:  # a column of SQLite may have anything
        return False


def chained(
    before: int | None, first: int, times: Sequence[float], publishers: Sequence[str], sums: Sequence[int]
) -> int:
    """The link of a chain for events from a sequence on, after another link; there is none before the first."""
    count = len(sums)
    link = blake2b(pack("<qqq", before or 0, first, count), digest_size=_CHAIN_BYTES)
    link.update(pack(f"<{count}d", *times))
    link.update(pack(f"<{count}q", *sums))
    link.update("\n".join(publishers).encode())
    return int.from_bytes(link.digest(), "little", signed=True)
