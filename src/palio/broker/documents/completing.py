"""`DocumentCompletions`: documents that are older than a path of their family have it all the same, in history.

    Read ──with a wider filter──> store ──what it finds──> completed, and asked again ──> the core

Wherever a journal or its lake is read here (`since`, catching up, surveys, replays), what was read of a
document by an earlier state of its family is completed from the document itself (`documents.values`). So the
answer is the one that a family with these paths from the start would have given.

1. What the store is asked for is wider: conditions on paths are left out, as a document may turn out to satisfy
   them. What it finds is completed, and only then the filter that was meant is asked.
2. Completing takes a thread, and the core hears of what was found when it is done; as with pages of a lake,
   later answers may come before.
3. Nothing is done for what was published after the last change of a family, and a while (`SETTLED`): it was
   read with all paths. A broker that has just begun knows of no change before, and takes its own beginning for
   one.
4. A document that a family with these paths refuses stays as it was published.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from palio.broker.documents.settings import DocumentSettings
from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.family import Family
from palio.documents.parsing import DocumentLimits
from palio.documents.records import FamilyRecord, KnownFamily
from palio.documents.reserved import FAMILY
from palio.documents.values import FamilyCompletion
from palio.model.conjunction import Conjunction
from palio.model.errors import FilterTooLarge, PalioError
from palio.model.filter import Filter
from palio.model.formulas.formula import variables
from palio.model.notification import Notification
from palio.protocol.envelope import Envelope
from palio.routing.durable.effects import Read
from palio.routing.occurrences import Found, StoreMessage

# Seconds after which whatever was being read when a family changed has been published: as long as a request may
# take, twice over (a guess).
SETTLED: Final = 60.0
_WIDER = 256  # filters of which is remembered what they may select: pages of a journal ask for the same
_FAMILY = FAMILY.encode()
_ANYTHING = Filter()
_A_DOCUMENT = Filter.parse(f"exists(string {FAMILY})")


def _has_document(envelope: Envelope) -> bool:
    return _FAMILY in envelope.notification.body.attributes


class _AskedFor(msgspec.Struct, frozen=True):
    """The filter that was meant, and whether the store was asked for everything instead."""

    filter: Filter
    everything: bool

    def selects(self, envelope: Envelope) -> bool:
        """Whether it is meant. What is no document was found by the filter itself, unless by everything."""
        if not self.everything and not _has_document(envelope):
            return True
        return self.filter.matches(envelope.notification)


class _LaterCompletion:
    """What completes documents of a family, made in the thread that first needs it."""

    def __init__(self, known: KnownFamily, limits: DocumentLimits) -> None:
        self.known = known
        self._limits = limits
        self._lock = threading.Lock()
        self._made: FamilyCompletion | None = None

    def get(self) -> FamilyCompletion:
        with self._lock:
            if self._made is None:
                self._made = FamilyCompletion(self.known.complete(), self._limits)
            return self._made


class DocumentCompletions:
    """Completes what a broker finds in its journal. `head` says how far that is on disk."""

    def __init__(self, settings: DocumentSettings, head: Callable[[], int], now: Callable[[], float]) -> None:
        self._limits = DocumentLimits(size=settings.size)
        self._head = head
        self._now = now
        self._families: dict[str, _LaterCompletion] = {}  # replaced as a whole
        self._paths: frozenset[str] = frozenset()
        self._changed = now()
        self._settled_at: int | None = None  # from this sequence on, documents have all paths
        self._asked: dict[int, _AskedFor] = {}  # by token
        self._wider: dict[Filter, Filter] = {}

    def tell(self, families: Iterable[KnownFamily | Family]) -> None:
        """These are all families from now on."""
        made = [one if isinstance(one, KnownFamily) else KnownFamily(FamilyRecord("", one)) for one in families]
        before = {id(one.known): one for one in self._families.values()}
        if len(before) == len(made) and all(id(one) in before for one in made):
            return
        self._families = {one.name: before.get(id(one)) or _LaterCompletion(one, self._limits) for one in made}
        declared = [path.expression for one in made for path in one.declared.paths]
        self._paths = frozenset([*declared, *[added.path.expression for one in made for added in one.added]])
        self._changed, self._settled_at = self._now(), None
        self._wider = {}

    # Of the journal

    def asked(self, effect: Read) -> Read:
        """What the store is asked for instead (1)."""
        if not self._families or effect.after >= self._settled():
            return effect
        wider = self.widened(effect.filter)
        self._asked[effect.token] = _AskedFor(effect.filter, everything=wider is _ANYTHING)
        return msgspec.structs.replace(effect, filter=wider)

    def widened(self, filter: Filter) -> Filter:
        """All that the filter may select once documents are completed."""
        if not self._paths & filter.attributes:
            return filter
        if (known := self._wider.get(filter)) is not None:
            return known
        if len(self._wider) >= _WIDER:
            self._wider.clear()
        wider = self._wider[filter] = self._made_wider(filter)
        return wider

    def _made_wider(self, filter: Filter) -> Filter:
        boxes = []
        for box in filter.conjunctions:
            sides = {name: side for name, side in box.sides.items() if name not in self._paths}
            residuals = [one for one in box.residuals if not self._paths & variables(one.formula)]
            boxes.append(Conjunction.of(sides, tuple(residuals)))
        try:
            wider = filter.union(Filter(tuple(boxes)).intersect(_A_DOCUMENT))
            _ = wider.form
        except FilterTooLarge:
            return _ANYTHING
        return wider

    @property
    def is_under_way(self) -> bool:
        """Whether anything is to be completed."""
        return bool(self._asked)

    def is_meant(self, message: StoreMessage) -> bool:
        """Whether it is what was found for a request, and has to be completed before it is handled."""
        asked = self._asked.get(message.token)
        if asked is None:
            return False
        if type(message) is Found and (asked.everything or any(map(_has_document, message.envelopes))):
            return True
        del self._asked[message.token]
        return False

    async def found(self, message: Found) -> Found:
        """What was found, completed, of which the filter that was meant selects it."""
        return await asyncio.to_thread(self._completed, message, self._asked.pop(message.token))

    def _completed(self, message: Found, asked: _AskedFor) -> Found:
        completed = [self.envelope(one) for one in message.envelopes]
        wanted = tuple([one for one in completed if asked.selects(one)])
        return msgspec.structs.replace(message, envelopes=wanted)

    def _settled(self) -> int:
        if self._settled_at is None:
            if self._now() < self._changed + SETTLED:
                return self._head() + 1
            self._settled_at = self._head()
        return self._settled_at

    # Of anything

    def envelope(self, envelope: Envelope) -> Envelope:
        """An event with all that is known of its document, if it has one; in any thread."""
        if not _has_document(envelope):
            return envelope
        notification = self.notification(envelope.notification)
        if notification is envelope.notification:
            return envelope
        return msgspec.structs.replace(envelope, notification=notification)

    def notification(self, notification: Notification) -> Notification:
        family = notification.attributes.get(FAMILY)
        completion = self._families.get(family) if isinstance(family, str) else None
        if completion is None:
            return notification
        try:
            completed = completion.get().complete(notification.attributes, notification.payload)
        except (DocumentRefused, DocumentTooLarge, PalioError):
            return notification  # (4)
        if completed is None:
            return notification
        attributes = Notification.of_values(completed).encode()
        return Notification.of_body(msgspec.structs.replace(notification.body, attributes=attributes))
