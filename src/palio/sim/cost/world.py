"""`MeasuredWorld`: the world of the fault simulator, with a count of all that is sent, written and read.

Disks commit in groups: all that waits when a write begins is on disk when it ends. Reading takes longer the
more entries of the journal are looked at. Links have latencies and all the bandwidth that is wanted; brokers
need no time to think.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from palio.protocol.durable.letters import Carry
from palio.protocol.durable.peers import Ask, Marks, Told
from palio.protocol.encoding import encode
from palio.protocol.peers import Forward
from palio.routing.durable.effects import Append, Read, SaveFact, Spool
from palio.routing.effects import Deliver
from palio.routing.occurrences import Found, StoreMessage
from palio.sim.faults.station import DISK_EACH, FaultyStation
from palio.sim.faults.world import World

READ_EACH = 0.000_01  # seconds to decode an entry of the journal and to match a filter with it

_KINDS: dict[type, str] = {
    Forward: "forward",
    Marks: "mark",
    Carry: "letter",
    Ask: "question",
    Told: "question",
}
_WRITES: dict[type, str] = {
    Append: "appends",
    Spool: "spool_writes",
    SaveFact: "cursor_writes",
    Read: "journal_reads",
}


class MeasuredWorld(World):
    """A world that counts. `counts` has the names of the fields of an outcome."""

    most_events = 1 << 60

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.counts: Counter[str] = Counter()
        super().__init__(*arguments, **settings)

    def _look(self, station: FaultyStation) -> None:
        pass  # what is in memory is for runs with faults to judge

    def begin(self, station: FaultyStation) -> None:
        super().begin(station)
        if self.clients is not None:
            self.clients.back(station.name)

    def _send(self, station: FaultyStation, broker: str, message: Any) -> None:
        kind = _KINDS.get(type(message), "link")
        size = len(encode(message))
        counts = self.counts
        counts["messages"] += 1
        counts["bytes"] += size
        counts[f"{kind}_messages"] += 1
        counts[f"{kind}_bytes"] += size
        super()._send(station, broker, message)

    def _carry_out_one(self, station: FaultyStation, effect: Any) -> None:
        if isinstance(effect, Deliver):
            self.clients.delivered(effect)
            return
        if type(effect) in _WRITES:
            self.counts[_WRITES[type(effect)]] += 1
        super()._carry_out_one(station, effect)

    def _written(self, station: FaultyStation, life: int) -> None:
        if station.life != life:
            return
        for _ in range(station.group):
            if (message := self._complete(station)) is not None:
                self._tell(station, [message])
        station.writing = False
        self._write_next(station)

    def _write_next(self, station: FaultyStation) -> None:
        if not station.writing:
            disk = station.disk
            station.group = len(disk.queue)
            reads = [effect for effect in disk.queue if isinstance(effect, Read)]
            entries = sum(min(read.upto, disk.head) - max(read.after, disk.trimmed) for read in reads)
            station.disk_each = DISK_EACH + READ_EACH * entries
        super()._write_next(station)

    def _complete(self, station: FaultyStation) -> StoreMessage | None:
        effect = station.disk.queue[0]
        message = super()._complete(station)
        if isinstance(effect, Read) and isinstance(message, Found):
            self.counts["entries_read"] += max(0, message.upto - effect.after)
        return message
