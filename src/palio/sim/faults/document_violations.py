"""Violations of what is promised of documents. Each kind is a broken promise, `str` of it is a sentence."""

from __future__ import annotations

from palio.sim.faults.violations import BrokenPromise


class DocumentPromise(BrokenPromise, frozen=True, kw_only=True):
    """The base of all; `key` is that of the document, `number` that of the version that it should be."""

    key: str

    @property
    def _it(self) -> str:
        return "none" if self.number is None else super()._it


class WrongAtOrigin(DocumentPromise, frozen=True, kw_only=True):
    sentence = "Of what {broker} has published as {key}, {found} is the current version, and should be {it}."
    broker: str
    found: str


class WrongAtKeeper(DocumentPromise, frozen=True, kw_only=True):
    sentence = "{broker} keeps `{filter}` and has {found} as the current version of {key}, which is {it}."
    broker: str
    filter: str
    found: str


class KeepersDisagree(DocumentPromise, frozen=True, kw_only=True):
    sentence = "{broker} and {other} keep the same, and take {found} and {it} for the current version of {key}."
    broker: str
    other: str
    found: str


class WrongBeginning(DocumentPromise, frozen=True, kw_only=True):
    sentence = "{session} began with {found} as the current version of {key}, which was {it}."
    found: str


class TwoBeginnings(DocumentPromise, frozen=True, kw_only=True):
    sentence = "{session} began with the document {key} twice."


class DocumentLost(DocumentPromise, frozen=True, kw_only=True):
    sentence = "{session} began with the current documents, and never got {key}, which was {it}."


class LostAfterDocuments(DocumentPromise, frozen=True, kw_only=True):
    sentence = "{session} began with the documents up to {upto} of {origin}, and {it} after them never came."
    origin: str
    upto: int
