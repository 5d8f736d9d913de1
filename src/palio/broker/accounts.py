"""`Accounts`: bytes that a broker holds for clients while something is under way, and who is over its share.

Counted are frames that are not complete, messages that wait for their turn, answers and events that are not
read. Each connection says how much that is; what is next to nothing (`SMALL`) it need not say. Connections of
one principal have one account; where nobody has a name, each has its own.

1. Who is within its share may hold what it likes.
2. Who is *over* it is not read from while it holds something, and events that may be dropped are.
3. Who is over it for some seconds, or far over it, has the connection ended that holds it, with the reason.
4. While all together are over what the broker holds, everybody's share is an equal part of that.

So what is held for clients is bounded by the settings, whatever clients do; `memory` says by how much.
"""

from __future__ import annotations

from collections.abc import Hashable

from palio.broker.memory import give_back
from palio.model.errors import PalioError

# Bytes of one connection that are not counted.
SMALL = 16 * 1024
# Who holds so many times its share is ended at once.
FAR = 2
# Bytes that are worth giving back.
MUCH = 32 << 20
# Seconds for which somebody may be over its share.
GRACE = 2.0


class ShareUsedUp(PalioError):
    """A client for which more is held than its share: what it does not read, or does not finish."""

    limit: int
    sentence = (
        "More than {limit:,} bytes were held for this client, as many as may be: it does not read what it "
        "asked for, or does not finish what it sends. Read faster, ask for less, or raise `limits.held`."
    )


class Accounts:
    """Who holds how much. `share` is for one account, `limit` for all of them."""

    def __init__(self, share: int, limit: int) -> None:
        self.share = min(share, limit)
        self.limit = limit
        self.total = 0
        self._most = 0  # since memory was given back
        self._held: dict[Hashable, int] = {}

    def change(self, account: Hashable, more: int) -> None:
        """So many bytes more, or less, are held."""
        self.total += more
        self._most = max(self._most, self.total)
        held = self._held.get(account, 0) + more
        if held:
            self._held[account] = held
        else:
            self._held.pop(account, None)

    def held(self, account: Hashable) -> int:
        return self._held.get(account, 0)

    def give_back(self) -> None:
        """Give memory back to the system when much less is held than before."""
        if self._most - self.total > MUCH:
            self._most = self.total
            give_back()

    def over(self, account: Hashable) -> float:
        """How many times its share somebody holds; 1 or less is within it."""
        held = self._held.get(account, 0)
        share = self.share
        if self.total > self.limit:
            share = min(share, self.limit // len(self._held))
        return held / share if share else float(bool(held)) * FAR
