"""Publishers that want everything confirmed.

What was not confirmed in time is tried again, with the same id. What has no id is tried again only if it was
refused: otherwise it might be there already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palio.documents.reserved import FAMILY, KEY, REVISION, WITHDRAWN
from palio.model.advertisement import Advertisement
from palio.model.notification import Notification
from palio.protocol.requests import Advertise, Publish, Published, Refused
from palio.routing.documents.pulling import CurrentDocuments
from palio.routing.occurrences import Open
from palio.sim.faults.disk import RecordsOnDisk
from palio.sim.faults.record import WantedPublication
from palio.sim.faults.station import FaultyStation
from palio.sim.faults.steps import Say

if TYPE_CHECKING:
    from palio.sim.faults.world import World

_PATIENCE = 4.0  # seconds until a publisher tries again
_LOOK_AGAIN = 0.5  # seconds between two looks whether a broker is back
_EVERYTHING = Advertisement.parse("n *, kind *, v *")
_DOCUMENTS = Advertisement.parse(f"n *, kind *, v *, {FAMILY} *, {KEY} *, {REVISION} *, {WITHDRAWN} *")
_CARDS = "card"  # the family of all documents


def attributes_of(
    say: Say, number: int, kind: int, value: int, station: FaultyStation
) -> dict[str, Any] | None:
    """What is published; nothing if that would be the end of a document that is not there.

    The end of a document has the attributes of its current version, but for the number.
    """
    if say.withdraws:
        current = CurrentDocuments(RecordsOnDisk(station.disk)).get(_CARDS, say.key)
        if current is None or current.is_withdrawn:
            return None
        return current.withdrawal | {"n": number}
    plain = {"n": number, "kind": kind, "v": value}
    return plain | {FAMILY: _CARDS, KEY: say.key, REVISION: 1} if say.key else plain


class FaultPublisher:
    """Publishes at one broker."""

    def __init__(
        self, world: World, name: str, station: FaultyStation, *, advertises: bool, documents: bool = False
    ) -> None:
        """With `documents` it advertises these, too."""
        self.world = world
        self.name = name
        self.station = station
        self.advertises = advertises
        self.documents = documents
        self._open = False
        self._came = False
        self._request = 0
        self._backlog: list[Say] = []
        self._waiting: dict[int, Say] = {}
        self._ended: set[int] = set()  # by the number of the step

    def connect(self) -> None:
        """Open a session as soon as the broker is there."""
        self._came = True
        if self.station.is_gone:
            self._moves_on([])
            return
        if self._open:
            return
        if not self.world.is_open(self.station):
            self.world.after(_LOOK_AGAIN, self.connect)
            return
        self._open = True
        self._post(Open())
        if self.advertises:
            self._post(Advertise("everything", _EVERYTHING))
            if self.documents:
                self._post(Advertise("documents", _DOCUMENTS))
        backlog, self._backlog = self._backlog, []
        for say in backlog:
            self.say(say)

    def _post(self, message: Open | Advertise | Publish) -> None:
        self.world.post(self.station, message, self.name)

    def say(self, say: Say) -> None:
        """Publish, now or when the broker is back."""
        if say.number in self._ended or any(one is say for one in self._backlog):
            return
        if self.station.is_gone:
            self._moves_on([say])
            return
        if not self._open:
            self._backlog.append(say)
            if not self._came:
                self.connect()
            return
        world, record = self.world, self.world.record
        notifications = []
        for number, kind, value in say.contents:
            publication = record.publications.get(number)
            if publication is None:
                attributes = attributes_of(say, number, kind, value, self.station)
                if attributes is None:
                    self._refused(say)
                    return
                notification = Notification(
                    attributes,
                    id=f"id{number}" if say.identified else None,
                    priority=say.priority,
                    lifetime=say.lifetime,
                )
                publication = WantedPublication(self.name, self.station.name, notification, say.identified)
                record.publications[number] = publication
                publication.asked = record.tick()
            notifications.append(publication.notification)
        self._request += 1
        self._waiting[self._request] = say
        world.note(self.name, f"publishes {say.named} (request {self._request})", *say.numbers)
        self._post(Publish(tuple(notifications), self._request))
        if say.identified:
            world.after(_PATIENCE * (0.5 + world.chance("patience", say.number)), self._again, say)

    def _refused(self, say: Say) -> None:
        """There is no such document that could be withdrawn."""
        self._ended.add(say.number)
        self.world.note(self.name, f"cannot withdraw {say.key} at {self.station.name}", *say.numbers)

    def _again(self, say: Say) -> None:
        if self._open and say.number not in self._ended:
            self.say(say)

    def answered(self, answer: object) -> None:
        record = self.world.record
        match answer:
            case Published(request, origin, sequence):
                say = self._waiting.pop(request, None)
                if say is None:
                    return
                self._ended.add(say.number)
                self.world.note(self.name, f"is told that {say.named} is {origin}#{sequence}", *say.numbers)
                for offset, number in enumerate(say.numbers):
                    publication = record.publications[number]
                    name = (origin, sequence + offset)
                    if publication.name is None:
                        publication.name = name
                        publication.confirmed = record.moment
                    written = record.written.get(name)
                    if written is None or written.notification["n"] != number or publication.name != name:
                        record.confirmed_unwritten.append((*name, number))
            case Refused(error="BrokerLeaves") if answer.kind == "publish":
                say = self._waiting.pop(answer.number, None)
                self._moves_on([say] if say is not None else [])
            case Refused(error=error) if answer.kind == "publish":
                say = self._waiting.pop(answer.number, None)
                if say is not None:
                    self.world.note(self.name, f"is refused {say.named}: {error}", *say.numbers)
                    self.world.after(1.0, self.say, say)

    def _moves_on(self, says: list[Say]) -> None:
        """The broker leaves: what is not confirmed is published elsewhere."""
        says, self._backlog = [*self._backlog, *says], []
        elsewhere = self.world.clients.elsewhere(self)
        for say in says:
            if say.number not in self._ended:
                self._ended.add(say.number)
                self.world.after(1.0, elsewhere.say, say)

    def lost(self) -> None:
        """The broker crashed, or has left."""
        self._open = False
        if self.station.is_gone:
            says, self._waiting = list(self._waiting.values()), {}
            self._moves_on([say for say in says if say.identified])
            return
        for say in self._waiting.values():
            if say.identified and not any(one is say for one in self._backlog):
                self._backlog.append(say)
        self._waiting.clear()
        self.world.after(_LOOK_AGAIN, self.connect)

    def unanswered(self) -> list[str]:
        found = [*self._backlog, *self._waiting.values()]
        return [
            f"{self.name} has no answer about {say.named}"
            for say in found
            if say.identified and say.number not in self._ended
        ]
