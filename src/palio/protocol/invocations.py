"""Invocations: requests that an extension of the broker answers, of which the protocol knows the name only.

They came into this version of the protocol later, as may others (`vocabulary.LATER_REQUESTS`): a broker says in
its `Welcome` which of them it knows, and a client asks nothing else of it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from palio.protocol.base import Paired


class Invoke(Paired, frozen=True):
    """Ask for what an extension does under this name; the argument is plain data."""

    what: Annotated[str, msgspec.Meta(max_length=255)]
    argument: dict[str, Any] = msgspec.field(default_factory=dict)


class Invoked(Paired, frozen=True):
    """Answers `Invoke`, as plain data."""

    result: Any = None
