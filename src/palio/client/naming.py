"""What a client calls itself if its user gave it no name: something that people recognise in reports.

`orders.py@host:4711-5f3a91c2` is the program, the machine and the process, and something by chance: a name must
not be used by two clients at a time, and containers are alike in all the rest.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import sys
from pathlib import Path

_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 40  # characters of the program, and of the machine


def default_name() -> str:
    """A name that no other client has."""
    return f"{_program()}@{_plain(_machine(), 'here')}:{os.getpid()}-{secrets.token_hex(4)}"


def _program() -> str:
    started = Path(sys.argv[0] if getattr(sys, "argv", None) else "")
    # `python -m package` starts the file __main__.py in its folder.
    name = started.parent.name if started.name == "__main__.py" else started.name
    return _plain("" if name in ("", "-c", "-m", "-") else name, "python")


def _machine() -> str:
    try:
        return socket.gethostname().partition(".")[0]
    except OSError:
        return ""


def _plain(text: str, otherwise: str) -> str:
    return _STRANGE.sub("-", text).strip("-")[:_LONGEST] or otherwise
