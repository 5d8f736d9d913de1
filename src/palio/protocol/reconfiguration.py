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
# Bytes of the digest of a filter or an advertisement, and how many are told at once (a guess: what is left out
# is told in vain).
DIGEST_BYTES = 8
MOST_DIGESTS = 4_096
Digests: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=DIGEST_BYTES * MOST_DIGESTS)]
Way: TypeAlias = Annotated[tuple[BrokerName, ...], msgspec.Meta(max_length=MOST_STEPS)]


class Flush(WireMessage, frozen=True):
    """All rows have been told on the link that joins this part with another one; they have passed before.

    The name of a part was made when a link was lost, so it says which loss is repaired. The message goes to
    the broker that has made it; from there along a `way` of brokers, of which the receiver is the first one, to
    the other end of the lost link; and `back`, by those whom it has passed. `steps` counts how far it has come.
    """

    part: Component
    way: Way = ()
    back: Way = ()
    steps: Number = 0


class Prepare(WireMessage, frozen=True):
    """A new link is about to join this part with another one: to the broker that made the name of the part.

    It has come along the `way`, and the answer, an `Activate`, goes back on it.
    """

    part: Component
    way: Way = ()


class Activate(WireMessage, frozen=True):
    """What is not to be told on a new link, since only who is at the other end of it has wanted it: digests.

    With a `way`, of which the receiver is the first one, it goes to an end of the new link, with what the other
    end is not to tell (`others`). Without one it is for the receiver, which waits for it.
    """

    part: Component
    held: Digests = b""
    others: Digests = b""
    way: Way = ()
