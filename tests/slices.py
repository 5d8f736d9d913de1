"""Slices of long series of tests: the first ones are run each time, all of them by `make slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sliced(values: Iterable[Any], quick: int) -> list[Any]:
    """Parameters of a test, of which all but the first `quick` are slow."""
    return [
        pytest.param(value, marks=() if place < quick else pytest.mark.slow)
        for place, value in enumerate(values)
    ]
