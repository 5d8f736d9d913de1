"""Departures: brokers that an operator lets leave the network, in order and for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.routing.durable.leaving import CannotLeave
from palio.sim.faults.inspection import note_departure
from palio.sim.faults.station import REDIAL, FaultyStation

if TYPE_CHECKING:
    from palio.sim.faults.world import World


def depart(world: World, station: FaultyStation) -> None:
    """An operator lets a broker leave, as soon as it is there and can."""
    station.departs = True
    if station.router is None:
        return  # when it is back
    if not world.is_open(station):
        world.after(REDIAL, depart, world, station)
        return
    try:
        effects = station.router.leave("", station.clock(world.now), parting=True)
    except CannotLeave as problem:
        world.note(station.name, f"cannot leave: {problem}")
        world.after(REDIAL, depart, world, station)
        return
    world.carry_out(station, effects)


def stay(world: World, station: FaultyStation) -> None:
    """An operator lets a broker stay after all, if it is not too late."""
    if station.departs and station.router is not None:
        try:
            effects = station.router.stay(station.clock(world.now))
        except CannotLeave:
            return
        station.departs = False
        world.carry_out(station, effects)


def end_departure(world: World, station: FaultyStation, life: int) -> None:
    """A broker has left, and ends."""
    if station.life != life:
        return
    note_departure(world, station)
    world.note(station.name, "has left the network")
    station.is_gone = True
    world.crash(station, 1.0, 0.0)
