"""Settings for the whole run: hypothesis prints what reproduces a failure, and knows busy machines."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.budgets import pytest_terminal_summary  # noqa: F401 - at the end of a run

settings.register_profile("palio", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("palio")

ROOT = Path(__file__).parent.parent


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
