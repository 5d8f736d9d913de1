"""`FamilyReaders`: which family a document is of, and what is then read of it; in any thread.

A CloudEvent may have XML as its data. If these are a document of a family, they are read like any other, and
the event's own attributes stand beside what was read; otherwise it is the event that it always was.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from palio.broker.documents.settings import DocumentSettings
from palio.documents.family import Family, SchemaFile
from palio.documents.parsing import DocumentLimits, parse_document
from palio.documents.reading import DocumentReader, root_name
from palio.documents.records import FamilyRecord, KnownFamily
from palio.documents.schemas import read_sources
from palio.documents.validating import SchemaValidator
from palio.model.errors import InvalidNotification, PalioError, cut
from palio.model.formats import is_xml, media_type_of
from palio.model.notification import Notification
from palio.model.values import MAX_ATTRIBUTES
from palio.protocol.frames import require_deliverable

_SHOWN = 20  # families that are named to somebody whose document is of none


class NoFamily(PalioError):
    """A document whose root element is that of no family; `known` are some of those that there are."""

    root: str = cut(300)
    known: tuple[str, ...] = ()

    def sentence(self) -> str:
        there = f"There are {', '.join(self.known)}" if self.known else "There is none yet"
        return f"No family has documents with the root {self.root}. {there}; `palio family add` adds one."


class _LaterValidator:
    """A schema, compiled in the thread that first needs it, which may take a second."""

    def __init__(self, schemas: tuple[SchemaFile, ...]) -> None:
        self._schemas = schemas
        self._made: SchemaValidator | None = None
        self._lock = threading.Lock()

    def get(self) -> SchemaValidator | None:
        with self._lock:
            if self._made is None and self._schemas:
                self._made = SchemaValidator(read_sources(self._schemas))
            return self._made


class _LaterReader:
    """The reader of a family, made in the thread that first needs it."""

    def __init__(self, known: KnownFamily, limits: DocumentLimits, validator: _LaterValidator | None) -> None:
        self.known = known
        self.family = known.declared
        self.validator = validator or _LaterValidator(known.declared.schemas)
        self._limits = limits
        self._made: DocumentReader | None = None
        self._lock = threading.Lock()

    def get(self) -> DocumentReader:
        with self._lock:
            if self._made is None:
                self._made = DocumentReader(self.known.complete(), self._limits, self.validator.get())
            return self._made


class FamilyReaders:
    """Reads documents of all families that this broker knows. They are told in the event loop."""

    def __init__(self, settings: DocumentSettings) -> None:
        self._limits = DocumentLimits(size=settings.size)
        self._readers: dict[tuple[str, str], _LaterReader] = {}  # by the root; replaced as a whole

    def tell(self, families: Iterable[KnownFamily | Family]) -> None:
        """These are all families from now on; of two with the same root, the last one. What is being read is
        read as before.
        """
        before = {id(reader.known): reader for reader in self._readers.values()}
        same = {(reader.known.name, reader.known.basis): reader.validator for reader in self._readers.values()}
        made = [one if isinstance(one, KnownFamily) else KnownFamily(FamilyRecord("", one)) for one in families]
        readers = [
            before.get(id(one)) or _LaterReader(one, self._limits, same.get((one.name, one.basis)))
            for one in made
        ]
        self._readers = {(one.family.namespace, one.family.root): one for one in readers}

    def read(self, notification: Notification) -> Notification:
        """What a notification is, once the document that it brings has been read.

        Raises `DocumentRefused`, `DocumentTooLarge`, `NoFamily`, `InvalidNotification` and `EventTooLarge`.
        """
        is_event = is_cloudevent(notification)
        content = xml_data(notification) if is_event else notification.payload
        if content is None and is_event:
            return notification
        if content is None:
            raise InvalidNotification("payload", "There is no document.")
        readers = self._readers
        if is_event and not readers:
            return notification
        tree = parse_document(content, self._limits)
        reader = readers.get(root_name(tree))
        if reader is None and is_event:
            return notification
        if reader is None:
            known = sorted(one.family.name for one in readers.values())
            raise NoFamily(tree.getroot().tag, tuple(known[:_SHOWN]))
        attributes = dict(notification.attributes)
        if is_event:
            attributes.pop("data", None)
        found = reader.get().read_tree(tree, content).attributes
        for name in sorted(attributes.keys() & found.keys()):
            raise InvalidNotification(name, "This attribute comes from the document; call your own otherwise.")
        attributes |= found
        if len(attributes) > MAX_ATTRIBUTES:
            raise InvalidNotification("$", f"There are more than {MAX_ATTRIBUTES:,} attributes.")
        made = Notification.of_values(attributes)  # what was decoded, and what was read, is in its one form
        made.id, made.payload = notification.id, content
        made.lifetime, made.priority = notification.lifetime, notification.priority
        require_deliverable(made.body)
        return made


def is_cloudevent(notification: Notification) -> bool:
    return notification.attributes.get("specversion") == "1.0"


def brings_xml(notification: Notification) -> bool:
    """Whether it is a CloudEvent whose data are XML."""
    return is_cloudevent(notification) and xml_data(notification) is not None


def xml_data(event: Notification) -> bytes | None:
    """The data of a CloudEvent, if they are XML by their type."""
    kind = event.attributes.get("datacontenttype")
    if not isinstance(kind, str) or not is_xml(media_type_of(kind)):
        return None
    data = event.attributes.get("data")
    return data.encode() if isinstance(data, str) else event.payload
