"""What a forked process does to stand in for one that was to be started: streams, signals, environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence


def stand_in(streams: Sequence[int], environment: Mapping[str, str]) -> None:
    """Takes over the three standard streams and the environment, with signals as they are at the start."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for place, one in enumerate(streams):
        os.dup2(one, place)
    for one in set(streams) - {0, 1, 2}:
        os.close(one)
    os.environ.clear()
    os.environ.update(environment)
