"""What the scene asserts is explained as in the tests themselves."""

import pytest

pytest.register_assert_rewrite("tests.attacks.scene")
