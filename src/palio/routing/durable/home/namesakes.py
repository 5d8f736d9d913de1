"""Duplicate subscriptions: two of one name, or one and the same at two homes.

Two of one name are there because a client began anew while the home could not be reached. Homes hear of each
other when they ask how far the journals are. The one that was created later stays.

One is at two homes when the disk of a former home has come back as it was before the subscription went on. What
is there is called its *copy* here.

1. *The later generation is the subscription*: each move raises it. It had all of the copy when it went on.
2. *A copy gives way* when it hears of the other home that has it on disk: when that asks how far the journals
   are, or answers when the copy asks.
3. *A copy speaks for nobody.* What a broker finds on its disk as it begins may be one. So it is *unconfirmed*,
   and journals do not hear how far it is, until all who were ever heard of have been asked and nobody has it
   in a later generation. Until then it reads and delivers, and journals keep for the subscription what that has
   not read. Where it goes, it goes unconfirmed, and its generation grows by less than that of the subscription.
4. *What is confirmed is the subscription*, though it had gone further once: its later homes had handed it back
   to this one, whose disk has forgotten that. It begins a generation after all of which anybody knows, so that
   none of its former homes takes it for a letter that comes late.

Generations are the same at two homes only if two copies went on. Then the home with the larger name has it:
nobody knows more, and both have to come to the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from palio.protocol.durable.letters import Newer
from palio.protocol.durable.peers import Ask, LaterHome
from palio.routing.durable.desk import Desk, created_at
from palio.routing.durable.home.endings import FOR_GOOD, Endings
from palio.routing.durable.home.homes import Homes
from palio.routing.durable.home.lifecycle import Lifecycle
from palio.routing.durable.home.subscription import HomeState
from palio.routing.durable.network.unicast import Unicast


class Namesakes:
    """What becomes of a subscription here when another of its name is heard of, or itself at another home."""

    def __init__(
        self, desk: Desk, homes: Homes, lifecycle: Lifecycle, letters: Unicast, endings: Endings
    ) -> None:
        self._broker = desk.broker
        self._endings = endings
        self._homes = homes
        self._lifecycle = lifecycle
        self._letters = letters

    def hear_of(self, name: str, identity: str, home: str, generation: int = 0) -> None:
        """Handles news of a subscription at another broker: of two of one name, the older one retires.

        If it is the one that is here, in a later generation, this is a copy.
        """
        durable = self._homes.subscriptions.get(name)
        if durable is None:
            return
        if durable.identity == identity:
            # What moves is judged by its next home.
            is_here = durable.state in (HomeState.BEHIND, HomeState.LIVE)
            if is_here and (durable.generation, self._broker) < (generation, home):
                self._lifecycle.give_way(durable, home)
        elif created_at(durable.identity) < created_at(identity):
            self._lifecycle.retire(durable)
        else:
            self._letters.write(home, Newer(name, durable.identity))

    def later_here(self, ask: Ask) -> tuple[LaterHome, ...]:
        """Those of the asker's readers that are copies of what is here, or comes here now, or was here once."""
        found = []
        for (identity, name), generation in zip(ask.readers, ask.generations, strict=False):
            durable, broker = self._homes.subscriptions.get(name), self._broker
            if durable is not None and durable.identity == identity:
                if (generation, ask.asker) < (durable.generation, broker):
                    storing = durable.state is HomeState.STORING
                    later = identity, broker, durable.generation
                    found.append(LaterHome(*later, "coming" if storing else "here"))
            elif generation <= self._endings.upto(identity) < FOR_GOOD:
                found.append(LaterHome(identity, broker, self._endings.upto(identity), "gone"))
        return tuple(found)

    def told_of(self, later: Iterable[LaterHome], names: Iterable[str], *, everyone: bool) -> None:
        """Handles what was answered about subscriptions here, by everyone who was ever heard of or by some."""
        homes: dict[str, list[LaterHome]] = {}
        for one in later:
            homes.setdefault(one.reader, []).append(one)
        for name in names:
            durable = self._homes.subscriptions.get(name)
            if durable is None:
                continue
            known = homes.get(durable.identity, [])
            # What collects nothing is another one of that name.
            asked = durable.collecting is not None
            if asked and everyone and durable.unconfirmed and all(one.state == "gone" for one in known):
                durable.unconfirmed = False
                durable.generation = max([durable.generation, *[one.generation + 1 for one in known]])
            for one in known:
                if one.state == "here":
                    self.hear_of(name, one.reader, one.home, one.generation)

    def newer(self, sender: str, letter: Newer) -> None:
        """Handles a `Newer`: another broker has one of that name that was created later."""
        durable = self._homes.subscriptions.get(letter.name)
        if durable is not None and created_at(durable.identity) < created_at(letter.identity):
            self._lifecycle.retire(durable)
