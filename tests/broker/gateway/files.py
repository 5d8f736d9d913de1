"""Files that a process has open, as Linux shows them."""

import os
from pathlib import Path


def nameless(pid="self"):
    """Files in use that have no name any more."""
    found = []
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            place = os.readlink(one)
        except OSError:
            continue
        if place.endswith(" (deleted)"):
            found.append(place)
    return found
