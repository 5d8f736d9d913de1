"""`Idempotency-Key`: what is sent again with the same key is done once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from palio.broker.gateway.problems import WrongParameter

KEY_PATTERN = "^[!-~]{1,200}$"


def read_key(headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
    """The key of a request: that of the header, or the parameter `id`. Raises `WrongParameter`."""
    for name, given in (("Idempotency-Key", headers.get("idempotency-key")), ("id", query.get("id"))):
        if given is not None:
            if not re.fullmatch(KEY_PATTERN[1:-1], given):
                raise WrongParameter(name, "It has 1 to 200 characters, of ASCII and without spaces.")
            return given
    return None
