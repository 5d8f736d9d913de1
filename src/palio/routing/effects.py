"""What a broker wants done: the only way in which the routing core touches the world.

The shell around it, a real broker or the simulator, carries the effects out in the order in which they are
returned. Messages to one neighbour arrive in the order in which they were sent, or the link is down.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from palio.protocol import vocabulary
from palio.protocol.envelope import Envelope
from palio.protocol.sharing import SharedRecord
from palio.routing.durable.effects import Hand, HasLeft, ReportForgotten, ReportGap, StoreEffect
from palio.routing.overlay.effects import OverlayEffect


class Send(msgspec.Struct, frozen=True, gc=False):
    """A message for a neighbour."""

    broker: str
    message: vocabulary.BrokerMessage


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Notifications for a session, one copy of each; they satisfy its subscriptions that `handles` names."""

    session: str
    envelopes: tuple[Envelope, ...]
    handles: tuple[str, ...]


class Reply(msgspec.Struct, frozen=True, gc=False):
    """An answer for a session."""

    session: str
    answer: vocabulary.Answer | vocabulary.DurableAnswer | vocabulary.InquiryAnswer


class CloseLink(msgspec.Struct, frozen=True, gc=False):
    """This link must not be used; the neighbour has been told, where it could be.

    `why` says in a word what speaks against it, where there is one (`overlay.manager.REASONS`).
    """

    broker: str
    reason: str
    why: str = ""


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Call `on_timer` with this name at that time; a timer of the same name is replaced."""

    name: str
    at: float


class SharedChanged(msgspec.Struct, frozen=True, gc=False):
    """These versions of shared records count from now on, whoever has put them."""

    records: tuple[SharedRecord, ...]


class SharedReady(msgspec.Struct, frozen=True, gc=False):
    """What was put with these tokens is where it was to be: on disk, here or everywhere in reach."""

    tokens: tuple[int, ...]


SharedEffect: TypeAlias = SharedChanged | SharedReady
Effect: TypeAlias = (
    Send
    | Deliver
    | Reply
    | CloseLink
    | SetTimer
    | SharedEffect
    | OverlayEffect
    | Hand
    | ReportGap
    | ReportForgotten
    | HasLeft
    | StoreEffect
)
