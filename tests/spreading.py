"""How tests are spread over the workers of pytest-xdist: a file at a time, and all of Spark's to one of them.

What a module starts is then started once. Until a session of Spark has loaded what it needs, dozens of quick
tests could have been run in another one that has; meanwhile the others have the rest of the house to test. The
slow tests are worth a session on each worker.

A run ends when its last worker does, so what takes longest begins first: Spark, for whose worker all others
step back, as nothing else takes as long one after the other; then files that start processes; and in the end
those of which each takes a moment, so that no worker has a long one left when the others are done.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

try:
    from xdist.scheduler import LoadScopeScheduling
except ImportError:  # then there are no workers
    LoadScopeScheduling = object

SPARK = "tests/spark/"
# Folders and files, by how long a file of them takes.
LONG = (
    SPARK,
    "tests/live/",
    "tests/cli/",
    "tests/docs/",
    "tests/test_",
    "tests/attacks/",
    "tests/store/",
    "tests/sim/",
)
# How far the workers that do not have Spark step back (`nice`): they get a fifth of a core that both want.
BEHIND = 7


class Spreading(LoadScopeScheduling):  # type: ignore[misc]
    """What belongs together goes to one worker, in the order of `longest_first`."""

    together = (SPARK,)

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = (
            False  # by the number of tests, the longest files would be the last ones
        )
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in self.together if file.startswith(folder)), file)


class SlowSpreading(Spreading):
    """Nothing goes together but the tests of a file."""

    together = ()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The scheduler of a run."""
    return (SlowSpreading if config.option.markexpr == "slow" else Spreading)(config, log)


def place(nodeid: str) -> int:
    """How early a test has its turn."""
    return next((number for number, part in enumerate(LONG) if nodeid.startswith(part)), len(LONG))


def longest_first(items: list[pytest.Item]) -> None:
    """Put tests in the order in which workers take them; those of a file stay as they are."""
    items.sort(key=lambda item: place(item.nodeid))


class SteppingBack:
    """A worker that does not begin with Spark leaves the cores to the one that does."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if not item.nodeid.startswith(SPARK):
            os.nice(BEHIND)
        item.config.pluginmanager.unregister(self)
