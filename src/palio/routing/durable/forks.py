"""Forks: journals that came back older than they were, and what is missing for it.

A position meets the journal that it is one of whenever everyone is asked how far the journals are (`catch_up`).
If their lineages have forked (`palio.protocol.durable.lineage`), the subscription goes on where they fork: all
that the journal says beyond that is new, whatever its sequences. What the journal had said before and the
subscription has got stays as it is. The rest cannot be had any more. That is a *gap*, and it is named: to the
taker, now and whenever one attaches, and to whoever looks after the broker.

1. *Nothing new is taken for old*: a position is never beyond the fork point.
2. *Named before it is passed*: the gap and the position behind it are one write, or the gap comes first.
3. A gap is also what a journal has trimmed beyond a position of a known lineage. Journals do that only to who
   is no reader of theirs: because they, or the home, came back older, or the home was forgotten.
4. What is damaged in a journal is a gap, too: nobody can tell whether the subscription wanted it. So is what is
   damaged of the deliveries that waited at the home; the store names that when it opens (`store.recovery`).
5. A journal learns that it came back older from what others have read of it, or have heard of its lives
   (`retention`, `membership`): then it does not know all its readers, and trims nothing before it does.
"""

from __future__ import annotations

from palio.protocol.durable.letters import Page
from palio.protocol.durable.lineage import GapKind, JournalGap, Lineage, going_on, runs_of, with_gap
from palio.protocol.durable.peers import Head
from palio.routing.durable.desk import Desk
from palio.routing.durable.effects import ReportGap
from palio.routing.durable.home.subscription import Durable


class JournalForks:
    """What this broker knows of journals that came back older, its own among them; since it began."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.noticed: dict[str, JournalGap] = {}  # by origin, the latest

    def meet(self, durable: Durable, head: Head) -> None:
        """A position meets its journal: sets it to where they fork, and names what is missing."""
        origin, position = head.origin, durable.position[head.origin]
        lineage = durable.lineages.get(origin, ())
        heard_of = max(position, durable.heads.get(origin, 0))
        fork = going_on(heard_of, lineage, head.lineage, head.head)
        if fork < heard_of:
            # It may have had more than was heard of.
            self._name(durable, head.lineage, origin, (max(position, fork), None))
            durable.position[origin] = position = min(position, fork)
        if lineage and position < head.begins:
            self._name(durable, head.lineage, origin, (position, head.begins))
        if head.lineage:
            # What was said earlier in the same life may be heard later.
            before = durable.heads.get(origin, 0) if lineage == head.lineage else 0
            durable.heads[origin] = max(head.head, before)
            if lineage != head.lineage:
                durable.lineages[origin] = head.lineage
                durable.unwritten.add(origin)

    def missing(self, durable: Durable, origin: str, page: Page) -> tuple[JournalGap, ...]:
        """Names what is missing of a page: what was trimmed while it was asked for, and what is damaged."""
        found, journal = [], durable.lineages.get(origin, ())
        if page.after < page.begins and journal:
            found.append(self._name(durable, journal, origin, (page.after, min(page.begins, page.upto))))
        for after, upto in runs_of(page.damaged):
            if page.after <= after < upto <= page.upto:
                found.append(self._name(durable, journal, origin, (after, upto), "damaged"))
        return tuple(found)

    def own(self, lineage: Lineage, sequence: int) -> None:
        """A reader has read what this journal does not have any more."""
        known = self.noticed.get(self._desk.broker)
        if known is None or known.upto is None or known.upto < sequence:
            begins = lineage[-1].begins if lineage else 0
            gap = JournalGap(self._desk.broker, min(begins, sequence), sequence, self._desk.now)
            self._report(gap, "", lineage)

    def _name(
        self,
        durable: Durable,
        journal: Lineage,
        origin: str,
        span: tuple[int, int | None],
        what: GapKind = "older",
    ) -> JournalGap:
        gap = JournalGap(origin, *span, self._desk.now, what)
        durable.gaps = with_gap(durable.gaps, gap)
        self._report(gap, durable.name, journal)
        return gap

    def _report(self, gap: JournalGap, durable: str, journal: Lineage) -> None:
        if gap.what == "older":
            self.noticed[gap.origin] = gap
        self._desk.effects.append(ReportGap(gap, durable, journal[-1].id if journal else ""))

    def statistics(self) -> tuple[JournalGap, ...]:
        """The latest gap of each journal, by the name of its broker."""
        return tuple([gap for _, gap in sorted(self.noticed.items())])
