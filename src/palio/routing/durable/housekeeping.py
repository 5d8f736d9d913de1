"""Housekeeping: progress reports and retries at each tick, while there is something to do."""

from __future__ import annotations

from palio.routing.durable.composition import DurableParts


def keep_house(parts: DurableParts) -> None:
    """Sends progress, and retries what was not answered, as long as it is waited for."""
    parts.tick.rang()
    if parts.letters.ways_missing:
        parts.letters.ways_missing = False
        parts.answering.answer(parts.polling.ask())  # whoever answers shows the way to it
    parts.letters.again()
    if parts.telling.tell():
        parts.letters.ways_missing = True
    parts.spooling.save_positions()
    if parts.desk.settings.keep:
        parts.retention.trim()  # what is old enough, also if there is no reader at all
    parts.going_live.again()
    waiting = parts.catching_up.fetch_again() | parts.relocation.again() | parts.history.again()
    waiting |= parts.introductions.look()
    if waiting or parts.going_live.is_under_way:
        parts.tick.set()
