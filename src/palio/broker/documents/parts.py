"""`DocumentParts`: what a broker does with XML documents, each part for itself.

families ──told──> readers, completions     what is known of families, and who reads by it
publishing ──> stages ──> readers           documents of clients become notifications
publishing ──> queue ──> publishing         documents that wait for stages, which nobody waits for
knowledge, selections, publishers           what clients ask
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING

from palio.broker.documents.completing import DocumentCompletions
from palio.broker.documents.knowledge import KnowledgeBase
from palio.broker.documents.outlived import OutlivedDocuments
from palio.broker.documents.publishers import PublisherRequests
from palio.broker.documents.publishing import DocumentPublishing
from palio.broker.documents.readers import FamilyReaders
from palio.broker.documents.registrations import PublisherRegistrations
from palio.broker.documents.registry import FamilyRegistry
from palio.broker.documents.requests import FamilyRequests
from palio.broker.documents.sampling import DocumentSampling
from palio.broker.documents.selecting import SelectionReading
from palio.broker.documents.staging import DocumentStaging
from palio.broker.documents.withdrawing import Withdrawing
from palio.broker.documents.workers import DocumentWorkers
from palio.broker.extension import Extension
from palio.documents.stages import load_stages
from palio.routing.clients import NoJournal
from palio.routing.documents.pulling import CurrentDocuments

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer
    from palio.broker.documents.handing_on import HandedOnDocuments
    from palio.broker.intake import Intake
    from palio.broker.request_guard import RequestGuard
    from palio.documents.records import KnownFamily


class DocumentParts:
    """All of them, for one broker."""

    def __init__(
        self, broker: BrokerServer, completions: DocumentCompletions, guard: RequestGuard, intake: Intake
    ) -> None:
        settings = broker.settings.documents
        self._broker = broker
        self.completions = completions  # what is read again of documents that are older than a path
        self.outlived = OutlivedDocuments(
            lambda: broker.store, completions.envelope, broker.storing.take, broker.log
        )
        self.readers = FamilyReaders(settings)
        self.families = FamilyRegistry(broker.sharing, self._tell)
        self.publishers = PublisherRequests(PublisherRegistrations(broker.sharing, self.families))
        self.knowledge = KnowledgeBase(broker)
        self.selections = SelectionReading(self.families, broker.settings.limits.steps)
        waiting = list(takewhile(attrgetter("waits"), settings.stages))
        later = settings.stages[len(waiting) :]
        self._queue: HandedOnDocuments | None = None
        if later:
            from palio.broker.documents.handing_on import HandedOnDocuments  # noqa: PLC0415 (next to nobody has it)

            self._queue = HandedOnDocuments(broker, settings.queue)
        self.publishing = DocumentPublishing(
            DocumentWorkers(settings.workers, broker.scheduler.owe, broker.storing.together),
            DocumentStaging(
                load_stages(later or settings.stages),
                Withdrawing(self.readers.read, self.current, broker.settings.name).read,
            ),
            self.publishers.registrations.require,
            guard,
            intake,
            before=DocumentStaging(load_stages(waiting), lambda staged: staged),
            queue=self._queue,
        )

    async def begin(self) -> None:
        """Reads what is known already, and hears of changes from now on."""
        self.families.begin()
        self.publishers.registrations.begin()
        if self._queue is not None:
            await self._queue.read()

    @property
    def has_queue(self) -> bool:
        """Whether documents that were confirmed may wait here to be published."""
        return self._queue is not None

    @property
    def waiting_bytes(self) -> int | None:
        """Bytes of documents that wait for stages; None where nobody waits so."""
        return None if self._queue is None else self._queue.waiting

    def stop(self) -> None:
        """Nothing more is read or made."""
        if self._queue is not None:
            self._queue.stop()
        self.publishing.stop()
        self.families.stop()

    def extensions(self) -> Iterator[Extension]:
        """What clients may ask."""
        broker = self._broker
        sampling = DocumentSampling(lambda: broker.store)
        http = broker.settings.http != "off"
        yield FamilyRequests(self.families, sampling.take, broker.log).extension(http=http)
        yield self.publishers.extension()
        yield self.knowledge.extension()
        yield self.selections.extension()
        if self._queue is not None:
            yield Extension(name="stages that nobody waits for", start=self._queue.start)

    def current(self) -> CurrentDocuments:
        """The current documents that are known here. Raises `NoJournal`."""
        if self._broker.store is None:
            raise NoJournal
        return CurrentDocuments(self._broker.store, self.completions.envelope)

    def _tell(self, families: Sequence[KnownFamily]) -> None:
        self.readers.tell(families)
        self.completions.tell(families)
