"""What the scene asserts is explained as in the tests themselves."""

import pytest

from tests.broker.gateway.ticking import hasty_servers
from tests.client.conftest import pytest_pyfunc_call

__all__ = ["hasty_servers", "pytest_pyfunc_call"]

pytest.register_assert_rewrite("tests.attacks.scene")
