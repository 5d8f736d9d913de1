"""How tests are spread over the workers of pytest-xdist: a file at a time, and all of Spark's to one of them.

What a module starts is then started once. Until a session of Spark has loaded what it needs, dozens of quick
tests could have been run in another one that has; meanwhile the other worker has the rest of the house to test.
The slow tests are worth a session on each worker.
"""

from __future__ import annotations

from typing import Any

import pytest

try:
    from xdist.scheduler import LoadScopeScheduling
except ImportError:  # then there are no workers
    LoadScopeScheduling = object


class Spreading(LoadScopeScheduling):  # type: ignore[misc]
    """What belongs together goes to one worker; the largest parts first."""

    together = ("tests/spark/",)

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
