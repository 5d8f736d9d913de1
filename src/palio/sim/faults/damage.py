"""Damage: disks that come back older than they were, and disks of which bits flip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.sim.faults.disk import Disk
from palio.sim.faults.inspection import ahead_of, has_gone_on, read_of
from palio.sim.faults.record import OlderDisk, number_of
from palio.sim.faults.station import DiskCopy, FaultyStation

if TYPE_CHECKING:
    from palio.sim.faults.world import World


def copy_disk(world: World, station: FaultyStation) -> DiskCopy:
    """What is on a disk now, to be put back later."""
    world.observe(station)
    return DiskCopy(station.disk.copied(), world.record.written_at(station.name))


def come_back_older(world: World, station: FaultyStation, copy: DiskCopy | None, down: float) -> None:
    """A broker crashes, and its disk comes back as it was when it was copied, or empty."""
    world.crash(station, 1.0, down)
    former = station.disk
    disk, written = (Disk(), {}) if copy is None else (copy.disk.copied(), copy.written)
    disk.full = former.full
    station.disk = disk
    if copy is None and len(world.members) > 1:
        world.emptied.add(station.name)
    record = world.record
    for name in station.hosted:
        if has_gone_on(world, name, former):
            record.copied.add(name)
        else:
            record.set_back[name] = record.moment
    read = read_of(world, station.name)
    older = OlderDisk(record.moment, station.name, former.lineage, ahead_of(world, station), read)
    record.came_back(older, written)
    counts = f"with {disk.head} events instead of {former.head}"
    world.note(station.name, f"has a disk that came back older, {counts}")


def flip(world: World, station: FaultyStation, share: float, number: int) -> None:
    """Bits flip on a disk: in a share of the events that are there, and of the deliveries that wait."""
    world.observe(station)
    disk, record, flipped = station.disk, world.record, []
    for sequence in disk.journal:
        if world.chance("flip", number, station.name, sequence) < share:
            disk.flip(sequence)
            record.flipped.add((station.name, sequence))
            flipped.append(f"event {sequence}")
    for name, kept in disk.subscriptions.items():
        for delivery, (_, envelope) in kept.spool.items():
            if world.chance("flip", number, name, delivery) < share:
                disk.flip_delivery(name, delivery)
                known = record.flipped_deliveries.setdefault(name, set())
                known.add((delivery, number_of(envelope)))
                flipped.append(f"delivery {delivery} of {name}")
    world.note(station.name, f"has damaged: {', '.join(flipped) or 'nothing'}")
