"""`Standby`: waits for the store of the broker of its name, and opens it when that one has let go.

1. Nothing is written before the lock of the store is held. Until then a standby asks for the lock, again and
   again; and once, before it begins to wait, it reads whether the store has a journal of its name.
2. The lock that it gets is the one that it keeps: of several standbys one opens the store, the others wait on.
3. What waiting does not make better is an error at once: no store, another broker's, one that is damaged. While
   it waits, a store may be out of reach for a while, as it may be for a broker that runs.
4. It makes no store and no journal. If what it waits for was taken away, it does not begin anew in its place.

Who wakes up after that, having been replaced, is the business of the store (`transaction`, fencing).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from palio.broker.host import StandbyEnded
from palio.model.errors import PalioError
from palio.store import Journal, NoSuchJournal, SqlStore, StoreInUse, StoreTooOld, StoreUnavailable

# Seconds between two attempts to get the lock. A guess: clients and neighbours need longer to notice that the
# other broker is gone, and the attempt is two system calls, or one connection to a database.
TRY_EVERY = 0.5


class CannotStandBy(PalioError):
    """A standby that has nothing to wait for."""

    problem: str
    sentence = (
        "There is nothing to stand by for: {problem} Give this broker the name and the store of the one that "
        "it stands by for, which has to be started once without --standby."
    )


@dataclass(eq=False, repr=False)
class Standby:
    """`stopped` ends the waiting."""

    _stopped: asyncio.Event

    async def look(self, url: str, broker: str) -> None:
        """Look whether there is anything to wait for. Raises `CannotStandBy`, and what `Journal` does, but not
        for an older version: the broker that runs may be of that one.
        """
        try:
            await asyncio.to_thread(lambda: Journal(url, broker).close())
        except (NoSuchJournal, StoreUnavailable) as problem:
            raise CannotStandBy(str(problem)) from None
        except StoreTooOld:
            pass

    async def open(self, broker: str, open_store: Callable[[], SqlStore]) -> SqlStore:
        """The store, as soon as nobody else has it. Raises what opening it does, and `StandbyEnded`."""
        log = logging.getLogger(f"palio.broker.{broker}")
        waits, told = False, ""
        while not self._stopped.is_set():
            try:
                store = await asyncio.to_thread(open_store)
            except StoreInUse as problem:
                if not waits:
                    log.info(
                        f"The broker {broker} holds its store; this one takes its place when that ends.",
                        extra={"store": problem.store, "holder": problem.holder},
                    )
                waits = True
            except StoreUnavailable as problem:
                if not waits:
                    raise
                if told != (told := str(problem)):
                    log.warning("The store is out of reach; waiting goes on.", extra={"reason": told})
            else:
                if waits:
                    log.info("The store is free: this broker takes over.")
                return store
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), TRY_EVERY)
        raise StandbyEnded("The standby was told to end before it has taken over.")
