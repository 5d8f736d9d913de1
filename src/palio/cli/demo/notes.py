"""The last page of the network's part of `palio demo`: an XML document, from a schema to its second version."""

from __future__ import annotations

from collections.abc import Callable

import palio
from palio.cli.program.extras import missing_of
from palio.client import Client, Subscription

FAMILY = "note"
FILTER = 'family note where xpath("/note/rating") = "buy" and note.target > 100'
_SCHEMA = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:example:note"
    elementFormDefault="qualified">
  <xs:element name="note"><xs:complexType><xs:sequence>
    <xs:element name="symbol" type="xs:string"/>
    <xs:element name="rating" type="xs:string"/>
    <xs:element name="target" type="xs:decimal"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>
"""


class NotesDiffer(Exception):
    """Something else came than what the document says."""


def note(symbol: str, rating: str, target: str) -> bytes:
    """What somebody thinks of a stock."""
    inner = f"<symbol>{symbol}</symbol><rating>{rating}</rating><target>{target}</target>"
    return f'<note xmlns="urn:example:note">{inner}</note>'.encode()


async def show_notes(
    adding: Client, reading: Client, publishing: Client, say: Callable[[str, str], None]
) -> None:
    """Publish documents at one broker, of a family that was added at another, for a reader at a third.

    Raises `NotesDiffer`, `TimeoutError`, and what the brokers refuse with.
    """
    say("\nDocuments", "bold")
    missing = missing_of("xml")
    if missing is not None:
        say(f"They are left out here. {missing}", "")
        return
    made = await adding.families.add(
        FAMILY, [("note.xsd", _SCHEMA)], ["target=/note/target"], key=["/note/symbol"]
    )
    say(
        f"A family of XML documents, {FAMILY}, is added at {adding.broker}; all five brokers know it. Somebody "
        f"at {reading.broker} asks by XPath:",
        "",
    )
    say(f"  {FILTER}", "cyan")
    async with await reading.subscribe(FILTER, ready="network", timeout=30.0) as subscription:
        expected = note("ACME", "buy", "120.50")
        await publishing.publish_document(note("EMCA", "sell", "130"))
        first = await publishing.publish_document(expected)
        await _require(subscription, expected)
        say(f"  {expected.decode()}", "dim")
        say(f"It was published at {publishing.broker}, read there once, and came byte for byte.", "")
        second = note("ACME", "buy", "99")
        confirmed = await publishing.publish_document(second)
        current = await publishing.document(FAMILY, "ACME", at_least=confirmed)
        if current.payload != second or confirmed.sequence <= first.sequence:
            raise NotesDiffer("The current version of a note is not the last one that was published.")
        say(f"A target of 99 supersedes it: that is the current note of ACME at {publishing.broker}.", "")
        try:
            await publishing.publish_document(note("ACME", "buy", "a lot"))
        except palio.RequestRefused as refused:
            say(f"And a target of 'a lot' is none: {refused.reason}", "dim")
        else:
            raise NotesDiffer("A note that does not keep to its schema was published.")
        third = note("ACME", "buy", "150")
        await publishing.publish_document(third)
        await _require(subscription, third)  # and nothing between them
        say("The next one above 100 comes again; those between, and one that says sell, did not.", "")
    await adding.families.remove(made["name"])


async def _require(subscription: Subscription, expected: bytes) -> None:
    event = await subscription.next(timeout=20.0)
    if event.payload != expected:
        raise NotesDiffer(f"{event.payload!r} came, and not {expected!r}.")
