"""Tests of security may be coroutines, like those of clients."""

from tests.broker.gateway.ticking import hasty_servers
from tests.client.conftest import pytest_pyfunc_call

__all__ = ["hasty_servers", "pytest_pyfunc_call"]
