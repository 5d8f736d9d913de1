"""Surveys and replays: what the journals in reach hold of a filter, counted or read page by page.

Who asks wants to know of all origins. First everyone in reach is asked how far its journal is (a question, see
`polling`); then each origin reads its own journal, page by page, and never holds more than one.

A *survey* is counted at the origins, all at the same time. An origin that is still counting says so once in a
while, with what it has counted since; these parts are numbered, so that one that is lost is noticed. A *replay*
takes one origin after the other, and the next page is read when the client asks for it.

An origin that says nothing for a time, or of which a part was lost or cannot be read, is named in the end: what
is told is true, but not all. So is every broker that was ever heard of and is not in reach.
"""

from __future__ import annotations

from collections import deque
from dataclasses import InitVar, dataclass

import msgspec

from palio.model.errors import NotAllowed, PalioError
from palio.protocol.durable import journals
from palio.protocol.durable.letters import Browse, Browsed, Count, Counted
from palio.protocol.durable.peers import Told
from palio.protocol.envelope import Envelope
from palio.protocol.frames import MAX_EVENT
from palio.protocol.requests import Refused
from palio.protocol.subjects import subject_of
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import Desk
from palio.routing.durable.network.answering import Answering
from palio.routing.durable.network.polling import Polling
from palio.routing.durable.network.topology import Topology
from palio.routing.durable.network.unicast import Unicast
from palio.routing.durable.origin.serving import MAX_BUCKETS, MAX_SAMPLES, SurveyTally
from palio.routing.scopes import owner_of

# Surveys and replays that one session may have open.
MAX_PER_SESSION = 16
# How many ticks an origin, or the network as a whole, may say nothing.
SILENCE = 10


def _cut(envelopes: tuple[Envelope, ...], upto: int) -> tuple[tuple[Envelope, ...], int]:
    """As many as fit into one answer, at least one, and up to which sequence; the rest is read again."""
    size = 0
    for position, envelope in enumerate(envelopes):
        size += envelope.notification.body.size
        if position and size > MAX_EVENT:
            return envelopes[:position], envelopes[position - 1].sequence
    return envelopes, upto


class WrongSurvey(PalioError):
    """A survey or a replay of something that is none."""

    setting: str
    reason: InitVar[str]
    sentence = "The setting {setting!r} cannot be so: {reason}"


class TooManySurveys(PalioError):
    """A session has too many surveys and replays open."""

    limit: int
    sentence = "This session has {limit} surveys and replays open, which is the limit; wait for their ends."


class _Surveying(msgspec.Struct, eq=False):
    """A survey of a session here: which origins are counting, and up to which part each was heard."""

    session: str
    message: journals.Survey
    count: Count
    tally: SurveyTally
    until: float | None  # while the network is being asked
    counting: dict[str, tuple[int, float]] = {}  # by origin: the next part, and until when
    missing: set[str] = msgspec.field(default_factory=set)


class _Replaying(msgspec.Struct, eq=False):
    """A replay for a session here: the origins that are still to come, and where in the first of them it is."""

    session: str
    message: journals.Replay
    until: float | None  # while somebody is being asked; None: the client goes on when it likes
    origins: deque[tuple[str, int, int]] = msgspec.field(default_factory=deque)  # origin, after, upto
    missing: set[str] = msgspec.field(default_factory=set)


@dataclass(eq=False, repr=False)
class JournalHistory:
    """The surveys and replays of the sessions here."""

    _desk: Desk
    _topology: Topology
    _polling: Polling
    _answering: Answering
    _letters: Unicast
    _tick: Alarm
    _number: int

    def __post_init__(self) -> None:
        self._asking: dict[int, int] = {}  # by the number of the question: that of the survey or replay
        self._surveys: dict[int, _Surveying] = {}
        self._replays: dict[int, _Replaying] = {}
        self._lists: dict[int, tuple[str, int, float]] = {}  # session, its number, until when

    # Sessions ask

    def list_journals(self, session: str, message: journals.ListJournals) -> None:
        """Ask how far all journals are. Raises `TooManySurveys`."""
        self._require_room(session)
        self._number += 1
        self._lists[self._number] = session, message.number, self._patience()
        self._find_origins(self._number)
        self._tick.set()

    def survey(self, session: str, message: journals.Survey) -> None:
        """Begins a survey. Raises `WrongSurvey`, `TooManySurveys`, `ContradictoryFilter` or `NotAllowed`."""
        if not 1 <= message.buckets <= MAX_BUCKETS:
            raise WrongSurvey("buckets", f"It is from 1 to {MAX_BUCKETS:,}.")
        if not 0 <= message.samples <= MAX_SAMPLES:
            raise WrongSurvey("samples", f"It is from 0 to {MAX_SAMPLES:,}.")
        number = self._begin(session, message)
        until = self._until(message)
        narrow = self._desk.scopes.exactly(session, message.filter, "count these")
        count = Count(number, narrow, message.since, until, message.buckets, message.samples)
        self._surveys[number] = _Surveying(session, message, count, SurveyTally(count), self._patience())
        self._find_origins(number)
        self._tick.set()

    def replay(self, session: str, message: journals.Replay) -> None:
        """Begins a replay. Raises `WrongSurvey`, `TooManySurveys`, `ContradictoryFilter` or `NotAllowed`."""
        if message.page < 1:
            raise WrongSurvey("page", "It is at least 1.")
        self._desk.scopes.exactly(session, message.filter, "read these")
        number = self._begin(session, message)
        replay = self._replays[number] = _Replaying(session, message, self._patience())
        if message.ranges:
            replay.origins.extend(message.ranges)
            self._turn(number, replay)
        else:
            self._find_origins(number)
        self._tick.set()

    def go_on(self, session: str, message: journals.GoOn) -> None:
        """Handles a `GoOn`: the client wants the next page of a replay; ignored if there is none to come."""
        for number, replay in self._replays.items():
            if replay.session == session and replay.message.number == message.number and replay.until is None:
                self._turn(number, replay)
                break
        self._tick.set()

    def _told(self, told: Told) -> None:
        """Handles the answers to where the journals in reach are."""
        number = self._asking.pop(told.number, None)
        if number is None:
            return
        heads = sorted(told.heads, key=lambda head: head.origin)
        missing = self._topology.known - {head.origin for head in heads}
        if number in self._surveys:
            survey = self._surveys[number]
            survey.until = None
            survey.missing = missing
            survey.counting = {head.origin: (0, self._patience()) for head in heads}
            for head in heads:
                self._letters.write(head.origin, survey.count)
            self._finish_survey(number, survey)
        elif number in self._lists:
            session, asked, _ = self._lists.pop(number)
            ranges = [
                journals.JournalRange(head.origin, head.trimmed, head.head, head.lineage) for head in heads
            ]
            self._desk.answer(session, journals.JournalsListed(asked, tuple(ranges), tuple(sorted(missing))))
        elif number in self._replays:
            replay = self._replays[number]
            replay.missing = missing
            replay.origins.extend([(head.origin, head.begins, head.head) for head in heads])
            self._turn(number, replay)
        self._tick.set()

    def counted(self, sender: str, letter: Counted) -> None:
        """Handles a `Counted` for a survey: an origin has counted, or is still counting."""
        survey = self._surveys.get(letter.number)
        if survey is None or sender not in survey.counting:
            return
        part, _ = survey.counting[sender]
        if letter.part < part:
            return
        if letter.part > part:  # one was lost on the way: the sum would be wrong without saying so
            self._lost(survey, sender)
        else:
            survey.tally.merge(letter)
            survey.counting[sender] = part + 1, self._patience()
            if letter.broken:
                self._lost(survey, sender)
            elif letter.last:
                del survey.counting[sender]
        self._finish_survey(letter.number, survey)

    def browsed(self, sender: str, letter: Browsed) -> None:
        """Handles a `Browsed`: a page of a replay."""
        replay = self._replays.get(letter.number)
        if replay is None or replay.until is None or not replay.origins:
            return
        origin, after, upto = replay.origins[0]
        if (sender, letter.after) != (origin, after):
            return
        page, reached = _cut(letter.envelopes, letter.upto)
        replay.origins[0] = origin, max(reached, after), upto
        if letter.broken or any(one.notification.body.size > MAX_EVENT for one in page):
            replay.missing.add(origin)
        if reached >= upto or reached <= after:
            replay.origins.popleft()
        envelopes = self._desk.scopes.shown(replay.session, page, "replay")
        if envelopes:
            replay.until = None
            answer = journals.Replayed(replay.message.number, origin, envelopes)
            self._desk.answer(replay.session, answer)
        else:
            self._turn(letter.number, replay)

    # What ends without an answer

    def again(self) -> bool:
        """Retry, and give up who has said nothing for too long. Returns whether anything is waited for."""
        now = self._desk.now
        for number, survey in list(self._surveys.items()):
            if survey.until is not None and survey.until <= now:
                survey.until = None
                survey.missing.add(self._desk.broker)  # nobody was asked, not even this broker itself
            for origin, (part, until) in list(survey.counting.items()):
                if until <= now:
                    self._lost(survey, origin)
                elif not part:  # perhaps it has not heard of it; if it has, it does not begin again
                    self._letters.write(origin, survey.count)
            self._finish_survey(number, survey)
        for number, replay in list(self._replays.items()):
            if replay.until is None:
                continue
            if replay.until <= now:
                replay.missing.add(replay.origins.popleft()[0] if replay.origins else self._desk.broker)
                self._turn(number, replay)
            elif replay.origins:
                self._browse(number, replay)
        for number, (session, asked, until) in list(self._lists.items()):
            if until <= now:
                del self._lists[number]
                self._desk.answer(session, journals.JournalsListed(asked, (), (self._desk.broker,)))
        open_ones = {*self._surveys, *self._replays, *self._lists}
        self._asking = {question: number for question, number in self._asking.items() if number in open_ones}
        waiting = any(replay.until is not None for replay in self._replays.values())
        return bool(self._surveys) or bool(self._lists) or waiting

    def scope_changed(self, owner: str) -> None:
        """Ends surveys of an owner with other rights: what was counted before and after is no one sum."""
        for number, survey in list(self._surveys.items()):
            if owner_of(survey.session) == owner:
                del self._surveys[number]
                problem = NotAllowed(owner, "go on with this survey", "its rights have changed; ask again.")
                self._refuse(survey, problem)

    def _refuse(self, asked: _Surveying | _Replaying, problem: PalioError) -> None:
        message = asked.message
        self._desk.answer(asked.session, Refused.of(subject_of(message), problem, message.number))

    def session_closed(self, session: str) -> None:
        """Ends the surveys and replays of a session that is gone."""
        self._surveys = {number: one for number, one in self._surveys.items() if one.session != session}
        self._replays = {number: one for number, one in self._replays.items() if one.session != session}
        self._lists = {number: one for number, one in self._lists.items() if one[0] != session}

    def _lost(self, survey: _Surveying, origin: str) -> None:
        del survey.counting[origin]
        survey.missing.add(origin)

    def _finish_survey(self, number: int, survey: _Surveying) -> None:
        if survey.counting or survey.until is not None or number not in self._surveys:
            return
        del self._surveys[number]
        tally = survey.tally
        samples = self._desk.scopes.shown(survey.session, tuple(tally.samples), "survey")
        self._desk.answer(
            survey.session,
            journals.Surveyed(
                survey.message.number,
                tally.total,
                tally.first,
                tally.last,
                tuple(tally.histogram),
                (survey.count.since, survey.count.until),
                samples,
                tuple(sorted(survey.missing)),
            ),
        )

    def _turn(self, number: int, replay: _Replaying) -> None:
        """Ask for the next page, at the next origin if need be; or it is the end."""
        while replay.origins and replay.origins[0][1] >= replay.origins[0][2]:
            replay.origins.popleft()
        if replay.origins:
            replay.until = self._patience()
            self._browse(number, replay)
            return
        del self._replays[number]
        missing = tuple(sorted(replay.missing))
        self._desk.answer(replay.session, journals.Replayed(replay.message.number, last=True, missing=missing))

    def _browse(self, number: int, replay: _Replaying) -> None:
        origin, after, upto = replay.origins[0]
        message = replay.message
        span = after, upto
        until = self._until(message)
        try:
            narrow = self._desk.scopes.exactly(replay.session, message.filter, "read these")
        except PalioError as problem:  # the rights have changed meanwhile
            del self._replays[number]
            self._refuse(replay, problem)
            return
        self._letters.write(origin, Browse(number, narrow, *span, message.since, until, message.page))

    def _begin(self, session: str, message: journals.Survey | journals.Replay) -> int:
        message.filter.require_satisfiable()
        if not message.since >= 0.0 or not message.since < self._until(message):
            raise WrongSurvey("since", "It is a time in seconds, before the end.")
        self._require_room(session)
        self._number += 1
        return self._number

    def _require_room(self, session: str) -> None:
        mine = [one.session for one in self._surveys.values()] + [one.session for one in self._replays.values()]
        mine += [one[0] for one in self._lists.values()]
        if mine.count(session) >= MAX_PER_SESSION:
            raise TooManySurveys(MAX_PER_SESSION)

    def _find_origins(self, number: int) -> None:
        ask = self._polling.ask(then=self._told)
        self._asking[ask.number] = number
        self._answering.answer(ask)

    def _until(self, message: journals.Survey | journals.Replay) -> float:
        return message.until if message.until is not None else self._desk.now

    def _patience(self) -> float:
        return self._desk.now + SILENCE * self._desk.settings.tick
