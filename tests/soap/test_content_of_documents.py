"""Documents that are subscribed to by XPath over SOAP, as WS-Notification writes it."""

import pytest

import palio
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import WANTED
from tests.broker.gateway.calling import calling
from tests.soap.speaking import EVENTS, S11, S12, by_content, create, pull, speak
from tests.soap.test_notify import ON

XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"


def by_xpath(expression, dialect=XPATH):
    declared = by_content(expression.replace("<", "&lt;"), dialect)
    return declared.replace("<tev:Filter>", '<tev:Filter xmlns:c="urn:test:card">')


@pytest.mark.parametrize("version", [S11, S12])
@pytest.mark.parametrize(
    ("expression", "keys"),
    [
        ("/c:card/c:price < 10", ["a", "b"]),
        ("boolean(/c:card/c:price < 10 and /c:card/c:brand = 'Zeta')", ["b"]),
        ("starts-with(/c:card/c:code, 'c') or not(/c:card/c:brand = 'Acme')", ["b", "c"]),
        ("count(/c:card/c:brand) > 1", ["b"]),
    ],
)
async def test_documents_are_selected_by_xpath(version, expression, keys):
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        await client.families.add("card", **WANTED)
        made = await speak(session, EVENTS, create(by_xpath(expression)), version=version)
        where = made.text("tev:SubscriptionReference/wsa:Address")
        for key, brand, price in (("a", "Acme", 5), ("b", "Zeta</brand><brand>Beta", 6), ("c", "Acme", 15)):
            await client.publish_document(card(key, brand, price))
        got = []
        while len(got) < len(keys):
            said = await speak(session, where, pull(), version=version)
            got += [one.text for one in said.root.iterfind(".//{urn:test:card}code")]
        assert got == keys


async def test_our_own_language_asks_documents_too():
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        await client.families.add("card", **WANTED)
        text = 'family card where xpath("/card/stock") = 3'
        made = await speak(session, EVENTS, create(by_content(text)))
        for number in (2, 3):
            document = card(f"c{number}").replace(b"</card>", f"<stock>{number}</stock></card>".encode())
            await client.publish_document(document)
        said = await speak(session, made.text("tev:SubscriptionReference/wsa:Address"), pull())
        assert [one.text for one in said.root.iterfind(".//{urn:test:card}code")] == ["c3"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("/c:card/c:prize < 10", "Did you mean /card/price"),
        ("/card/price < 10", "begins with the root"),
        ("/c:card/c:price <", "stands where"),
        ("/d:card", "bound to no namespace"),
    ],
)
async def test_what_selects_nothing_is_a_fault_with_the_reason(expression, said):
    async with calling(soap=ON) as (broker, session), palio.connect(broker.address) as client:
        await client.families.add("card", **WANTED)
        refused = await speak(session, EVENTS, create(by_xpath(expression)))
        assert refused.status in (400, 500)
        assert said in refused.reason
        assert refused.fault == "InvalidMessageContentExpressionFault"
