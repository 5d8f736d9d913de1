"""Cards of products of any size: a family with a schema, and documents of it, made from a seed.

A card has what the load tests of the source have: a code that comes again and again, for versions,
a brand, a supplier and a price. Measures give as many further paths as are asked for, and features its size.
"""

from __future__ import annotations

import random
from typing import Final

from palio.documents import Family, FamilyPath, SchemaFile

NAMESPACE: Final = "urn:palio:bench:card"
CODES: Final = 1_000  # different ones, so that there are versions
BRANDS: Final = 20
SUPPLIERS: Final = 10
GROUPS: Final = 10
MEASURES: Final = "abcde"
MOST_PATHS: Final = 3 + GROUPS * len(MEASURES)

_GROUP = "".join(f'<xs:element name="{one}" type="xs:decimal" minOccurs="0"/>' for one in MEASURES)
_SCHEMA = f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="{NAMESPACE}"
    targetNamespace="{NAMESPACE}" elementFormDefault="qualified">
<xs:complexType name="group"><xs:sequence>{_GROUP}</xs:sequence></xs:complexType>
<xs:complexType name="feature"><xs:sequence>
  <xs:element name="name" type="xs:token"/><xs:element name="value" type="xs:string"/>
</xs:sequence></xs:complexType>
<xs:element name="card"><xs:complexType><xs:sequence>
  <xs:element name="code" type="xs:token"/>
  <xs:element name="brand" type="xs:string"/>
  <xs:element name="supplier" type="xs:string"/>
  <xs:element name="price" type="xs:decimal"/>
  {"".join(f'<xs:element name="g{one}" type="group" minOccurs="0"/>' for one in range(GROUPS))}
  <xs:element name="feature" type="feature" minOccurs="0" maxOccurs="unbounded"/>
</xs:sequence></xs:complexType></xs:element></xs:schema>"""


def card_family(paths: int = 3) -> Family:
    """With so many paths: the brand, the supplier and the price first, then measures."""
    further = [f"/c:card/c:g{group}/c:{one}" for one in MEASURES for group in range(GROUPS)]
    if not 3 <= paths <= MOST_PATHS:
        raise ValueError(f"A card has 3 to {MOST_PATHS} paths, not {paths}.")
    return Family(
        "card",
        NAMESPACE,
        "card",
        {"c": NAMESPACE},
        schemas=(SchemaFile("card.xsd", _SCHEMA.encode()),),
        key=("/c:card/c:code",),
        paths=(
            FamilyPath("/c:card/c:brand"),
            FamilyPath("/c:card/c:supplier"),
            FamilyPath("/c:card/c:price", "float"),
            *[FamilyPath(one, "float") for one in further[: paths - 3]],
        ),
    )


def cards(count: int, kilobytes: float, *, measures: bool = False, seed: int = 1) -> list[bytes]:
    """So many cards, each of so many KB (of 1,000 bytes, and some twenty bytes more or less)."""
    draw = random.Random(seed)
    return [_card(draw, number, round(kilobytes * 1_000), measures) for number in range(count)]


def _card(draw: random.Random, number: int, size: int, measures: bool) -> bytes:
    parts = [
        f'<?xml version="1.0" encoding="UTF-8"?>\n<card xmlns="{NAMESPACE}">',
        f"<code>c{number % CODES}</code><brand>brand {draw.randrange(BRANDS)}</brand>",
        f"<supplier>supplier {draw.randrange(SUPPLIERS)}</supplier><price>{draw.uniform(1, 100):.2f}</price>",
    ]
    if measures:
        for group in range(GROUPS):
            inner = "".join(f"<{one}>{draw.randrange(1_000)}</{one}>" for one in MEASURES)
            parts.append(f"<g{group}>{inner}</g{group}>")
    left = size - sum(map(len, parts)) - len("</card>")
    place = 0
    while left > 70:
        text = f"{draw.randrange(10**9):09} as the catalogue of this year has it"[: left - 60]
        place += 1
        part = f"\n<feature><name>f{place}</name><value>{text}</value></feature>"
        parts.append(part)
        left -= len(part)
    parts.append("</card>")
    return "".join(parts).encode()
