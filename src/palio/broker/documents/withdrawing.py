"""Withdrawing documents: a version that says that there is none any more.

Who withdraws a document publishes its name and `xml.withdrawn = true` where documents are published, and
nothing else. What is published in the end has the attributes of the version that was current: so whoever asked
for that document hears of its end, and whoever may publish it may withdraw it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from palio.broker.documents.errors import DocumentWithdrawn, NoSuchDocument
from palio.documents.reserved import FAMILY, KEY, WITHDRAWN
from palio.model.notification import Notification
from palio.routing.documents.pulling import CurrentDocuments

_NAMES = frozenset((FAMILY, KEY, WITHDRAWN))


def is_withdrawal(notification: Notification) -> bool:
    """Whether somebody wants to withdraw a document, and says nothing else."""
    if notification.payload is not None:  # as next to all bring: their attributes need not be looked at
        return False
    attributes = notification.attributes
    return (
        attributes.get(WITHDRAWN) is True
        and attributes.keys() == _NAMES
        and isinstance(attributes[FAMILY], str)
        and isinstance(attributes[KEY], str)
    )


class Withdrawing:
    """Reads what comes as a document: a withdrawal by what is current, all else with `read`; in any thread."""

    def __init__(
        self,
        read: Callable[[Notification], Notification],
        documents: Callable[[], CurrentDocuments],
        broker: str,
    ) -> None:
        """`documents` raises `NoJournal` where there can be none."""
        self._read = read
        self._documents = documents
        self._broker = broker

    def read(self, notification: Notification) -> Notification:
        """Raises `NoSuchDocument`, `DocumentWithdrawn`, `NoJournal`, and what reading documents does."""
        if not is_withdrawal(notification):
            return self._read(notification)
        family, key = notification.attributes[FAMILY], notification.attributes[KEY]
        assert isinstance(family, str)
        assert isinstance(key, str)
        found = self._documents().get(family, key)
        if found is None:
            raise NoSuchDocument(family, key, self._broker)
        id = found.envelope.notification.id
        if found.is_withdrawn and (id is None or id != notification.id):  # otherwise it is said again
            raise DocumentWithdrawn(family, key, found.envelope.origin, found.envelope.sequence)
        body = msgspec.structs.replace(
            notification.body,
            attributes=Notification.of_values(found.withdrawal).encode(),
        )
        return Notification.of_body(body)
