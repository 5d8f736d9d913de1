"""Cards of products: a family for tests, and documents of it."""

from palio.documents.family import Family, FamilyPath

CARD = Family(
    "card",
    "urn:test:card",
    "card",
    {"c": "urn:test:card"},
    key=("/c:card/c:code",),
    paths=(
        FamilyPath("/c:card/c:code", name="code"),
        FamilyPath("/c:card/c:brand", many=True, name="brand"),
        FamilyPath("/c:card/c:price", "float", name="price"),
    ),
)
PRICE = "/c:card/c:price"


def card(code="c1", brand="Acme", price=10):
    inner = f"<code>{code}</code><brand>{brand}</brand><price>{price}</price>"
    return f'<card xmlns="urn:test:card">{inner}</card>'.encode()


async def know_cards(broker):
    """Has a running broker know the family."""
    await broker.documents.families.add(lambda: CARD, CARD.name)
