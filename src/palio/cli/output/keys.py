"""A key that ends what is shown: in a terminal, single characters are read as they are typed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by(key: str) -> Iterator[asyncio.Event]:
    """An event that is set when the key is pressed; never, where standard input is no terminal.

    What is typed is not echoed meanwhile. Ctrl-C and Ctrl-Z mean what they always do.
    """
    pressed = asyncio.Event()
    try:
        import termios  # noqa: PLC0415 (not everywhere)
        import tty  # noqa: PLC0415
    except ModuleNotFoundError:
        yield pressed
        return
    if sys.stdin is None or not sys.stdin.isatty():
        yield pressed
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)

    def read() -> None:
        typed = os.read(descriptor, 1_024)
        if not typed:  # the terminal is gone
            loop.remove_reader(descriptor)
        if key.encode() in typed.lower():
            pressed.set()

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield pressed
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
