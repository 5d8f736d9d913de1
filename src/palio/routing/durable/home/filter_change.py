"""Changing filters: what of a filter the network knows, and how another one takes its place.

A new filter takes the place of the old one at a position that all origins have agreed on (`catch_up`): up to
there the old one gets everything, from there on the new one. Until then the network knows both.
"""

from __future__ import annotations

from dataclasses import dataclass

from palio.model.filter import Filter
from palio.protocol.durable.subscriptions import Change, Changed
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.home.handing import HandingOut
from palio.routing.durable.home.homes import FilterChange, Homes
from palio.routing.durable.home.spool import Spooling
from palio.routing.durable.home.subscription import Durable, HomeState
from palio.routing.durable.home.writing import Writing
from palio.routing.scopes import owner_of
from palio.routing.tables import Side


@dataclass(eq=False, repr=False)
class FilterChanges:
    """The filters of the subscriptions here. `settling` is set when the network has to agree on one."""

    _desk: Desk
    _homes: Homes
    _writing: Writing
    _filters: Side[Filter]
    _handing: HandingOut
    _spooling: Spooling
    _settling: Alarm

    def hold(self, holder: Durable | FilterChange, filter: Filter, name: str) -> None:
        """Let the network know of what of a filter its owner may see, in the place of what the holder had."""
        former = holder.entry
        narrow = self._desk.scopes.narrow(name, filter)
        if former is not None and former.item == narrow:
            return
        holder.entry = self._filters.hold(narrow, holder) if narrow.conjunctions else None
        if former is not None:
            self._filters.let_go(former, holder)

    def let_go(self, durable: Durable) -> None:
        """Withdraw the filters of a subscription from the network: nobody has to know of them any more."""
        if durable.entry is not None:
            self._filters.let_go(durable.entry, durable)
        self.give_up(durable)

    def scope_changed(self, owner: str) -> bool:
        """Handles a change of rights: what comes after the present positions is looked at anew.

        Returns whether there is anything of that owner.
        """
        found = False
        for name, durable in self._homes.subscriptions.items():
            if owner_of(name) == owner and durable.state in (HomeState.BEHIND, HomeState.LIVE):
                self.hold(durable, durable.filter, name)
                change = self._homes.changes.get(name)
                if change is not None:
                    self.hold(change, change.filter, name)
                durable.stop()
                self._handing.pump(durable)
                found = True
        return found

    def change(self, session: str, message: Change) -> None:
        """Let another filter take the place of the present one. Raises `NotTaker`."""
        durable = self._homes.of(session, message.name)
        message.filter.require_satisfiable()
        self.give_up(durable)
        change = self._homes.changes[message.name] = FilterChange(
            durable, message.filter, session, message.number
        )
        self.hold(change, message.filter, message.name)
        durable.interrupt()
        self._settling.set()

    def write(self, durable: Durable, change: FilterChange) -> None:
        """Writes the new filter, in force from the agreed position on; the old one has everything before."""
        if change.writing:
            return
        change.writing = True
        position = dict(durable.position)
        places = durable.places(position.items())

        def stored() -> None:
            durable.stored_position.update(places)
            if self._homes.changes.get(durable.name) is change:
                self._changed(durable, change)

        self._writing.subscription(durable, change.filter, stored, position=tuple(position.items()))

    def _changed(self, durable: Durable, change: FilterChange) -> None:
        former = durable.filter
        durable.filter = change.filter
        self.hold(durable, change.filter, durable.name)
        self.give_up(durable)
        if durable.taker is not None:
            drops, adds = change.filter.counterexample(former), former.counterexample(change.filter)
            dropped, added = drops.to_json() if drops else None, adds.to_json() if adds else None
            number = change.number if durable.taker == change.asker else 0
            answer = Changed(durable.name, dropped, added, durable.filter, number=number)
            self._desk.answer(durable.taker, answer)
        for origin, catching_up in list(durable.catching_up.items()):
            if origin in durable.catching_up and durable.position[origin] >= catching_up.target:
                del durable.catching_up[origin]
                self._spooling.drain(durable, origin, catching_up)

    def give_up(self, durable: Durable) -> None:
        """Gives up a change of a filter that is under way, if there is one."""
        change = self._homes.changes.pop(durable.name, None)
        if change is not None and change.entry is not None:
            self._filters.let_go(change.entry, change)
