"""Looking into brokers: what is in memory, what is trimmed, and what is still to happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.protocol.durable.lineage import Lineage, fork_point
from palio.protocol.durable.peers import Mark, Marks, TopologyChanged
from palio.protocol.envelope import Envelope
from palio.protocol.peers import Forward
from palio.routing.documents.current import PUBLISHED, CurrentDocument
from palio.routing.documents.pulling import CurrentDocuments
from palio.routing.durable.effects import Append, Spool, StoreEffect, Trim
from palio.routing.durable.home.subscription import MAX_BUFFERED, Durable
from palio.sim.faults.disk import Disk, DiskSubscription, RecordsOnDisk
from palio.sim.faults.record import NEVER
from palio.sim.faults.station import FaultyStation

if TYPE_CHECKING:
    from palio.sim.faults.world import World

MOST_EVENTS = 200_000
MOST_REPEATED = 2  # writes of the same position that may be under way


def describe_rest(world: World) -> str:
    """What is still to happen."""
    if world.handled > world.most_events:
        return f"{world.handled:,} messages were handled until {world.now:.1f} s"
    found: dict[str, int] = {}
    for _, _, do, arguments in world.queue:
        what = do.__name__.strip("_")
        if what == "arrive":
            what = f"{type(arguments[3]).__name__} from {arguments[1]}"
        elif what == "timer":
            what = f"the timer {arguments[2][0]!r} of {arguments[0].name}"
        found[what] = found.get(what, 0) + 1
    return "there is " + ", ".join(f"{count} × {what}" for what, count in sorted(found.items()))


def look_at_end(world: World, *, quiet: bool) -> None:
    """Where each subscription is, and what has been left behind in memory."""
    record = world.record
    record.forgotten_by_both = world.company.mutual()
    for station in world.stations.values():
        if quiet and station.router is not None and station.router.relay is not None:
            asked = len(station.router.relay.polling)
            if asked:
                record.crowded.append((station.name, "questions (when all was over)", asked, 0))
        if station.router is None or station.router.durable is None:
            continue
        service = station.router.durable
        for name in service.homes.subscriptions:
            record.homes.setdefault(name, []).append(station.name)
        for name, kept in station.disk.subscriptions.items():
            record.on_disk.setdefault(name, []).append(station.name)
            letters = {(envelope.origin, envelope.sequence) for _, envelope in kept.dead.values()}
            record.dead.setdefault(name, set()).update(letters)
        look(world, station)
        if quiet:
            statistics = service.statistics()
            left = {
                "writes that are waited for": statistics.writes,
                "questions": statistics.questions,
                "subscriptions that are looked for": statistics.wishes,
            }
            for what, count in left.items():
                if count:
                    record.crowded.append((station.name, f"{what} (when all was over)", count, 0))


def look_at_documents(world: World) -> None:
    """Which versions of documents are the current ones, at each broker."""
    record = world.record
    for station in world.members:
        name = station.name
        records = RecordsOnDisk(station.disk)
        published = [CurrentDocument.of(one.value or b"") for one in records.records(PUBLISHED)]
        record.published_documents[name] = {one.name[1]: one.envelope for one in published}
        current = [one for _, one in CurrentDocuments(records).walk("", None) if one is not None]
        record.current_documents[name] = {one.name[1]: one.envelope for one in current}
    record.keeping = {name: keeper.filter for name, keeper in world.clients.keepers.items()}


def subscription_at(station: FaultyStation, name: str) -> Durable | None:
    """A durable subscription in the memory of a broker."""
    service = station.router.durable if station.router is not None else None
    return service.homes.subscriptions.get(name) if service is not None else None


def look(world: World, station: FaultyStation) -> None:
    """How much is in memory, and who is there."""
    assert station.router is not None
    service = station.router.durable
    if service is None:
        return
    writing: dict[str, set[int]] = {}
    positions: dict[tuple[str, tuple[tuple[str, int], ...]], int] = {}
    for effect in station.disk.queue:
        if isinstance(effect, Spool):
            writing.setdefault(effect.name, set()).update([number for number, *_ in effect.add])
            if effect.position and not (effect.add or effect.remove or effect.dead or effect.filter):
                write = effect.name, effect.position
                positions[write] = positions.get(write, 0) + 1
    allowed = world.settings.outbox + world.settings.page + world.batch
    for (name, _), count in positions.items():
        if count > MOST_REPEATED:
            what = f"writes of one and the same position of {name}"
            world.record.crowded.append((station.name, what, count, MOST_REPEATED))
    for name, durable in service.homes.subscriptions.items():
        if durable.taker is not None and durable.taker not in world.connected[station.name]:
            world.record.ghosts.add((station.name, name, durable.taker))
        held = len(writing.get(name, set()).union(durable.outbox.deliveries))
        if held > allowed:
            world.record.crowded.append((station.name, f"the deliveries of {name}", held, allowed))
        buffers = [*durable.catching_up.values(), *(durable.collecting or {}).values()]
        longest = max([len(one.buffer) for one in buffers], default=0)
        if longest > MAX_BUFFERED:
            world.record.crowded.append((station.name, f"the buffer of {name}", longest, MAX_BUFFERED))


def check_trim(world: World, station: FaultyStation, trim: Trim) -> None:
    record = world.record
    for name, kept in _latest(world).items():
        position = kept.position.get(station.name)
        taking = record.takings.get(name)
        if position is None or taking is None or taking.ending != NEVER:
            continue
        known = fork_point(position, kept.lineages.get(station.name, ()), station.disk.lineage)
        if known >= trim.upto:
            continue
        service = station.router.durable if station.router is not None else None
        came_back = [one for one in record.older if one.broker == station.name]
        if came_back and service is not None and kept.identity not in service.journal.readers:
            record.unknown_readers.add((station.name, name))
        elif any(one.had_read(kept.identity, trim.upto, station.disk.lineage) for one in came_back):
            continue  # it has gone back to where this journal and another one fork, but had all of this one
        elif not taking.rewound and name not in record.set_back:  # whoever was moved back gets what is there
            record.trimmed_early.append((station.name, trim.upto, name, known))


def note_departure(world: World, station: FaultyStation) -> None:
    """A broker has left: who has not read all of its journal?"""
    record, disk = world.record, station.disk
    record.left[station.name] = record.tick()
    for name, kept in _latest(world).items():
        taking, position = record.takings.get(name), kept.position.get(station.name)
        if position is None or taking is None or taking.ending != NEVER or taking.rewound:
            continue
        # Who is ready later may have met it, and has not been waited for.
        if taking.ready < record.forgotten_at.get(station.name, (0.0, NEVER))[1]:
            known = fork_point(position, kept.lineages.get(station.name, ()), disk.lineage)
            if known < disk.head:
                record.left_unread.append((station.name, name, disk.head, known))


def _latest(world: World) -> dict[str, DiskSubscription]:
    """Each subscription as it is on the disk of its latest home."""
    latest: dict[str, DiskSubscription] = {}
    for station in world.stations.values():
        for name, kept in station.disk.subscriptions.items():
            if name not in latest or latest[name].generation < kept.generation:
                latest[name] = kept
    return latest


def has_gone_on(world: World, name: str, disk: Disk) -> bool:
    """Whether a subscription that was on a disk has its home elsewhere, on a disk, in a later generation."""
    here, latest = disk.subscriptions.get(name), _latest(world).get(name)
    return latest is not None and (here is None or here.generation < latest.generation)


def ahead_of(world: World, station: FaultyStation) -> dict[str, Lineage]:
    """The subscriptions elsewhere that have read, on disk, what the journal of a broker does not have any more.

    With the lineage of the journal that they know.
    """
    found = {}
    for name, kept in _latest(world).items():
        position, lineage = kept.position.get(station.name, 0), kept.lineages.get(station.name, ())
        fork = min(fork_point(position, lineage, station.disk.lineage or lineage), station.disk.head)
        if lineage and position > fork and name not in station.disk.subscriptions:
            found[name] = lineage
    return found


def read_of(world: World, origin: str) -> dict[str, tuple[int, Lineage]]:
    """How far each subscription has read a journal, on the disk of its home, with the lineage; by identity."""
    return {
        kept.identity: (kept.position[origin], kept.lineages[origin])
        for kept in _latest(world).values()
        if origin in kept.position and origin in kept.lineages
    }


def check_epochs(world: World, station: FaultyStation, message: object) -> None:
    """What carries an epoch leaves a broker only while that is in this epoch.

    Of several things that it handles together, what came before a change of the epoch leaves before that: no
    earlier epoch than that of what has left, and not the one in which it was when it tells a change.
    """
    if isinstance(message, TopologyChanged) and not station.has_told:
        station.has_told = True
        del station.epochs[:1]
    carried: tuple[Envelope | Mark, ...] = ()
    if isinstance(message, Forward):
        carried = message.envelopes
    elif isinstance(message, Marks):
        carried = message.marks
    for one in carried:
        epoch = station.router.epoch if station.router is not None else None
        if not one.epoch or epoch is None or one.epoch == epoch:
            continue
        if one.epoch in station.epochs:
            del station.epochs[: station.epochs.index(one.epoch)]
            station.has_told = False
        else:
            world.record.misdated.append((station.name, one.origin, one.sequence))


def describe_write(effect: StoreEffect) -> str:
    """A write, for a story."""
    match effect:
        case Append(_, (), _, records):
            return f"the records {', '.join(record.key for record in records)}"
        case Append(_, envelopes, _):
            entries = [f"{one.sequence} (n={one.notification['n']})" for one in envelopes]
            return f"the journal entries {', '.join(entries)}"
        case Spool():
            parts = [f"{effect.name}"]
            parts += [f"delivery {number} (n={one.notification['n']})" for number, _, one in effect.add]
            parts += [f"without {number}" for number in effect.remove]
            parts += [f"at {origin}#{sequence}" for origin, sequence in effect.position]
            return " ".join(parts)
        case _:
            return type(effect).__name__.lower()
