"""The oracle of documents: what is the current version of each, by what was on disk, and who was told.

It knows what was published, at which broker, under which sequence and at what time of that broker; and says by
itself which version counts: where it was published the highest sequence, between brokers the later time, then
the name, then the sequence.

*Beginnings.* A subscription that begins with documents says up to where they go, by origin. Of all that was
published up to there each document has one current version, and with that it begins; with none if that is the
end of the document, or not wanted, or not kept at its broker. A version that has been superseded since may be
left out: what comes after the position comes by the subscription, all of it. Who was interrupted has begun once
more, and only the last beginning counts.

*Older disks, flipped bits.* A keeper may have heard of a later version that its origin has lost since, and
keeps that. What it could not hear of any more, it was told that it missed. A keeper whose own disk came back
older has forgotten what it was told; of what begins there, or with what such a disk had, nothing is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

from palio.model.filter import Filter
from palio.protocol.envelope import Envelope
from palio.sim.faults import document_violations as violations
from palio.sim.faults.oracle import is_named, was_damaged
from palio.sim.faults.record import NEVER, BegunDocuments, FaultRecord, Taking, number_of

Broken = Iterator[violations.DocumentPromise]
_Versions = dict[str, list[Envelope]]  # by key


def judge_documents(record: FaultRecord) -> list[violations.DocumentPromise]:
    """All promises about documents that a run broke."""
    if record.error or record.unquiet:
        return []
    return [broken for check in DOCUMENT_CHECKS for broken in check(record)]


def one_current_version_at_its_origin(record: FaultRecord) -> Broken:
    """Of what a broker has published of a document, the last version is the current one."""
    for broker, current in record.published_documents.items():
        versions = _versions(one for one in record.written.values() if one.origin == broker)
        for key in sorted({*versions, *current}):
            expected, found = _last(versions.get(key, [])), current.get(key)
            if not _same(found, expected):
                yield violations.WrongAtOrigin(**_about(expected), key=key, broker=broker, found=_said(found))


def keepers_have_the_current_version(record: FaultRecord) -> Broken:
    """A broker that keeps documents of the whole network has the current version of each that it keeps."""
    versions = _versions(record.written.values())
    for broker, keep in record.keeping.items():
        if broker in {older.broker for older in record.older}:
            continue
        current = record.current_documents[broker]
        for key in sorted({*versions, *current}):
            expected, found = _current(versions.get(key, []), broker, keep), current.get(key)
            excused = _was_lost_later(record, key, expected) or _was_named(
                record, broker, versions.get(key, [])
            )
            if not _same(found, expected) and not excused:
                about = _about(expected) | {"broker": broker, "filter": str(keep) or "true"}
                yield violations.WrongAtKeeper(**about, key=key, found=_said(found))


def keepers_agree(record: FaultRecord) -> Broken:
    """Brokers that keep all documents take the same versions for the current ones."""
    if record.older or record.flipped or record.flipped_deliveries:
        return
    everything = [broker for broker, keep in record.keeping.items() if keep == Filter()]
    for one, other in combinations(everything, 2):
        here, there = record.current_documents[one], record.current_documents[other]
        for key in sorted({*here, *there}):
            if not _same(here.get(key), there.get(key)):
                about = _about(there.get(key)) | {"broker": one, "other": other}
                yield violations.KeepersDisagree(**about, key=key, found=_said(here.get(key)))


def beginnings_are_of_one_position(record: FaultRecord) -> Broken:
    """Who begins with documents gets each in the version that was current at the position, once."""
    set_back = {older.broker for older in record.older}
    for taking, reading in _begun(record):
        position = reading.beginning.position
        if set_back.intersection(position):
            continue
        versions = _versions(record.written.values())
        given = _versions(reading.documents)
        keep = None if reading.beginning.keep is None else Filter.parse(reading.beginning.keep)
        for key in sorted({*versions, *given}):
            within = [one for one in versions.get(key, []) if one.sequence <= position.get(one.origin, -1)]
            expected = _current(within, reading.beginning.broker, keep)
            if expected is not None and not _is_wanted(expected, reading.filter):
                expected = None
            about = {"session": taking.name, "key": key, **_about(expected)}
            if len(given.get(key, [])) > 1:
                yield violations.TwoBeginnings(**about)
            elif key in given and not _same(given[key][0], expected):
                yield violations.WrongBeginning(**about, found=_said(given[key][0]))
            elif _was_named(record, reading.beginning.broker, versions.get(key, [])):
                continue
            elif key not in given and expected is not None and len(within) == len(versions[key]):
                yield violations.DocumentLost(**about)


def what_follows_documents_comes(record: FaultRecord) -> Broken:
    """Who begins with documents gets all that was published after the position, documents or not."""
    set_back = {older.broker for older in record.older}
    for taking, reading in _begun(record):
        beginning = reading.beginning
        handed = [one.envelope for one in record.handings if one.seen and one.name == taking.name]
        came = {(one.origin, one.sequence) for one in handed if not beginning.has(one)}
        for name, envelope in sorted(record.written.items()):
            origin, sequence = name
            upto = beginning.position.get(origin)
            if (
                origin in set_back
                or taking.name in record.set_back
                or was_damaged(record, taking, number_of(envelope))
            ):
                continue
            if upto is None or sequence <= upto or not reading.filter.matches(envelope.notification):
                continue
            if name not in came and envelope.notification.lifetime is None:
                about = _about(envelope) | {"session": taking.name, "key": ""}
                yield violations.LostAfterDocuments(**about, origin=origin, upto=upto)


DOCUMENT_CHECKS: tuple[Callable[[FaultRecord], Broken], ...] = (
    one_current_version_at_its_origin,
    keepers_have_the_current_version,
    keepers_agree,
    beginnings_are_of_one_position,
    what_follows_documents_comes,
)


def _begun(record: FaultRecord) -> Iterator[tuple[Taking, BegunDocuments]]:
    """Subscriptions that began with documents and are there to the end, with their last beginning."""
    for name, readings in record.beginnings.items():
        taking = record.takings[name]
        if taking.ending == NEVER and name not in record.given_up and readings[-1].done:
            yield taking, readings[-1]


def _was_lost_later(record: FaultRecord, key: str, current: Envelope | None) -> bool:
    """Whether a later version was on a disk that came back without it."""
    lost = _versions(one for several in record.gone.values() for one in several).get(key, [])
    return any(current is None or _order(one) > _order(current) for one in lost)


def _was_named(record: FaultRecord, broker: str, versions: list[Envelope]) -> bool:
    """Whether a keeper was told that it has missed a version."""
    taking = record.takings_of_keepers.get(broker)
    if taking is None:
        return False
    return any(
        was_damaged(record, taking, number_of(one)) or is_named(taking, (one.origin, one.sequence))
        for one in versions
    )


def _versions(envelopes: Iterable[Envelope]) -> _Versions:
    found: _Versions = {}
    for one in envelopes:
        key = one.notification.attributes.get("xml.key")
        if isinstance(key, str):
            found.setdefault(key, []).append(one)
    return found


def _last(versions: list[Envelope]) -> Envelope | None:
    """The last of the versions that one broker has published."""
    return max(versions, key=lambda one: one.sequence, default=None)


def _current(versions: list[Envelope], broker: str, keep: Filter | None) -> Envelope | None:
    """The current version at a broker that keeps what a filter selects of others; nothing, without one."""
    own = _last([one for one in versions if one.origin == broker])
    others = [] if keep is None else [one for one in versions if one.origin != broker]
    known = others if own is None else [*others, own]
    current = max(known, key=_order, default=None)
    if current is None or current.origin == broker:
        return current
    return current if keep is not None and keep.matches(current.notification) else None


def _order(version: Envelope) -> tuple[float, str, int]:
    return version.time, version.origin, version.sequence


def _same(one: Envelope | None, other: Envelope | None) -> bool:
    """Whether both are the same version; they may have come by other ways."""
    if one is None or other is None:
        return one is other
    names = [(version.origin, version.sequence, version.time) for version in (one, other)]
    return names[0] == names[1] and one.notification == other.notification


def _is_wanted(version: Envelope, filter: Filter) -> bool:
    is_withdrawn = version.notification.attributes.get("xml.withdrawn") is True
    return not is_withdrawn and filter.matches(version.notification)


def _about(version: Envelope | None) -> dict[str, Any]:
    if version is None:
        return {}
    return {"number": number_of(version), "notification": (version.origin, version.sequence)}


def _said(version: Envelope | None) -> str:
    return "none" if version is None else f"n={number_of(version)} ({version.origin}#{version.sequence})"
