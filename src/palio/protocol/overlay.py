"""What brokers tell each other that choose their links themselves (`routing.overlay`).

Only who has said a `Standing` in its `Hello` is told any of it. Addresses are those of machines, never names:
a name may be resolved elsewhere to somebody else.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from palio.protocol.base import Moment, Number, WireMessage

# Characters of the name of a broker, and of an address; and how many addresses are told at once (a guess: four
# times as many neighbours as a broker usually has).
BrokerName: TypeAlias = Annotated[str, msgspec.Meta(max_length=255)]
_Address: TypeAlias = Annotated[str, msgspec.Meta(max_length=255)]
MOST_CONTACTS = 32


class Contact(msgspec.Struct, frozen=True):
    """Where a broker can be reached, and how far it is from who tells, in seconds; 0 if nobody has measured."""

    broker: BrokerName
    address: _Address
    distance: Moment = 0.0


Contacts: TypeAlias = Annotated[tuple[Contact, ...], msgspec.Meta(max_length=MOST_CONTACTS)]


class Standing(msgspec.Struct, frozen=True):
    """Who says hello: where it can be reached, and how many brokers its part has.

    Who `asks` for the link made the name of its own part, and takes the name of the other one. Who `insists`
    has found nobody who would take it without exceeding a limit. `distance` is what it has measured. The
    `network` has a name where operators have given it one: those of different names do not link.
    """

    address: _Address
    size: Number = 1
    asks: bool = False
    insists: bool = False
    distance: Moment = 0.0
    network: BrokerName = ""


class Nearby(WireMessage, frozen=True):
    """The sender's other neighbours, and which of them is its `parent`.

    `size` counts brokers: to the parent, those on the sender's side; to all others, about, those of the part.
    """

    contacts: Contacts
    parent: BrokerName = ""
    size: Number = 1


class Suggest(WireMessage, frozen=True):
    """For who made the name of this part: a broker of a larger part, which it may ask for a link."""

    contact: Contact


# Addresses that a client is told of (a guess: as many neighbours as a broker usually has).
MOST_TOLD = 8


class OtherBrokers(WireMessage, frozen=True):
    """For clients that know this message: where other brokers of the network are, if this one should be gone.

    What was told before does not count any more. It came into this version of the protocol later
    (`vocabulary.OPTIONAL`).
    """

    addresses: Annotated[tuple[_Address, ...], msgspec.Meta(max_length=MOST_TOLD)]
