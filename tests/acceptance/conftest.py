"""Worked examples at brokers are coroutines."""

from tests.client.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
