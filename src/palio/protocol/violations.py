"""What the protocol does not allow."""

from __future__ import annotations

from palio.model.errors import PalioError


class ProtocolViolation(PalioError):
    """Something that the protocol does not allow, or not now."""

    reason: str
    sentence = "{reason}"
