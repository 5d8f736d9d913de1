"""The settings of documents (`[documents]`)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from palio.documents.stages import StageSetting
from palio.language import PALIO
from palio.model.amounts import Positive
from palio.model.values import MAX_PAYLOAD_BYTES


class DocumentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How documents are read. Each that is being read needs memory for its tree (`memory`)."""

    # Documents that are read at a time: only while it parses and validates, lxml lets other threads work.
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    keep: str = ""  # of all brokers, the current documents that this filter selects
    dialect: str = PALIO  # what it is written in
    size: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAYLOAD_BYTES)] = MAX_PAYLOAD_BYTES  # bytes of one document
    stages: tuple[StageSetting, ...] = ()  # what documents go through before they are read, in this order
    # Bytes of documents that were confirmed and wait on disk for stages; who publishes more is refused. As much
    # as may wait for the disk (`limits.unwritten`).
    queue: Positive = 64 * 1024 * 1024
