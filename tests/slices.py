"""Slices of long series of tests: the first ones are run each time, all of them by `make slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

# How many examples a property is tried on, unless it says otherwise, where nothing is spared.
THOROUGH = 100


def sliced(values: Iterable[Any], quick: int) -> list[Any]:
    """Parameters of a test, of which all but the first `quick` are slow."""
    return [
        pytest.param(value, marks=() if place < quick else pytest.mark.slow)
        for place, value in enumerate(values)
    ]


def examples(thorough: int) -> settings:
    """Settings of a property that is tried on so many examples by `make slow`, on a share of them each time."""
    return settings(max_examples=max(1, thorough * settings.default.max_examples // THOROUGH))
