"""Addresses of a network as a set of texts: `in network "10.0.0.0/8"`.

An address is a text in its one canonical notation: four decimal numbers without leading zeros, or IPv6 as
RFC 5952 has it: eight groups of small hexadecimal digits without leading zeros, with the leftmost longest run
of two or more zero groups written `::`. Any other text, such as `010.0.0.1` or `2001:DB8::1`, is in no network.
(An IPv4 address within IPv6 is written in groups, `::ffff:a00:1`.)

So the addresses of a network are a finite set of texts, and one that a small automaton knows: some twenty to a
hundred states. It is made of readers that go through a text side by side. For IPv4 there is one. For IPv6
there is one for each place and length that the run behind `::` may have, and one for texts without; each knows
from the beginning which group it reads, and which runs of zeros would have been written `::` instead of its
own.
"""

from __future__ import annotations

import functools
import ipaddress
from itertools import pairwise
from typing import TypeAlias

import msgspec

from palio.model.automaton import Language, smallest
from palio.model.codes import code_of
from palio.model.effort import pause, uncounted
from palio.model.texts import TextMistake

MAX_NETWORK_CHARACTERS = 43  # the longest IPv6 address, a slash and three digits
MAX_BEGINNINGS = 16  # of a network's addresses: so many places an index files it at
_MOST_LISTED = 1_024  # numbers of a group that are listed to see how they begin, in a fraction of a millisecond

_GROUPS, _DIGITS = 8, 4
_HEXADECIMAL = "0123456789abcdef"
_GAVE_UP = frozenset((-1,))
_NOBODY: frozenset[int] = frozenset()
# What a number may still become: for each count of further digits the range of their value, or None.
_Outlook: TypeAlias = "tuple[tuple[int, int] | None, ...]"


def canonical_network(text: str) -> str:
    """The network as it is always written. Raises `TextMistake`."""
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or not length.isascii() or len(text) > MAX_NETWORK_CHARACTERS:
        raise TextMistake(0, "A network is an address, a slash and the length of its prefix, as 10.0.0.0/8.")
    try:
        network = ipaddress.ip_network(f"{address}/{int(length)}", strict=False)
        written = ipaddress.ip_address(address)
    except ValueError as problem:
        raise TextMistake(0, f"This is no network: {_said(problem)}.") from None
    if "%" in address:
        raise TextMistake(0, "A network has no zone.")
    if written != network.network_address:
        raise TextMistake(0, f"This address has bits behind its prefix; the network is {_text(network)}.")
    return _text(network)


def _said(problem: ValueError) -> str:
    return str(problem)[:120].rstrip(".")


def _text(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    address = network.network_address
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        # Newer Pythons would write the end of it with points.
        low = int(address)
        shown = f"::ffff:{low >> 16 & 0xFFFF:x}:{low & 0xFFFF:x}"
        return f"{shown}/{network.prefixlen}"
    return f"{address}/{network.prefixlen}"


@functools.lru_cache(maxsize=1024)
def addresses(network: str) -> Language:
    """The canonical texts of the addresses of a network, which is canonical itself."""
    with uncounted():
        return _addresses(network)


def beginnings(network: str) -> tuple[str, ...]:
    """How the texts of the addresses of a network begin: one of these, if these are few; none if they are many.

    The groups that all addresses share, as far as none is zero (which may be behind a `::`), and then what the
    next one begins with.
    """
    parsed = ipaddress.ip_network(network)
    width, base, separator = (8, 10, ".") if parsed.version == 4 else (16, 16, ":")
    first, last = int(parsed.network_address), int(parsed.broadcast_address)
    if first == last:
        return (network.partition("/")[0],)
    begun = ""
    for place in reversed(range(parsed.max_prefixlen // width)):
        low, high = (first >> width * place) % (1 << width), (last >> width * place) % (1 << width)
        behind = separator if place else ""
        if low == 0 and base == 16:
            break
        if low == high:
            begun += _digits(low, base) + behind
            continue
        following = _group_beginnings(low, high, base, behind) or [""]
        return tuple([begun + one for one in following if begun + one])
    return (begun,) if begun else ()


def _digits(number: int, base: int) -> str:
    return f"{number:d}" if base == 10 else f"{number:x}"


def _group_beginnings(low: int, high: int, base: int, behind: str) -> list[str]:
    """How a group between two numbers begins, if that says more than that it is a number; or nothing."""
    if high - low > _MOST_LISTED:
        return []
    groups = [_digits(number, base) + behind for number in range(low, high + 1)]
    for size in range(_DIGITS + 1, 1, -1):
        found = list(dict.fromkeys(group[:size] for group in groups))
        if len(found) <= MAX_BEGINNINGS:
            return found
    return []


def _addresses(network: str) -> Language:
    parsed = ipaddress.ip_network(network)
    width, base = (8, 10) if parsed.version == 4 else (16, 16)
    first, last = int(parsed.network_address), int(parsed.broadcast_address)
    count = parsed.max_prefixlen // width
    spans = [
        ((first >> width * place) % (1 << width), (last >> width * place) % (1 << width))
        for place in reversed(range(count))
    ]
    outlooks = [_outlook(low, high, base) for low, high in spans]
    readers: list[_AddressReading]
    if parsed.version == 4:
        readers = [_AddressReading(place=0, outlook=outlooks[0])]
        return _side_by_side(_Dotted(outlooks), readers, _columns(_HEXADECIMAL[:10], ".", spans))
    zero = [low == 0 for low, _ in spans]
    runs = [(at, size) for at in range(_GROUPS - 1) for size in range(2, _GROUPS - at + 1)]
    readers = [_AddressReading(place=0, outlook=outlooks[0])]
    readers += [
        _AddressReading(place=0, outlook=outlooks[0] if run[0] else None, run=run)
        for run in runs
        if all(zero[run[0] : run[0] + run[1]])
    ]
    return _side_by_side(_Colons(outlooks), readers, _columns(_HEXADECIMAL, ":", spans))


def _columns(digits: str, separator: str, spans: list[tuple[int, int]]) -> list[tuple[int, str | None]]:
    """Where the alphabet is cut, and what stands for the characters behind each cut; None: none is read.

    Digits that no end of a span has are read like those before them.
    """
    named = {"0", "1", "a"}
    for end in {end for span in spans for end in span}:
        for digit in f"{end:x}" if len(digits) == len(_HEXADECIMAL) else str(end):
            named.add(digit)
            named.update(digits[digits.index(digit) + 1 :][:1])
    characters = sorted([*digits, separator])
    columns: list[tuple[int, str | None]] = [(0, None)]
    for character, following in pairwise([*characters, ""]):
        if character == separator or character in named:
            columns.append((code_of(character), character))
        if ord(character) + 1 != (ord(following) if following else None):
            columns.append((code_of(character) + 1, None))
    return columns


def _outlook(low: int, high: int, base: int) -> _Outlook:
    """Of a number that is to be read: it begins with no zero, unless it is one."""
    ranges: list[tuple[int, int] | None] = [None]
    for digits in range(1, _DIGITS + 1):
        least = 0 if digits == 1 else base ** (digits - 1)
        ranges.append(_common(low, high, least, base**digits - 1, 0))
    return tuple(ranges)


@functools.lru_cache(maxsize=4096)
def _behind(outlook: _Outlook, digit: int, base: int) -> _Outlook | None:
    """After one more digit; None if nothing can come of it."""
    ranges = []
    for further, allowed in enumerate(outlook[1:]):
        size = base**further
        start = digit * size
        ranges.append(None if allowed is None else _common(*allowed, start, start + size - 1, start))
    return tuple(ranges) if any(ranges) else None


def _common(low: int, high: int, least: int, most: int, zero: int) -> tuple[int, int] | None:
    low, high = max(low, least), min(high, most)
    return (low - zero, high - zero) if low <= high else None


class _AddressReading(msgspec.Struct, frozen=True):
    """How far a reader is: in which group, with which outlook; for IPv6 also what it knows about zeros.

    `run` is where the run of `::` begins and its length, None for a text without. `colons` are those of `::`
    that were read last. `zeros` counts the zero groups that end before this one.
    """

    place: int
    outlook: _Outlook | None
    run: tuple[int, int] | None = None
    begun: bool = False
    is_zero: bool = False
    zeros: int = 0
    colons: int = 0


class _Dotted:
    """Reads IPv4."""

    base = 10

    def __init__(self, outlooks: list[_Outlook]) -> None:
        self.outlooks = outlooks

    def step(self, at: _AddressReading, character: str) -> _AddressReading | None:
        if character in ".:":
            return self.separated(at)
        digit = int(character, 16)
        outlook = None if at.outlook is None or at.colons == 1 else _behind(at.outlook, digit, self.base)
        if outlook is None:
            return None
        is_zero = digit == 0 and not at.begun
        return _AddressReading(at.place, outlook, at.run, begun=True, is_zero=is_zero, zeros=at.zeros)

    def separated(self, at: _AddressReading) -> _AddressReading | None:
        if not _is_number(at) or at.place + 1 == len(self.outlooks):
            return None
        return _AddressReading(at.place + 1, self.outlooks[at.place + 1])

    def accepts(self, at: _AddressReading) -> bool:
        return _is_number(at) and at.place + 1 == len(self.outlooks)


class _Colons(_Dotted):
    """Reads IPv6."""

    base = 16

    def separated(self, at: _AddressReading) -> _AddressReading | None:
        run = at.run
        if at.colons == 1 and run is not None:
            behind = sum(run)
            outlook = self.outlooks[behind] if behind < _GROUPS else None
            return _AddressReading(behind, outlook, run, colons=2)
        if not at.begun:
            is_first = run is not None and run[0] == at.place == 0 and at.colons == 0
            return _AddressReading(0, None, run, colons=1) if is_first else None
        zeros = self._zeros(at)
        following = at.place + 1
        if zeros is None or following == _GROUPS:
            return None
        if run is not None and run[0] == following:
            return _AddressReading(following, None, run, colons=1)
        return _AddressReading(following, self.outlooks[following], run, zeros=zeros)

    def accepts(self, at: _AddressReading) -> bool:
        if not at.begun:
            return at.colons == 2 and at.place == _GROUPS
        return at.place == _GROUPS - 1 and self._zeros(at) is not None

    def _zeros(self, at: _AddressReading) -> int | None:
        """How many zero groups end with this one, which is complete; None if they should be written `::`."""
        if not _is_number(at):
            return None
        if not at.is_zero:
            return 0
        if at.run is None:
            return 1 if at.zeros == 0 else None
        start, size = at.run
        beside = at.place in (start - 1, start + size)  # then `::` would be longer
        most = size - 1 if at.place < start else size
        return None if beside or at.zeros + 1 > most else at.zeros + 1


def _is_number(at: _AddressReading) -> bool:
    return at.begun and at.outlook is not None and at.outlook[0] is not None


def _side_by_side(
    reader: _Dotted, readings: list[_AddressReading], columns: list[tuple[int, str | None]]
) -> Language:
    known = dict(zip(readings, range(len(readings)), strict=True))
    moves: list[list[int]] = []  # of each reading, for each column
    for at in (waiting_readings := list(readings)):
        row = []
        for _, character in columns:
            to = None if character is None else reader.step(at, character)
            if to is not None and to not in known:
                known[to] = len(known)
                waiting_readings.append(to)
            row.append(-1 if to is None else known[to])
        moves.append(row)
    accepted = [reader.accepts(at) for at in known]
    start = frozenset(range(len(readings)))
    numbers = {start: 0}
    rows = []
    accepting = []
    for state in (waiting := [start]):
        pause()
        accepting.append(any(accepted[at] for at in state))
        reached = [frozenset(column) - _GAVE_UP for column in zip(*[moves[at] for at in state], strict=True)]
        for one in reached or [_NOBODY] * len(columns):
            if one not in numbers:
                numbers[one] = len(numbers)
                waiting.append(one)
        rows.append(tuple(numbers[one] for one in reached or [_NOBODY] * len(columns)))
    return smallest([cut for cut, _ in columns], rows, accepting)
