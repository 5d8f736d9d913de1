"""Work on the store of a broker that does not run, by the rules of one that does.

The same core that decides in a running broker is given what is on disk, hears the request, and what it wants
written is written. So what a journal is needed for is judged in one place only.
"""

from __future__ import annotations

import time
from typing import Any

from palio.protocol.durable.journals import JournalTrimmed, TrimJournal
from palio.routing.configuration import Configuration
from palio.routing.durable.desk import DurableSettings
from palio.routing.durable.effects import StoreEffect
from palio.routing.effects import Reply
from palio.routing.occurrences import Open
from palio.routing.router import Router
from palio.store import SqlStore, StoreError, journals_in

_OPERATOR = "operator"
# Seconds between two looks at how much is deleted by now.
_PAUSE = 0.05


def trim_store(
    url: str, broker: str | None = None, upto: int | None = None, *, dry: bool = False
) -> JournalTrimmed:
    """Let go all of a journal that nobody needs, at a broker that does not run; if `dry`, say what would go.

    Returns when it is deleted. `broker` may be left out where a store has one journal. Raises `StoreInUse` if
    the broker runs, `NoSuchJournal`, and what opening a store raises.
    """
    names = [broker] if broker is not None else journals_in(url)
    problems: list[StoreError] = []
    store = SqlStore.open(url, broker=names[0], completed=lambda _: None, broken=problems.append)
    try:
        recovered, incarnation = store.recovered()
        router = Router(
            Configuration(broker=names[0], incarnation=incarnation, durable=DurableSettings()),
            recovered=recovered,
        )
        answer: Any = None
        for message in (Open(), TrimJournal(1, upto, dry)):
            effects = router.handle(message, _OPERATOR, time.time())
            store.submit([effect for effect in effects if isinstance(effect, StoreEffect)])
            answer = next((one.answer for one in effects if isinstance(one, Reply)), answer)
        while not problems and not _is_swept(store, answer):
            time.sleep(_PAUSE)
        if problems:
            raise problems[0]
        return answer  # type: ignore[no-any-return]
    finally:
        store.close()


def _is_swept(store: SqlStore, answer: JournalTrimmed) -> bool:
    statistics = store.statistics()
    held_back = statistics.queued == 0 and statistics.swept >= statistics.trimmed
    return statistics.swept >= answer.journal.trimmed or held_back
