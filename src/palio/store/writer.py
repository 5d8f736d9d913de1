"""The writer: one thread that takes what is queued, writes it as one group (group commit), and tells.

Group commit: while one group is being synced, the next gathers. So a commit costs the same for one event as for
hundreds, nobody waits for a timer, and a lone event waits for one sync only.

What can go wrong, and what then:

- There is no room. Every append that waits is refused, with the reason; nothing else is lost: it waits, and is
  tried again until there is room. What was trimmed is deleted first, which makes some.
- The database is away. Everything waits; after `GRACE` seconds appends are refused as if there were no room.
- The connection broke while a commit was under way. Then nobody knows whether it is on disk, and nothing may
  be said before that is known. The number of the last group, which is written with each group, tells
  when the database is back.
- Somebody else began meanwhile, the file is damaged, or it is not where it was: the store is broken. Appends
  are refused, nothing else is completed any more, and the broker is told, so that it can stop.

Whatever was told is on disk. What was not told when the process dies is there up to some group, and no further.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection

from palio.model.errors import PalioError
from palio.routing.durable.effects import Append, LogBounds, Read, StoreEffect
from palio.routing.occurrences import Failed, StoreMessage
from palio.store.backend import Backend, Trouble, WriteFailure
from palio.store.contract import Broken, Completed
from palio.store.errors import StoreCorrupt, StoreError, StoreInUse
from palio.store.lake_thread import LakeThread
from palio.store.letters import LetterChanges, SharedLetters
from palio.store.queue import Queue, appends_of
from palio.store.recovery import unchanged
from palio.store.sweeping import MIN_SWEPT, sweep
from palio.store.transaction import KeptSubscriptions, StoredSubscription, StoreStanding, Transaction

GRACE = 3.0  # seconds for which appends wait for a database that is away
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
LOOK_EVERY = 1.0  # seconds between two looks at the files, if nothing is written

log = logging.getLogger("palio.store")


class _GroupOutcome(msgspec.Struct, frozen=True):
    """What a transaction for a group comes to, once it is committed."""

    group: list[StoreEffect]
    standing: StoreStanding
    changed: dict[str, StoredSubscription | None]
    answers: list[StoreMessage]
    bytes: int
    earlier: list[tuple[Read, int]]
    aside: int
    letters: LetterChanges


@dataclass(eq=False, repr=False)
class Writer:
    """Carries out what is in the queue. All but the counters belongs to its thread."""

    backend: Backend
    _connection: Connection | None
    standing: StoreStanding
    _kept: KeptSubscriptions
    incarnation: int
    _retention: float
    queue: Queue
    _completed: Completed
    _tell_broken: Broken | None
    lake: LakeThread | None
    aside: int
    _log_bounds: LogBounds
    _letters: SharedLetters

    def __post_init__(self) -> None:
        self._errors = self.backend.errors
        self._doubt: _GroupOutcome | None = None  # a commit of which nobody knows whether it came to pass
        self._finished: list[StoreEffect] | None = None  # the group that was last found to be on disk
        self.broken: StoreError | None = None
        self.waiting: str | None = None  # why nothing can be written now
        self.commits = self.writes = self.bytes = self.refused = self.lost = 0
        self.last_error: str | None = None
        self.thread = threading.Thread(target=self._run, name=f"palio store {self.standing.name}", daemon=True)

    # The thread

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except Exception as problem:  # whatever it is, the broker must hear of it
            log.exception("The writer of the store has failed.")
            self._break(StoreError(f"The writer of the store {self.backend.store} has failed: {problem!r}."))
            while not self.queue.closed:
                self._refuse([], str(self.broken))
                self.queue.wait(LONGEST_PAUSE)
        finally:
            self._disconnect()

    def _turn(self) -> bool:
        """Carry out one group. False at the end."""
        to_sweep = self.broken is None and self.standing.swept < self.standing.trimmed
        group = self.queue.take(0 if to_sweep else LOOK_EVERY)
        if group:
            if self.broken is not None:
                self._refuse(group, str(self.broken))
            else:
                self._carry_out(group)
            self.queue.finish()
        elif self.queue.closed:
            return False
        elif to_sweep:
            self._sweep()
        elif self.broken is None:
            self._look()
        return True

    def _carry_out(self, group: list[StoreEffect]) -> None:
        pause, trouble_since = FIRST_PAUSE, 0.0
        while group:
            try:
                self._attempt(group)
            except self._errors as problem:
                trouble = self._judge(problem)
                self._reconnect()
            if self._finished is group:
                return
            trouble_since = trouble_since or time.monotonic()
            if self.broken is not None:
                self._refuse(group, str(self.broken))
                return
            refuse = trouble.kind is WriteFailure.FULL or time.monotonic() >= trouble_since + GRACE
            if refuse and self._doubt is None:
                left = self._refuse(group, trouble.reason)
                if len(left) < len(group):
                    group = left
                    continue  # without the appends it may fit
            if trouble.kind is WriteFailure.FULL and self._connection is not None and self._sweep():
                continue
            if self.queue.closed:
                log.warning("The store is closed while it waits: %d writes are lost.", len(group))
                self.lost += len(group)
                return
            self._pause(pause, trouble.reason if refuse and self._doubt is None else None)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _attempt(self, group: list[StoreEffect]) -> None:
        """One transaction, unless the group turns out to be on disk already. Raises what the driver raises."""
        connection = self._connection or self._connect()
        if self._finished is group:
            return
        begun = connection.begin()
        archived = self.lake is not None
        transaction = Transaction(
            self.backend,
            connection,
            self.standing,
            self._kept,
            incarnation=self.incarnation,
            archived=archived,
            log_bounds=self._log_bounds,
            letters=self._letters,
        )
        answers = transaction.carry_out(group)
        swept = self.standing.swept
        if not group or transaction.trimmed - swept >= MIN_SWEPT:  # few are left for when nothing else is to do
            rows = max(MIN_SWEPT, 2 * transaction.appended)
            swept = sweep(connection, self.standing, transaction, self._retention, rows)
        standing = transaction.finish(swept)
        after = standing or self.standing
        outcome = _GroupOutcome(
            group,
            after,
            transaction.changed,
            answers,
            transaction.bytes,
            transaction.earlier,
            transaction.aside,
            transaction.letters,
        )
        if standing is None:
            begun.rollback()
        else:
            self._doubt = outcome
            begun.commit()
            self._doubt = None
            self.commits += 1
            self.backend.require_in_place()  # before anybody is told
        self._finish(outcome)

    def _finish(self, outcome: _GroupOutcome) -> None:
        """Handles a group that is on disk."""
        self._finished = outcome.group
        self.standing = outcome.standing
        outcome.letters.committed()
        for name, kept in outcome.changed.items():
            if kept is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = kept
        for effect, trimmed in outcome.earlier:
            assert self.lake is not None
            self.lake.read(effect, trimmed)
        self.writes += len(outcome.answers)
        self.bytes += outcome.bytes
        self.aside += outcome.aside
        if self.waiting is not None:
            log.info("The store can be written again.")
            self.waiting = None
        if outcome.group:
            self.queue.finish()  # before it is told: who hears of it may ask what still waits
        if outcome.answers:
            self._completed(outcome.answers)

    def _sweep(self) -> bool:
        """Delete some of what was trimmed, for itself. Returns whether there was anything."""
        if self.standing.swept >= self.standing.trimmed:
            return False
        before = self.standing.swept
        try:
            self._attempt([])
        except self._errors as problem:
            self._judge(problem)
            self._reconnect()
            self.queue.wait(FIRST_PAUSE)
        return self.standing.swept > before

    def _look(self) -> None:
        """Look whether the store is still where it was and still ours, while there is nothing to do.

        Who has lost the connection that is its lock hears here that another one has begun meanwhile.
        """
        try:
            self.backend.require_in_place()
            if self._connection is not None and not self.backend.is_connected(self._connection):
                self._disconnect()
            if self._connection is None:
                self._connect()
        except StoreError as problem:
            self._judge(problem)
        except self._errors as problem:  # who writes next says that it has to wait
            self._disconnect()
            log.debug("Looking whether the store is there: %s", problem)

    # Trouble

    def _pause(self, seconds: float, refusal: str | None) -> None:
        """Wait before the next attempt, and refuse what is to be appended meanwhile."""
        until = time.monotonic() + seconds
        while not self.queue.closed and (left := until - time.monotonic()) > 0:
            self.queue.wait(left)
            if refusal is not None:
                self._refuse([], refusal)

    def _refuse(self, group: list[StoreEffect], reason: str) -> list[StoreEffect]:
        """Refuse all appends of a group and of the queue. Returns what is left of the group."""
        appends = appends_of(group) + self.queue.take_appends()
        if appends:
            self.refused += len(appends)
            self._completed([Failed(append.token, reason) for append in appends])
        return [effect for effect in group if not isinstance(effect, Append)]

    def _judge(self, problem: Exception) -> Trouble:
        if isinstance(problem, PalioError):
            trouble = Trouble(WriteFailure.BROKEN, str(problem))
        else:
            trouble = self.backend.trouble(problem)
        self._disconnect()
        self.last_error = trouble.reason
        if trouble.kind is WriteFailure.BROKEN:
            self._break(problem if isinstance(problem, StoreError) else self._damage(trouble.reason))
        elif self.waiting is None:
            log.warning("Writing has to wait: %s", trouble.reason)
            self.waiting = trouble.reason
        return trouble

    def _damage(self, reason: str) -> StoreError:
        """What is wrong with a store that cannot be written: another broker may have written the same rows."""
        try:
            connection = self.backend.connect()
            with closing(connection), connection.begin():
                if unchanged(connection, self.standing, self.incarnation) is None:
                    return StoreInUse(self.backend.store, self.standing.name, None)
        except self._errors as problem:
            log.debug("Looking who has the store: %s", problem)
        return StoreCorrupt(self.backend.store, reason)

    def _break(self, error: StoreError) -> None:
        self.broken = error
        self.last_error = str(error)
        log.error("The store is broken: %s", error)
        if self._tell_broken is not None:
            self._tell_broken(error)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except self._errors as problem:
                log.debug("Closing a connection: %s", problem)

    def _reconnect(self) -> None:
        if self.broken is None:
            try:
                self._connect()
            except self._errors as problem:
                self._judge(problem)

    def _connect(self) -> Connection:
        """Connect again, and find out about what was in doubt."""
        connection = self.backend.connect()
        self._connection = connection
        with connection.begin():
            groups = unchanged(connection, self.standing, self.incarnation)
        doubt, self._doubt = self._doubt, None
        if groups is None:
            raise StoreInUse(self.backend.store, self.standing.name, None)
        if doubt is not None and groups == doubt.standing.groups:
            self.commits += 1
            self._finish(doubt)
        return connection
