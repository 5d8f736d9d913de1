"""Settings for the whole run: how many examples properties are tried on, and where the project lies.

Hypothesis has two profiles: every run is `quick`; `make slow`, and whoever says `PALIO_EXAMPLES=thorough`, has
five times as many examples. A test that needs more or fewer than others says so with `tests.slices.examples`.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.budgets import pytest_terminal_summary  # noqa: F401 - at the end of a run
from tests.slices import THOROUGH
from tests.spreading import (
    SteppingBack,
    longest_first,
    pytest_xdist_make_scheduler,  # noqa: F401 - who tests what
)

COMMON = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=THOROUGH // 5, **COMMON)
settings.register_profile("thorough", max_examples=THOROUGH, **COMMON)

ROOT = Path(__file__).parent.parent


def wants_slow(config: pytest.Config) -> bool:
    """Whether the slow tests are to be run, and those alone."""
    return config.option.markexpr == "slow"


def is_worker(config: pytest.Config) -> bool:
    """Whether this is one of several processes that share the tests."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    named = os.environ.get("PALIO_EXAMPLES")
    settings.load_profile("thorough" if named == "thorough" or wants_slow(config) else "quick")
    if is_worker(config) and not wants_slow(config):
        config.pluginmanager.register(SteppingBack())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With all of its examples, a property is one of the slow tests; and what is long comes first."""
    if is_worker(config):
        longest_first(items)
    if wants_slow(config):
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker("slow")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Data that lies beside the project on our machines and is not part of it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the shared data lies beside the project only on the builders' machines")
    return folder
