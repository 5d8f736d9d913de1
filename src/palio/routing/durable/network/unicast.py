"""Unicast: letters from one broker to another, hop by hop, on the ways that polls have shown.

A letter whose way is not known, now or in a former epoch, is lost; whoever wrote it writes again. That the way
is missing is remembered where it is missing, at the writer or on the way, so that a question from there shows
it. Only the end of a reader is nobody's to repeat, since what has ended is gone: letters about that are kept
here until they have found their way, or for some ticks after each change of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from palio.protocol.durable.letters import Carry, Content, ReaderEnded
from palio.routing.durable.alarm import Alarm
from palio.routing.durable.desk import ANSWER_WITHIN, Desk
from palio.routing.durable.home.subscription import Durable
from palio.routing.durable.network.polling import Polling
from palio.routing.effects import Send

# By the content of letters: who is handed those that are for this broker, with their senders.
LetterHandlers: TypeAlias = dict[type, Callable[[str, Any], None]]


class Unicast:
    """This broker's part in letters. `handlers` says what is done with those for it, by their content."""

    def __init__(self, desk: Desk, polling: Polling, tick: Alarm, handlers: LetterHandlers) -> None:
        self._desk = desk
        self._polling = polling
        self._tick = tick
        self._handlers = handlers
        self.ways_missing = False
        self._ending: dict[tuple[str, str], int] = {}  # origins to be told of readers: how often it is tried

    def write(self, receiver: str, content: Content) -> bool:
        """Send a letter to a broker. False if the way to it is not known: it may get there all the same."""
        letter = Carry(self._desk.broker, receiver, 0, content)
        if receiver == self._desk.broker:
            self.deliver(letter)
            return True
        return self._send(letter)

    def deliver(self, letter: Carry) -> None:
        """Handles a letter: it is for this broker, or is passed on."""
        if letter.receiver == self._desk.broker:
            self._handlers[type(letter.content)](letter.sender, letter.content)
        elif letter.hops < self._polling.longest_way:
            self._send(msgspec.structs.replace(letter, hops=letter.hops + 1))

    def _send(self, letter: Carry) -> bool:
        if not self._polling.is_sure_of(letter.receiver):
            self.ways_missing = True
            self._tick.set()
        way = self._polling.way_to(letter.receiver)
        if way is None:
            former = self._polling.former_way_to(letter.receiver)
            if former is not None:
                self._desk.effects.append(Send(former, letter))
            return False
        self._desk.effects.append(Send(way, letter))
        return True

    # The end of readers

    def reader_ended(self, durable: Durable) -> None:
        """Tell the origins that a subscription which has ended here has read: they keep nothing for it."""
        self._ending |= {(origin, durable.identity): ANSWER_WITHIN for origin in durable.position}
        self._write_endings()

    def again(self) -> None:
        """Retry: write again what has not found its way."""
        if any(attempts > 0 for attempts in self._ending.values()):
            self._write_endings()

    def epoch_changed(self) -> None:
        """Handles another epoch: there may be ways now that there were not."""
        if self._ending:
            self._ending = dict.fromkeys(self._ending, ANSWER_WITHIN)
            self._tick.set()

    def _write_endings(self) -> None:
        """Tell origins of readers that have ended; later, if the way is not known, but not for ever."""
        for (origin, reader), attempts in list(self._ending.items()):
            if self.write(origin, ReaderEnded(reader)):
                del self._ending[origin, reader]
            else:
                self._ending[origin, reader] = attempts - 1
        if any(attempts > 0 for attempts in self._ending.values()):
            self._tick.set()
