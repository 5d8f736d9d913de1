"""The program and a broker for it, as the tests of its commands have them; and tests that are coroutines."""

import pytest

from palio.cli.documents import files
from tests.cli.conftest import command, environment, live
from tests.client.conftest import pytest_pyfunc_call

__all__ = ["command", "environment", "live", "pytest_pyfunc_call"]


@pytest.fixture(autouse=True)
def soon_quiet(monkeypatch):
    """The broker is in this process: what waits there comes at once."""
    monkeypatch.setattr(files, "QUIET", 0.2)
