"""What a request says beside its body: keys by which what is sent again is done once, and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

from palio.broker.gateway.openapi import Parameter
from palio.model.errors import WrongParameter

KEY_PATTERN = "^[!-~]{1,200}$"
_PLACE = "[^,@]+[/:][0-9]{1,18}(@[0-9a-z.-]{1,120})?"
POSITION_PATTERN = f"^{_PLACE}(,{_PLACE})*$"
Key = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": KEY_PATTERN})]
KEY = Parameter("Idempotency-Key", Key, "What is sent again with the same key is done once.", "header")
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?")


def read_key(headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
    """The key of a request: that of the header, or the parameter `id`. Raises `WrongParameter`."""
    keys = []
    for name, given in (("Idempotency-Key", headers.get("idempotency-key")), ("id", query.get("id"))):
        if given is not None:
            if not re.fullmatch(KEY_PATTERN[1:-1], given):
                raise WrongParameter(name, "It has 1 to 200 characters, of ASCII and without spaces.")
            keys.append(given)
    return keys[0] if keys else None


def read_flag(name: str, text: str) -> bool:
    """`true` or `false`. Raises `WrongParameter`."""
    if text not in ("true", "false"):
        raise WrongParameter(name, "It is `true` or `false`.")
    return text == "true"


def read_number(name: str, text: str, low: float, high: float) -> float:
    """A number as JSON writes it, within bounds. Raises `WrongParameter`."""
    if _NUMBER.fullmatch(text) and low <= float(text) <= high:
        return float(text)
    raise WrongParameter(name, f"It is a number from {low:g} to {high:g}.")
