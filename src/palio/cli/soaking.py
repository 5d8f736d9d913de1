"""Many simulated runs, one after the other, until one goes wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from palio.cli.progress import progress_bar
from palio.cli.terminal import error_console, output_console, plural


class Soaked(Protocol):
    """What came of one seed."""

    @property
    def seed(self) -> int: ...
    @property
    def violations(self) -> tuple[str, ...]: ...
    @property
    def deliveries(self) -> int: ...
    @property
    def messages(self) -> int: ...


One = TypeVar("One", bound=Soaked)


def first_failure(results: Iterable[One], first: int, seeds: int, praise: str) -> One | None:
    """The first run that went wrong. If none did, what they came to is said, with some praise."""
    deliveries = messages = 0
    with progress_bar(error_console(), "simulating", seeds) as advance:
        for one in results:
            if one.violations:
                return one
            deliveries += one.deliveries
            messages += one.messages
            advance(one.seed - first + 1)
    counts = f"{plural(seeds, 'scenario')}, {plural(messages, 'message')}, {deliveries:,} deliveries"
    output_console().print(f"{counts}: {praise}.")
    return None
