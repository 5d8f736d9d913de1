"""Leaving the network, as an operator asks for it: `palio leave`, and `client.leave`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from palio.broker.access.principal import Principal
from palio.broker.access.rights import Allowance
from palio.broker.extension import Extension, ExtensionRequest
from palio.model.errors import PalioError
from palio.routing.durable.leaving import CannotLeave

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

_QUEUE = (
    "documents that it has confirmed may wait for stages. When all of them are published, take the stages for "
    "which nobody waits out of its settings, and start it again."
)


class WrongWish(PalioError):
    """A request to leave that is none."""

    reason: str
    sentence = "The broker cannot be asked to leave like that: {reason}"


class LeaveWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator wants: to `look` only, to `try` whether it could, to `leave`, or to `stay` after all."""

    do: Literal["look", "try", "leave", "stay"] = "look"
    to: str = ""  # the neighbour that is to have the durable subscriptions
    parting: bool = False  # whether others may lose sight of each other


class LeaveRequests:
    """Lets the router of a broker leave, and tells how far it is."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker

    def extension(self) -> Extension:
        """What answers who asks."""
        request = ExtensionRequest("network.leave", self._answer, Allowance.FORGET)
        return Extension(name="leaving", requests=(request,))

    def _answer(self, argument: dict[str, Any], principal: Principal, session: str) -> dict[str, Any]:
        """Raises `WrongWish`, `NoJournal` and `CannotLeave`."""
        try:
            wish = msgspec.convert(argument, LeaveWish)
        except msgspec.ValidationError as problem:
            raise WrongWish(f"{problem}.") from None
        broker, router = self._broker, self._broker.router
        leaving = router.leaving
        if wish.do in ("try", "leave") and broker.documents.has_queue:
            raise CannotLeave(broker.settings.name, _QUEUE)
        if wish.do == "try" and not leaving.is_under_way:
            leaving.require_possible(wish.to, parting=wish.parting)
        elif wish.do == "leave":
            own = broker.documents.knowledge.own_subscription
            broker.carry_out(router.leave(wish.to, broker.now(), parting=wish.parting, own=own))
        elif wish.do == "stay":
            broker.carry_out(router.stay(broker.now()))
        found: dict[str, Any] = msgspec.to_builtins(leaving.status())
        return found
