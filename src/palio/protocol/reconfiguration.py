"""What brokers tell each other when a link takes the place of another one (`routing.reconfiguration`).

Only who has said in its `Hello` that it knows them is told any of it. All of it is a hint: what is lost, late
or made up costs rows that are told in vain, and nothing else.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from palio.protocol.base import Number, WireMessage
from palio.protocol.overlay import BrokerName
from palio.protocol.peers import Component

# Brokers that a message passes at the most (a guess: more than a network has from end to end).
MOST_STEPS = 1_024
Way: TypeAlias = Annotated[tuple[BrokerName, ...], msgspec.Meta(max_length=MOST_STEPS)]


class Flush(WireMessage, frozen=True):
    """All rows have been told on the link that joins this part with another one; they have passed before.

    The name of a part was made when a link was lost, so it says which loss is repaired. The message goes to
    the broker that has made it, or along a `way` of brokers, of which the receiver is the first one, to the
    other end of the lost link. `steps` counts how far it has come.
    """

    part: Component
    way: Way = ()
    steps: Number = 0
