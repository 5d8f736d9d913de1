"""Tests of security may be coroutines, like those of clients."""

from tests.client.conftest import pytest_pyfunc_call  # noqa: F401
