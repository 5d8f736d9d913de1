"""What can be wrong with asking for current documents, as sentences."""

from __future__ import annotations

from palio.model.errors import PalioError, cut


class NoSuchDocument(PalioError):
    """A broker has no current document of this family and key, or not for who asks."""

    family: str = cut(100)
    key: str = cut(300)
    broker: str
    sentence = (
        "{broker} has no current document {key!r} of the family {family!r}. It has what was published there, "
        "and of other brokers what `[documents] keep` selects."
    )


class DocumentWithdrawn(PalioError):
    """A document that there was; `origin` and `sequence` name the version that says so."""

    family: str = cut(100)
    key: str = cut(300)
    origin: str
    sequence: int
    sentence = "The document {key!r} of the family {family!r} was withdrawn by {origin}/{sequence}."


class NotHeardYet(PalioError):
    """What was published elsewhere and has not come here in time, or does not come here at all."""

    origin: str = cut(255)
    sequence: int
    broker: str
    seconds: float
    sentence = (
        "{broker} has not heard of {origin}/{sequence} within {seconds:g} seconds. Ask again, ask {origin}, or "
        "let it keep such documents (`[documents] keep`)."
    )


class TooManyDocuments(PalioError):
    """More documents than are looked through for one answer, most of which somebody may not see."""

    family: str = cut(100)
    limit: int
    sentence = (
        "The family {family!r} has more than {limit:,} documents, and what was published last is not for you; "
        "ask for a page of those that you may see (`GET /documents`)."
    )


class TooManyBeginnings(PalioError):
    """As many subscriptions of one owner as may be have not had all current documents."""

    limit: int
    sentence = (
        "{limit:,} subscriptions of yours have not had all documents that they begin with, as many as may be; "
        "let some of them come to their end, or end them."
    )


class WrongDocumentQuestion(PalioError):
    """A question about documents that cannot be answered."""

    reason: str
    sentence = "Documents cannot be asked for like that: {reason}"
