"""`/families`: put as a document or as a schema, listed, changed only if that breaks nothing, deleted."""

import base64

import pytest

import palio
from tests.broker.documents.cards import card
from tests.broker.documents.schema_of_cards import CARD_SCHEMA
from tests.broker.gateway.calling import calling, problem
from tests.security.world import World

XML = {"Content-Type": "application/xml"}
QUERY = [("path", "price=/card/price"), ("key", "/card/code")]
DOCUMENT = {
    "schemas": [{"name": "card.xsd", "content": CARD_SCHEMA.decode()}],
    "paths": ["price=/card/price", {"expression": "/card/brand", "name": "brand"}],
    "key": ["/card/code"],
}


async def test_a_family_is_put_published_to_changed_and_deleted():
    async with calling() as (broker, session), palio.connect(broker.address) as client:
        made = await session.put("/families/card", params=QUERY, data=CARD_SCHEMA, headers=XML)
        assert (made.status, made.headers["Location"]) == (201, "/families/card")
        shown = await made.json()
        assert (shown["revision"], [one["expression"] for one in shown["paths"]]) == (1, ["/card/price"])
        again = await session.put("/families/card", params=QUERY, data=CARD_SCHEMA, headers=XML)
        assert (again.status, await again.json()) == (200, shown)
        listed = await (await session.get("/families")).json()
        assert listed == await client.families.ls()
        answer = await session.post("/documents", data=card(), headers=XML)
        assert answer.status == 200
        subscription = await client.subscribe('`/card/brand` has "Acme"')
        changed = await (await session.put("/families/card", json=DOCUMENT)).json()
        assert (changed["revision"], len(changed["paths"])) == (2, 2)
        await session.post("/documents", data=card("c2"), headers=XML)
        assert (await subscription.next(timeout=10))["xml.key"] == "c2"
        whole = await (await session.get("/families/card")).json()
        assert whole["schemas"] == DOCUMENT["schemas"]
        assert (await session.delete("/families/card")).status == 204
        await problem(await session.get("/families/card"), 404, "UnknownFamily")


async def test_what_would_break_is_told_unless_it_is_forced(caplog):
    async with calling() as (_, session):
        await session.put("/families/card", json=DOCUMENT)
        params = {"without": "brand"}
        less = DOCUMENT | {"paths": DOCUMENT["paths"][:1]}
        refused = await problem(
            await session.put("/families/card", json=less, params=params), 409, "FamilyIncompatible"
        )
        assert "/card/brand would be gone" in refused["detail"]
        forced = await session.put("/families/card", json=less, params=params | {"force": "true"})
        assert (forced.status, (await forced.json())["broken"]) == (
            200,
            ["The path /card/brand would be gone."],
        )
        assert "changed by force" in caplog.text


@pytest.mark.parametrize(
    ("change", "params", "status", "error"),
    [
        ({"key": []}, {}, 400, "WrongParameter"),
        ({"keys": ["/card/code"]}, {}, 400, "WrongParameter"),
        ({"paths": ["/card/colour"]}, {}, 400, "UnknownPath"),
        ({"paths": ["/card["]}, {}, 400, "XPathSyntaxError"),
        ({"schemas": [{"name": "a"}]}, {}, 400, "WrongParameter"),
        ({"schemas": [{"name": "a", "base64": "%"}]}, {}, 400, "WrongParameter"),
        ({"schemas": [{"name": "a", "content": "<a"}]}, {}, 400, "SchemaRefused"),
        ({"schemas": [{"name": "a", "content": "\ud800"}]}, {}, 400, None),
        ({}, {"ready": "never"}, 400, "WrongParameter"),
        ({}, {"colour": "red"}, 400, "WrongParameter"),
        ({}, {"path": "/card/price"}, 400, "WrongParameter"),
    ],
)
async def test_what_is_wrong_is_told(change, params, status, error):
    async with calling() as (_, session):
        answer = await session.put("/families/card", json=DOCUMENT | change, params=params)
        if error is None:
            assert answer.status == status
        else:
            await problem(answer, status, error)
        assert await (await session.get("/families")).json() == []


async def test_bytes_in_another_encoding_come_and_go_as_base64():
    latin = CARD_SCHEMA.replace(
        b"<xs:schema", b"<?xml version='1.0' encoding='iso-8859-1'?><!-- \xe9 --><xs:schema"
    )
    async with calling() as (_, session):
        file = {"name": "card.xsd", "base64": base64.b64encode(latin).decode()}
        assert (await session.put("/families/card", json=DOCUMENT | {"schemas": [file]})).status == 201
        assert (await (await session.get("/families/card")).json())["schemas"] == [file]
        other = DOCUMENT | {"root": "other"}
        await problem(await session.put("/families/card", json=other), 400, "FamilyRefused")
        plain = await session.put("/families/a", data=b"x", headers={"Content-Type": "text/plain"})
        await problem(plain, 415, "WrongMediaType")


async def test_who_may_what(tmp_path):
    world = World(tmp_path)
    world.add("maker", None, None, "families")
    world.add("buyer", None, 'xml.family = "card" and `/card/price` < 5')
    world.add("other", 'xml.family in ("order", "bill")', 'xml.family = "order"')
    async with calling(security=world.security()) as (_, session):
        as_ = {name: {"Authorization": f"Bearer {world.tokens[name]}"} for name in world.tokens}
        await problem(await session.get("/families"), 401, "NotAuthenticated")
        for name in ("buyer", "other"):
            answer = await session.put("/families/card", json=DOCUMENT, headers=as_[name])
            await problem(answer, 403, "NotAllowed")
        assert (await session.put("/families/card", json=DOCUMENT, headers=as_["maker"])).status == 201
        for name, sees in (("maker", 1), ("buyer", 1), ("other", 0)):
            assert len(await (await session.get("/families", headers=as_[name])).json()) == sees
        await problem(await session.get("/families/card", headers=as_["other"]), 404, "UnknownFamily")
        await problem(await session.delete("/families/card", headers=as_["buyer"]), 403, "NotAllowed")
