"""The oracle: each promise of durable delivery is one check, by name. A check says what breaks the promise.

What a check needs to know of a run is in its `FaultRecord`. `CHECKS` names them all.

*Lives.* A client that has asked for the end of its subscription, and was not answered, does not know whether it
has ended. It attaches once more to end it, and that creates it anew where it had ended: another subscription of
the same name, with numbers of its own, which delivers once more what it finds. Nobody can promise otherwise
without remembering for ever what has ended. So what is promised about deliveries is promised of one *life*,
which is the identity that the subscription has at its home; and `nothing_begins_again` sees to it that there is
no other life before the client has asked for the end, so that nothing else hides behind this.

*Who joins.* A broker takes clients once it has heard of another one (`World.is_open`), by what it knows itself.
So does one whose disk came back empty. That other one must not be as new: two that have forgotten all and
meet know of nobody else, and would create anew what is at a home of which neither has heard.
From then on nothing is excused by its being new: what it confirms is judged by the filter that is in force,
also where its neighbours have crashed since, and their disks were full or slow when it came.

*Older disks.* What a broker confirms after its disk came back older comes to all subscriptions elsewhere, as
ever. What had been confirmed before and is not on the disk any more may be missing; but who had read what this
disk does not have, at its own home, is told that something may be. A subscription on such a disk is set back
with it: what it had done is not done, and its numbers are given once more. It gets all that is published when
it has been told again that it is ready. Who had gone on from where two lineages fork knows nothing of the
other one beyond that: if a disk brings it back, and loses it again before anybody has read there, nobody
could notice. A journal does not know those any more that became readers later; what it trims before it hears
of them is told to them, too.

A disk that came back older, and then once more with what was lost, has the former journal again. Homes that had
gone back to where both fork read on from there: what they had delivered comes again, and what they had passed
over (it was published before they began, or for another filter) may come for the first time, after what is
younger. So the order of what was found again is judged by what came since then.

The journal that is found again knows how far its readers were, and trims by that, also before it hears from
those that have gone back to the fork since, and would read once more what they had passed. They lose nothing by
it: a journal hears only of positions that are on disk, so they had all of that. It is no early trimming if a
home had read that far, in this very lineage and on its disk, when another journal took the place of this one.
What it passes over then it names all the same; and whether anything is lost is judged by itself, as ever.

*Who is forgotten.* It gives up what was published there, and the subscriptions that were ever at home there.

*Flipped bits.* What is not on a disk as it was written is never delivered. It may come from elsewhere: an event
to whoever got it live, a delivery from the memory of its home. To whom it does not come it is named: an event
by its sequence, when it is passed over, and a delivery by its number. Nothing else is missing for it.

*Copies.* A subscription that had gone on from there before, to a disk that is as it should be, loses nothing by
all that. What the older disk has of it is a copy, which may deliver things once more until it gives way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from palio.sim.faults import violations
from palio.sim.faults.record import NEVER, FaultRecord, Handing, Name, Taking, WantedPublication, number_of

Broken = Iterator[violations.BrokenPromise]
_Key = tuple[str, str, str, int, int]
_LONG = 5_000.0  # seconds; who lives longer than a run does not expire in it
_SET_AHEAD = 0.1  # seconds that a clock goes too fast between two attempts if it was set


def judge(record: FaultRecord) -> list[violations.BrokenPromise]:
    """All promises that a run broke, the worst first."""
    if record.error:
        return [violations.EndedWithError(error=record.error)]
    found = [broken for check in CHECKS for broken in check(record)]
    return [
        broken
        for broken in found
        if not _was_given_up(record, broken)
        and not _was_wanted_again(record, broken)
        and not _was_set_back(record, broken)
    ]


def _was_given_up(record: FaultRecord, broken: violations.BrokenPromise) -> bool:
    """Who begins anew, or was at a home that is forgotten, gives up what there was.

    Its old deliveries, filter and end count no more.
    """
    if broken.session not in record.given_up:
        return False
    if isinstance(broken, violations.WrongHomes):
        return record.takings[broken.session].ending != NEVER  # the end came to one of two
    return not isinstance(broken, violations.Unanswered | violations.Expired | violations.Ghost)


def _was_wanted_again(record: FaultRecord, broken: violations.BrokenPromise) -> bool:
    """Who wants everything once more gets it as if for the first time; nothing may be lost by it."""
    if broken.session not in record.takings or not record.takings[broken.session].rewound:
        return False
    return isinstance(
        broken, violations.AfterDone | violations.Disorder | violations.Unmarked | violations.TwoDeliveries
    )


def _was_set_back(record: FaultRecord, broken: violations.BrokenPromise) -> bool:
    """Whose disk came back older has forgotten what it had delivered and heard, and perhaps that it went on."""
    forgotten = (
        violations.AfterDone | violations.Disorder | violations.Unmarked | violations.TwoDeliveries
        | violations.OneDelivery | violations.BegunAgain | violations.DuringPause | violations.AfterEnd
        | violations.WrongHomes | violations.Outside
    )  # fmt: skip
    again = violations.AfterDone | violations.Unmarked | violations.TwoDeliveries
    if broken.number in record.found_again and isinstance(broken, again):
        return True  # its journal was another one meanwhile, and now is what it was
    return broken.session in record.copied.union(record.set_back) and isinstance(broken, forgotten)


def nothing_confirmed_is_lost(record: FaultRecord) -> Broken:
    """What is confirmed comes to each subscription that was ready before it was published."""
    for taking, number, publication in _missed(record):
        if publication.confirmed != NEVER and publication.asked > taking.ready:
            yield violations.LostNotification(session=taking.name, number=number, notification=publication.name)


def history_is_complete(record: FaultRecord) -> Broken:
    """Who asks for a history gets all of it that is not trimmed."""
    for taking, number, publication in _missed(record):
        if taking.since != "now" and publication.name is not None and publication.confirmed <= taking.ready:
            origin, sequence = publication.name
            if origin in record.left and record.forgotten_at[origin][1] < taking.ready:
                continue  # its journal went with it
            # A disk that came back older has forgotten what it had trimmed.
            had_more = any(older.broker == origin for older in record.older)
            if sequence > taking.ready_trimmed[origin] and not had_more:
                yield violations.HistoryLost(
                    session=taking.name, number=number, notification=publication.name, since=taking.since
                )


def nothing_outside_the_filter(record: FaultRecord) -> Broken:
    """A subscription gets only what a filter selects that is in force, or may be."""
    for handing in record.handings:
        publication = record.publications[_number(handing)]
        wishes = record.takings[handing.name].wishes_from(publication.asked)
        possible = [wish for wish in wishes if wish.asked < handing.moment]
        if not any(wish.filter.matches(handing.envelope.notification) for wish in possible):
            yield violations.Outside(**_about(handing), filter=str(wishes[0].filter))


def nothing_after_its_end(record: FaultRecord) -> Broken:
    """A subscription whose end was answered gets nothing more."""
    for handing in record.handings:
        if handing.moment > record.takings[handing.name].ended:
            yield violations.AfterEnd(**_about(handing))


def nothing_while_paused(record: FaultRecord) -> Broken:
    """A subscription that was told to be paused gets nothing until it has asked to go on."""
    for handing in record.handings:
        if any(begin < handing.moment < end for begin, end in record.takings[handing.name].halts):
            yield violations.DuringPause(**_about(handing))


def nothing_again_after_done(record: FaultRecord) -> Broken:
    """What was acknowledged, and that was answered, does not come again."""
    done: dict[_Key, int] = {}
    for handing in record.handings:
        when = record.done.get((handing.name, handing.delivery), NEVER)
        if handing.moment < when:
            done[_key(handing)] = when
    for handing in record.handings:
        if handing.moment > done.get(_key(handing), NEVER):
            yield violations.AfterDone(**_about(handing))


def first_deliveries_in_order(record: FaultRecord) -> Broken:
    """First deliveries keep the order of their publisher within a priority."""
    known: set[_Key] = set()
    # By what counts as one stream, and from which moment on.
    latest: dict[tuple[tuple[str, str, str, str, int], int], tuple[int, int]] = {}
    found_again = sorted(set(record.found_again.values()))
    for handing in record.handings:
        key = _key(handing)
        if key in known:
            continue
        known.add(key)
        publication = record.publications[_number(handing)]
        publisher, priority = publication.publisher, publication.notification.priority
        branch = record.branches.get((_name(handing), _number(handing)), 0)
        stream = (handing.name, handing.life, publisher, f"{handing.envelope.origin} {branch}", priority)
        found = record.found_again.get(_number(handing), 0)
        before = latest.get((stream, found if found < handing.moment else 0), (0, 0))
        if before[0] > handing.envelope.sequence:
            yield violations.Disorder(**_about(handing), after=before[1])
        for moment in (0, *found_again):
            if moment < handing.moment:
                this = handing.envelope.sequence, _number(handing)
                latest[stream, moment] = max(this, latest.get((stream, moment), this))


def redeliveries_are_marked(record: FaultRecord) -> Broken:
    """What comes again says so."""
    known: set[_Key] = set()
    for handing in record.handings:
        key = _key(handing)
        if key in known and handing.attempt < 2:
            yield violations.Unmarked(**_about(handing))
        known.add(key)


def one_number_for_one_event(record: FaultRecord) -> Broken:
    """At a subscription each event has one delivery number, and each number is of one event."""
    numbers: dict[_Key, int] = {}
    events: dict[tuple[str, str, int], Handing] = {}
    for handing in record.handings:
        delivery = numbers.setdefault(_key(handing), handing.delivery)
        if delivery != handing.delivery:
            yield violations.TwoDeliveries(**_about(handing), deliveries=(delivery, handing.delivery))
        first = events.setdefault((handing.name, handing.life, handing.delivery), handing)
        if _name(first) != _name(handing):
            yield violations.OneDelivery(**_about(handing), delivery=handing.delivery, other=_number(first))


def nothing_begins_again(record: FaultRecord) -> Broken:
    """A subscription stays the one that it is until its client wants it to end."""
    lives: dict[str, str] = {}
    for handing in record.handings:
        former = lives.get(handing.name, handing.life)
        lives[handing.name] = handing.life
        if former != handing.life and handing.moment < record.takings[handing.name].ending:
            yield violations.BegunAgain(**_about(handing))


def takers_are_connected(record: FaultRecord) -> Broken:
    """Who takes from a subscription is there."""
    for broker, name, taker in sorted(record.ghosts):
        yield violations.Ghost(session=name, broker=broker, taker=taker)


def published_once(record: FaultRecord) -> Broken:
    """What is published again with the same id, or after it was refused, is in the journals once."""
    places: dict[object, tuple[str, int]] = {}
    once_lost = {number_of(envelope) for envelopes in record.gone.values() for envelope in envelopes}
    for name, envelope in record.written.items():
        first = places.setdefault(envelope.notification["n"], name)
        # What was not confirmed before its broker left is published elsewhere.
        has_left = first[0] != name[0] and bool({first[0], name[0]} & record.left.keys())
        if first != name and number_of(envelope) not in once_lost and not has_left:
            yield violations.PublishedTwice(number=number_of(envelope), notification=first, other=name)


def sequences_are_given_once(record: FaultRecord) -> Broken:
    """A sequence that was on disk, or confirmed, is never given to another notification."""
    confirmed: dict[tuple[str, int], int] = {}
    for number, publication in record.publications.items():
        if publication.name is not None and publication.name not in record.gone:
            first = confirmed.setdefault(publication.name, number)
            if first != number:
                yield violations.SequenceReused(number=number, notification=publication.name, other=first)
    for origin, sequence, one, other in record.given_twice:
        yield violations.SequenceReused(number=other, notification=(origin, sequence), other=one)


def confirmed_is_on_disk(record: FaultRecord) -> Broken:
    """A confirmation is sent only when what it confirms is on disk, and names it."""
    for origin, sequence, number in record.confirmed_unwritten:
        yield violations.ConfirmedTooEarly(number=number, notification=(origin, sequence))


def delivered_is_on_disk(record: FaultRecord) -> Broken:
    """What is delivered is what its origin has on disk."""
    for handing in record.handings:
        name = _name(handing)
        written = [*record.gone.get(name, ()), *([record.written[name]] if name in record.written else [])]
        if not any(one.notification == handing.envelope.notification for one in written):
            yield violations.NeverSaid(**_about(handing))


def nothing_after_its_lifetime(record: FaultRecord) -> Broken:
    """What has outlived its lifetime, by the clock of the home, is not delivered."""
    for handing in record.handings:
        lifetime = handing.envelope.notification.lifetime
        if lifetime is not None:
            late = handing.clock - handing.envelope.time - lifetime.total_seconds()
            if late >= 0:
                yield violations.Expired(**_about(handing), late=late)


def trimming_passes_nobody(record: FaultRecord) -> Broken:
    """A journal is not trimmed beyond the position of any subscription."""
    for origin, upto, name, position in record.trimmed_early:
        yield violations.TrimmedTooFar(session=name, origin=origin, upto=upto, position=position)


def epochs_are_true(record: FaultRecord) -> Broken:
    """What has met brokers in two epochs says so: it does not vouch for what came before it."""
    for broker, origin, sequence in record.misdated:
        yield violations.WrongEpoch(broker=broker, notification=(origin, sequence))


def one_home(record: FaultRecord) -> Broken:
    """When all is quiet, a subscription is at one home; one that has ended is at none."""
    if record.unquiet:
        return
    for name, taking in record.takings.items():
        expected = 0 if taking.ended != NEVER else 1
        for place, homes in (("in memory", record.homes), ("on disk", record.on_disk)):
            found = homes.get(name, [])
            if len(found) != expected:
                yield violations.WrongHomes(session=name, homes=tuple(found), place=place, ended=not expected)


def everyone_is_answered(record: FaultRecord) -> Broken:
    """Within a time after the last fault, nobody waits for an answer any more."""
    for what in record.waiting:
        yield violations.Unanswered(session=what.split()[0].partition(".")[0], what=what)


def the_network_falls_silent(record: FaultRecord) -> Broken:
    """Within a time after the last fault, nothing happens any more."""
    if record.unquiet:
        yield violations.Unquiet(reason=record.unquiet)


def nobody_leaves_too_early(record: FaultRecord) -> Broken:
    """A broker leaves only when every subscription has on its disk all that was published there."""
    for broker, name, head, position in record.left_unread:
        yield violations.LeftTooEarly(session=name, broker=broker, head=head, position=position)


def nobody_is_forgotten_too_early(record: FaultRecord) -> Broken:
    """Who is forgotten for being away was away for that long; of two that are apart, one at the most is."""
    for broker, other, seconds in record.forgotten_early:
        yield violations.ForgottenTooEarly(broker=broker, other=other, seconds=seconds)
    for broker, other in record.forgotten_by_both:
        yield violations.ForgottenByBoth(broker=broker, other=other)


def memory_is_bounded(record: FaultRecord) -> Broken:
    """Buffers and outboxes keep within the settings, and nothing is left behind."""
    told: set[tuple[str, str]] = set()
    for broker, what, found, allowed in record.crowded:
        if (broker, what) not in told:
            told.add((broker, what))
            yield violations.TooMuchInMemory(broker=broker, what=what, found=found, allowed=allowed)


CHECKS: tuple[Callable[[FaultRecord], Broken], ...] = (
    nothing_confirmed_is_lost,
    history_is_complete,
    confirmed_is_on_disk,
    sequences_are_given_once,
    published_once,
    delivered_is_on_disk,
    nothing_outside_the_filter,
    nothing_after_its_end,
    nothing_while_paused,
    nothing_again_after_done,
    first_deliveries_in_order,
    redeliveries_are_marked,
    one_number_for_one_event,
    nothing_begins_again,
    takers_are_connected,
    nothing_after_its_lifetime,
    trimming_passes_nobody,
    epochs_are_true,
    one_home,
    everyone_is_answered,
    the_network_falls_silent,
    nobody_leaves_too_early,
    nobody_is_forgotten_too_early,
    memory_is_bounded,
)


def _missed(record: FaultRecord) -> Iterator[tuple[Taking, int, WantedPublication]]:
    """What subscriptions select that became ready and are there to the end, and did not come to them."""
    seen = {(handing.name, _number(handing)) for handing in record.handings if handing.seen}
    for taking in record.takings.values():
        if taking.ending != NEVER or taking.ready == NEVER:
            continue
        for number, publication in record.publications.items():
            if (
                (taking.name, number) not in seen  # the cheapest question
                and not _expires(publication)
                and _is_recent(record, taking, publication)
                and _is_owed(taking, publication)
                and not {publication.broker, *(publication.name or ())[:1]} & record.forgotten
                and not _was_hurried(record, taking, publication)
                and not _went_with_a_disk(record, taking, number)
                and not was_damaged(record, taking, number)
            ):
                yield taking, number, publication


def _was_hurried(record: FaultRecord, taking: Taking, publication: WantedPublication) -> bool:
    """Whether it was given up because its home's clock was set ahead while it was out.

    An attempt lasts as long as the broker's clock says, so a clock that is set ahead again and again uses up
    all of them before anybody could notice that the taker is gone. It is not lost: it is a dead letter.
    """
    if publication.name not in record.dead.get(taking.name, ()):
        return False
    attempts = [one for one in record.handings if one.name == taking.name and _name(one) == publication.name]
    return any(
        one.broker == next_one.broker and next_one.clock - one.clock > next_one.time - one.time + _SET_AHEAD
        for one, next_one in pairwise(attempts)
    )


def _went_with_a_disk(record: FaultRecord, taking: Taking, number: int) -> bool:
    """Whether it may be missing since a disk came back older, and whoever could know of that has told so."""
    publication = record.publications[number]
    if taking.name in record.set_back:
        place = bisect_right(taking.readies, record.set_back[taking.name])
        ready = taking.readies[place] if place < len(taking.readies) else NEVER
        any_filter = all(wish.filter.matches(publication.notification) for wish in taking.wishes)
        if publication.asked < ready or not any_filter:  # the one in force may be an earlier one again
            return True
    if number in record.found_again and len(taking.wishes) > 1:
        return True  # it is judged by the filter that was in force when it came back
    if publication.name is None:
        return number in record.lost
    origin, sequence = publication.name
    if number in record.lost:
        could_know = record.lost[number].is_known_at(taking.name, sequence) and not taking.rewound
        return not could_know or is_named(taking, publication.name)
    return (origin, taking.name) in record.unknown_readers and is_named(taking, publication.name)


def was_damaged(record: FaultRecord, taking: Taking, number: int) -> bool:
    """Whether bits of it flipped, in its journal or where it waited, and the subscription was told so."""
    publication = record.publications[number]
    if publication.name in record.flipped and is_named(taking, publication.name):
        return True
    deliveries = [one for one, of in record.flipped_deliveries.get(taking.name, ()) if of == number]
    named = [gap for gap in taking.gaps if gap.what == "deliveries"]
    return any(gap.after < one <= (gap.upto or 0) for one in deliveries for gap in named)


def is_named(taking: Taking, name: Name | None) -> bool:
    """Whether the subscription was told of a gap that has it."""
    if name is None:
        return False
    origin, sequence = name
    return any(
        gap.origin == origin and gap.after < sequence and (gap.upto is None or sequence <= gap.upto)
        for gap in taking.gaps
        if gap.what != "deliveries"
    )


def _is_owed(taking: Taking, publication: WantedPublication) -> bool:
    """Whether every filter that may have been in force selects it."""
    first, *later = taking.wishes_from(publication.asked)
    possible = [first, *[wish for wish in later if wish.asked < publication.confirmed]]
    return all(wish.filter.matches(publication.notification) for wish in possible)


def _is_recent(record: FaultRecord, taking: Taking, publication: WantedPublication) -> bool:
    """Whether it is not older, by the clock of its origin, than what the client asked for."""
    name = publication.name
    found = [*record.gone.get(name, ()), record.written.get(name)] if name is not None else []
    same = [one for one in found if one is not None and one.notification == publication.notification]
    written = same[0] if same else None
    return isinstance(taking.since, str) or (written is not None and written.time >= taking.since)


def _expires(publication: WantedPublication) -> bool:
    lifetime = publication.notification.lifetime
    return lifetime is not None and lifetime.total_seconds() < _LONG


def _name(handing: Handing) -> tuple[str, int]:
    return handing.envelope.origin, handing.envelope.sequence


def _about(handing: Handing) -> dict[str, Any]:
    """What a violation says of the delivery that it is about."""
    return {"session": handing.name, "number": _number(handing), "notification": _name(handing)}


def _key(handing: Handing) -> _Key:
    """What it is a delivery of: an event, at a subscription, in one of its lives."""
    return handing.name, handing.life, *_name(handing), _number(handing)


def _number(handing: Handing) -> int:
    return number_of(handing.envelope)
