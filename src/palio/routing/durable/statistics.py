"""How durable delivery at a broker is doing, as frozen records: for inspection, metrics and the simulator."""

from __future__ import annotations

import msgspec

from palio.protocol.durable.lineage import JournalGap
from palio.routing.durable.composition import DurableParts
from palio.routing.durable.home.subscription import Durable, HomeState


class HomeStatistics(msgspec.Struct, frozen=True):
    """A durable subscription at its home, named as people are shown it."""

    durable: str  # its name
    state: str
    paused: bool
    linger: float | None
    filter: str
    session: str | None  # the taker's
    pending: int
    oldest: float | None  # when the oldest of these was published
    delivered: int
    dead_letters: int
    position: dict[str, int]
    gaps: tuple[JournalGap, ...]  # what it may have missed

    @classmethod
    def of(cls, durable: Durable) -> HomeStatistics:
        """What is to be said of one now."""
        return cls(
            durable=durable.name,
            state=durable.state.value,
            paused=durable.paused,
            linger=durable.linger,
            filter=str(durable.filter),
            session=durable.taker,
            pending=len(durable.outbox) + durable.spooling,
            oldest=min((one.envelope.time for one in durable.outbox.deliveries.values()), default=None),
            delivered=durable.outbox.done,
            dead_letters=len(durable.dead),
            position=dict(durable.position),
            gaps=durable.gaps,
        )


class DurableStatistics(msgspec.Struct, frozen=True):
    """All of it at one broker. When all is quiet, nothing is written, asked or wanted."""

    epoch: int
    handed: int  # deliveries that went out, also those that came again
    writes: int  # that are waited for
    questions: int  # that are being answered here, its own among them
    wishes: int  # subscriptions that sessions here wait for
    head: int  # of the journal
    trimmed: int
    readers: int  # durable subscriptions anywhere for which the journal is kept
    members: tuple[str, ...]  # neighbours that are on disk here as members, so that they can be asked
    subscriptions: tuple[HomeStatistics, ...]  # that have their home here, by name
    gaps: tuple[JournalGap, ...]  # the latest that was noticed of each journal that came back older


def statistics_of(parts: DurableParts) -> DurableStatistics:
    """How the parts at a broker are doing."""
    here = sorted(parts.homes.subscriptions.items())
    return DurableStatistics(
        epoch=parts.topology.epoch,
        handed=parts.handing.handed,
        writes=len(parts.desk),
        questions=len(parts.polling),
        wishes=len(parts.wishes.by_name),
        head=parts.journal.head,
        trimmed=parts.journal.trimmed,
        readers=len(parts.journal.readers),
        members=tuple(parts.links.brokers()),
        subscriptions=tuple([HomeStatistics.of(durable) for _, durable in here]),
        gaps=parts.forks.statistics(),
    )


def phases_of(parts: DurableParts) -> dict[str, str]:
    """By name: what a subscription at home here is doing, or what is done for who waits for one."""
    found = {name: wish.phase for name, wish in parts.wishes.by_name.items()}
    for name, durable in parts.homes.subscriptions.items():
        found[name] = _phase(durable, name in parts.homes.changes)
    return found


def _phase(durable: Durable, changing: bool) -> str:
    match durable.state:
        case HomeState.MOVING:
            return "handing over" if durable.moving_stored else "leaving"
        case HomeState.LIVE | HomeState.BEHIND if changing:
            return "changing"
        case HomeState.BEHIND if durable.collecting is not None:
            return "asking"
        case HomeState.LIVE if durable.catching_up:
            return "catching up"
    return str(durable.state.value)
