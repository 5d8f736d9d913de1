"""What a neighbour has to put up with that sends more than is taken, or does not finish what it begins.

Who sends more than there are turns for is not read from until some of it is done (`connection`): the network
slows it down. That is counted for each connection (`HeldBack`), and said when it lasts. Clients hold what they
send on their own account; a link may send very large frames, and so has to send them at some pace
(`SlowFrame`).
"""

from __future__ import annotations

# Seconds after which it is said that a neighbour is held back: longer than a burst takes (a guess).
LONG = 5.0
# Bytes a second that a neighbour sends of a frame at the least, after so many seconds: the slowest of lines
# that brokers are connected by (a guess).
SLOWEST = 64 * 1024
PATIENCE = 30.0


class HeldBack:
    """For how many seconds somebody was not read from."""

    __slots__ = ("_before", "_since", "_told")

    def __init__(self) -> None:
        self._before = 0.0
        self._since: float | None = None
        self._told = False

    def begin(self, now: float) -> None:
        """It is not read from any more."""
        self._since, self._told = now, False

    def end(self, now: float) -> None:
        """It is read from again."""
        if self._since is not None:
            self._before += now - self._since
            self._since = None

    def seconds(self, now: float) -> float:
        """All of it, up to now."""
        return self._before + (0.0 if self._since is None else now - self._since)

    def to_be_told(self, now: float) -> float:
        """For how long it has lasted, if that has become long, once; 0 otherwise."""
        if self._since is None or self._told or now - self._since < LONG:
            return 0.0
        self._told = True
        return now - self._since


class SlowFrame:
    """Whether a frame has been coming for too long for what has come of it."""

    __slots__ = ("_number", "_since")

    def __init__(self) -> None:
        self._number = -1
        self._since = 0.0

    def is_slow(self, number: int, held: int, now: float) -> bool:
        """`number` frames were complete before this one, of which so many bytes are held."""
        if number != self._number or not held:
            self._number, self._since = number, now
        return held < (now - self._since - PATIENCE) * SLOWEST
