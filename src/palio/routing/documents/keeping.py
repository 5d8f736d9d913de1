"""`KeptDocuments`: what a broker keeps of the documents of others, and how far it has heard of them.

    durable subscription ──deliveries──> records `document.kept` ──on disk──> acknowledged

1. A keeper is told of all versions of every document that may be selected, also of those that are not: what a
   document is called never changes, so only conditions on that are asked for (`widened`). A version that the
   filter does not select takes the place of one that it does, without its content.
2. What comes again changes nothing (`current`, 2), so all brokers with the same filter that have heard the same
   keep the same.
3. How far a journal was heard of (`heard`) is what the durable subscription here knows: all up to there is on
   disk, or was not selected. For what was handed out is acknowledged once it is on disk.
4. With another filter all is begun anew: what was kept goes, and the subscription with it. Until that is done
   nothing was heard of.

Keeping is a conversation (`keep`): a generator that says what it wants done next, and is told what came of it.
A broker does these things with its store and a session of its own, the simulator with what it has for them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from palio.documents.reserved import FAMILY, KEY
from palio.model.conjunction import Conjunction
from palio.model.errors import PalioError
from palio.model.filter import Filter
from palio.protocol.deliveries import Handed
from palio.protocol.durable.retry import Patience
from palio.protocol.durable.subscriptions import Acknowledged, Attach, Finish, Taken
from palio.protocol.durable.wishes import LONGEST_WAIT, MAX_ATTEMPTS
from palio.protocol.envelope import Envelope
from palio.routing.documents.current import KEPT, Versions, document_name, record_key
from palio.routing.documents.pulling import KeyedRecords
from palio.routing.durable.effects import KeyedRecord

if TYPE_CHECKING:
    from palio.routing.durable.home.subscription import Durable

STATE: Final = "document.keeping"  # the record that says which filter is kept, under which name
IN_FLIGHT: Final = 64
_PAGE = 256  # records that go together when another filter is kept
_VERSIONS_OF_DOCUMENTS = Filter.parse(f"exists(string {FAMILY}) and exists(string {KEY})")
# It is no attempt that failed if the disk is full, and nothing is a dead letter.
_TAKER = Patience(in_flight=IN_FLIGHT, acknowledge_within=LONGEST_WAIT, attempts=MAX_ATTEMPTS)


# What a conversation wants done. A broker's refusal, and a record that was not kept, are raised in it.


class AskBroker(msgspec.Struct, frozen=True):
    """A request to the broker, as a client's; its answer is waited for."""

    request: Attach | Finish


class TellBroker(msgspec.Struct, frozen=True):
    """A message that has no answer."""

    message: Acknowledged


class AwaitMessage(msgspec.Struct, frozen=True):
    """The next message that comes from the broker."""


class LookUp(msgspec.Struct, frozen=True):
    """Something to be found out from what is on disk."""

    look: Callable[[KeyedRecords], Any]


class WriteRecords(msgspec.Struct, frozen=True):
    """Records that are to be on disk before anything else."""

    records: tuple[KeyedRecord, ...]


KeepingWish: TypeAlias = AskBroker | TellBroker | AwaitMessage | LookUp | WriteRecords


def widened(keep: Filter) -> Filter:
    """All versions of documents that a filter may select one version of (1)."""
    boxes = [
        Conjunction.of({name: box.sides[name] for name in (FAMILY, KEY) if name in box.sides})
        for box in keep.conjunctions
    ]
    return Filter(tuple(boxes)).intersect(_VERSIONS_OF_DOCUMENTS)


class KeptDocuments:
    """What a filter selects of the documents of others, at a broker of this name."""

    def __init__(
        self, keep: Filter, own: str, tell: Callable[[Envelope, str], None] = lambda envelope, record: None
    ) -> None:
        """`tell` hears of each version that is kept, and what its record is called."""
        self.filter = keep
        self._is_begun = False  # whether what is kept is what the filter selects, and not one before it
        self._tell = tell
        self._own = own
        self._wanted = widened(keep)

    def attach(self, name: str) -> Attach:
        """What the durable subscription is asked for by which documents come; it begins with all there is."""
        return Attach(name, self._wanted, since="all", in_flight=IN_FLIGHT, patience=_TAKER, as_is=True)

    def keep(self, name: str, known_as: str) -> Generator[KeepingWish, Any, None]:
        """Keep documents by a durable subscription of this name until another taker has it.

        The broker knows it under another name where principals have names of their own.
        """
        state = KeyedRecord(STATE, known_as, self.filter.form)
        if (yield LookUp(lambda records: records.record(STATE, known_as))) != state.value:
            yield from self._begin_anew(name, state)
        self._is_begun = True
        yield AskBroker(self.attach(name))
        while not isinstance(message := (yield AwaitMessage()), Taken):
            if isinstance(message, Handed):
                envelopes = [envelope for _, _, envelope in message.deliveries]
                if changed := (yield LookUp(partial(self._changed, envelopes))):
                    yield WriteRecords(tuple(changed))
                yield TellBroker(Acknowledged(name, tuple([number for number, _, _ in message.deliveries])))

    def _begin_anew(self, name: str, state: KeyedRecord) -> Generator[KeepingWish, Any, None]:
        """What another filter has kept goes (4)."""
        with suppress(PalioError):  # there is none
            yield AskBroker(Attach(name, None))
            yield AskBroker(Finish(name))
        while page := (yield LookUp(lambda records: records.records(KEPT, limit=_PAGE))):
            yield WriteRecords(tuple([KeyedRecord(KEPT, one.key, None) for one in page]))
        yield WriteRecords((state,))

    def _changed(self, envelopes: list[Envelope], records: KeyedRecords) -> list[KeyedRecord]:
        return self.changes(records.record, envelopes)

    def changes(
        self, record: Callable[[str, str], bytes | None], envelopes: Iterable[Envelope]
    ) -> list[KeyedRecord]:
        """The records that change by what was heard; `record` looks one up, by its kind and key."""
        changed: dict[str, Versions] = {}
        before: dict[str, Versions] = {}
        for envelope in envelopes:
            name = document_name(envelope.notification)
            if name is None or envelope.origin == self._own:  # what was published here has its own record
                continue
            key = record_key(*name)
            if key not in changed:
                before[key] = changed[key] = Versions.of(record(KEPT, key))
            versions = changed[key].with_version(envelope, self.filter)
            if versions is not changed[key] and self.filter.matches(envelope.notification):
                self._tell(envelope, key)
            changed[key] = versions
        return [
            KeyedRecord(KEPT, key, versions.encoded)
            for key, versions in changed.items()
            if versions is not before[key]
        ]

    def heard(self, durable: Durable | None, origin: str) -> int | None:
        """Up to which sequence all is kept that is to be kept of a broker; None if it is not heard of (3)."""
        if durable is None or not self._is_begun or origin not in durable.stored_position:
            return None
        waiting = [
            one.envelope.sequence for one in durable.outbox.deliveries.values() if one.envelope.origin == origin
        ]
        return min([durable.stored_position[origin][0], *[sequence - 1 for sequence in waiting]])
