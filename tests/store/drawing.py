"""Effects as a core might ask for them, drawn at random; and what the simulator's disk makes of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from palio.model.filter import Filter
from palio.model.notification import Notification
from palio.protocol.durable.attempts import Failure, FailuresOf, Kind
from palio.protocol.durable.lineage import Incarnation, JournalGap, Lineage
from palio.protocol.durable.retry import Retry
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import (
    Append,
    KeyedRecord,
    Read,
    Recovered,
    Remove,
    SaveFact,
    Spool,
    StoreEffect,
    Trim,
)
from palio.routing.durable.facts import FactKind
from palio.routing.occurrences import StoreMessage
from palio.sim.faults.disk import Disk
from tests.store.driving import KINDS_OF_RECORDS

FILTERS = [Filter.parse(text) for text in ("true", "x > 4", 's = "a" or x < 2', "absent(x)")]
KEYS = ["", "a", "ab", "b\0", "ü", "\U0001f40e", "\\"]
NAMES = ["one", "two", "three\0\\"]
ORIGINS = ["b", "elsewhere"]
# Such as several subscriptions wait for, and share.
SHARED = [Envelope("b", n, 0.5, 0, "b", Notification({"x": n}, payload=bytes([n]) * 700)) for n in range(4)]
KINDS = ["append"] * 3 + ["records"] + ["spool"] * 4 + ["read", "fact", "trim", "remove"]


def draw_notification(choose: random.Random) -> Notification:
    names = choose.sample(["x", "s", "deep.er"], choose.randint(0, 3))
    return Notification(
        {name: choose.choice([choose.randint(0, 9), "a", "b", 0.5, True]) for name in names},
        id=choose.choice([None, "".join(choose.choices("ab\0\\'", k=choose.randint(1, 3)))]),
        priority=choose.randint(0, 9),
        lifetime=choose.choice([None, choose.randint(1, 100)]),
        payload=choose.choice([None, b"\0\xff" * choose.choice([*range(10), *[600] * 10])]),
    )


def draw_envelope(choose: random.Random) -> Envelope:
    return Envelope(
        choose.choice(ORIGINS),
        choose.randint(1, 99),
        choose.randint(0, 10**9) / 7,
        choose.randint(0, 3),
        choose.choice(ORIGINS),
        draw_notification(choose),
        choose.randint(0, 2**56),
    )


def draw_letters(
    choose: random.Random, most: int, appended: Sequence[Envelope]
) -> tuple[tuple[int, int, Envelope], ...]:
    """Half of them are events of the journal, where there are any, as they are forwarded from there."""

    def drawn() -> Envelope:
        if appended and choose.random() < 0.5:
            return msgspec.structs.replace(choose.choice(appended), epoch=choose.choice([0, 7, 7, 7]))
        return choose.choice(SHARED) if choose.random() < 0.5 else draw_envelope(choose)

    return tuple((choose.randint(1, 12), choose.randint(0, 3), drawn()) for _ in range(choose.randint(0, most)))


def draw_failures(choose: random.Random) -> FailuresOf:
    kinds: list[Kind] = ["rejected", "not acknowledged in time", "taker left"]
    return tuple(
        (
            choose.randint(1, 12),
            tuple(
                Failure(choose.randint(0, 99) / 7, choose.choice(NAMES), choose.choice(kinds), "why\0")
                for _ in range(choose.randint(0, 2))
            ),
        )
        for _ in range(choose.randint(0, 4))
    )


def draw_lineage(choose: random.Random) -> Lineage:
    begins = sorted(choose.sample(range(99), choose.randint(0, 3)))
    return tuple(
        Incarnation(number, f"{choose.getrandbits(64):016x}", at) for number, at in enumerate(begins, 1)
    )


def draw_gaps(choose: random.Random) -> tuple[JournalGap, ...] | None:
    return choose.choice(
        [None, None, (), (JournalGap("el\0se", 3, None, 12.5), JournalGap("b", choose.randint(0, 9), 12, 0.0))]
    )


def draw_spool(choose: random.Random, token: int, appended: Sequence[Envelope]) -> Spool:
    subscribed: dict[str, Any] = {}
    if choose.random() < 0.5:
        subscribed = {
            "filter": choose.choice(FILTERS),
            "identity": choose.choice(NAMES),
            "generation": choose.randint(0, 9),
            "since": choose.choice([0.0, -1.0, 12.5]),
            "moving_to": choose.choice([None, *ORIGINS]),
            "linger": choose.choice([None, 0.0, 60.5]),
            "retry": choose.choice([None, Retry(attempts=3), Retry(first_pause=0.5, longest_pause=7.0)]),
        }
    origins = choose.sample(ORIGINS, choose.randint(0, 2))
    return Spool(
        token,
        choose.choice(NAMES),
        **subscribed,
        next_delivery=choose.choice([1, 1, 5, 20]),
        add=draw_letters(choose, 3, appended),
        dead=draw_letters(choose, 2, appended),
        remove=tuple(choose.randint(1, 12) for _ in range(choose.randint(0, 3))),
        failures=draw_failures(choose),
        position=tuple((origin, choose.randint(0, 99)) for origin in origins),
        lineages=tuple((origin, draw_lineage(choose)) for origin in origins if choose.random() < 0.5),
        gaps=draw_gaps(choose),
    )


def draw_records(choose: random.Random) -> tuple[KeyedRecord, ...]:
    return tuple(
        KeyedRecord(
            choose.choice(KINDS_OF_RECORDS),
            choose.choice(KEYS),
            choose.choice([None, b"", choose.randbytes(9), b"\0\xff"]),
        )
        for _ in range(choose.choice([0, 0, 1, 3]))
    )


def draw_effects(choose: random.Random, count: int) -> Iterator[StoreEffect]:
    """Now and then there is an append that does not follow. Clocks may be set back."""
    head, time = 0, 1_000.0
    appended: list[Envelope] = []
    for token in range(1, count + 1):
        match choose.choice(KINDS):
            case "append":
                gap = int(choose.random() < 0.1)
                some = [draw_notification(choose) for _ in range(choose.randint(1, 4))]
                time += choose.randint(-5, 20)
                envelopes = [Envelope("b", head + gap + n, time, 0, "b", one) for n, one in enumerate(some, 1)]
                records = [
                    msgspec.structs.replace(one, value=None, event=choose.choice(envelopes).sequence)
                    if choose.random() < 0.5
                    else one
                    for one in draw_records(choose)
                ]
                yield Append(token, tuple(envelopes), choose.choice(NAMES), tuple(records))
                if not gap:
                    head += len(some)
                    appended = [*appended, *envelopes][-9:]
            case "records":
                yield Append(token, (), "", draw_records(choose))
            case "spool":
                yield draw_spool(choose, token, appended)
            case "read":
                after = choose.randint(0, head + 2)
                upto, since = after + choose.randint(0, 20), choose.choice([0.0, time - 20, time + 1])
                yield Read(token, choose.choice(FILTERS), after, upto, choose.randint(1, 5), since)
            case "fact":
                kind = choose.choice([FactKind.READER, FactKind.HELD, FactKind.ENDED])
                fact = kind.of(choose.choice(NAMES), choose.choice(["", *ORIGINS]))
                yield SaveFact(token, fact, choose.choice([None, choose.randint(0, 50)]))
            case "trim":
                yield Trim(choose.randint(0, head))
            case "remove":
                yield Remove(token, choose.choice(NAMES))


def by_oracle(effects: Sequence[StoreEffect]) -> tuple[Disk, list[StoreMessage]]:
    """What the simulated disk holds after all of it, and what it said."""
    disk = Disk()
    disk.queue.extend(effects)
    answers = [disk.complete() for _ in effects]
    return disk, [answer for answer in answers if answer is not None]


def comparable(recovered: Recovered) -> Any:
    """All of it, without the orders that mean nothing."""
    subscriptions = {
        one.name: msgspec.structs.replace(
            one,
            spool=tuple(sorted(one.spool)),
            dead=tuple(sorted(one.dead)),
            failures=tuple(sorted(one.failures, key=itemgetter(0))),
        )
        for one in recovered.subscriptions
    }
    return recovered.head, recovered.trimmed, recovered.recent, dict(recovered.facts), subscriptions
