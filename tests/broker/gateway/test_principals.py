"""Tokens and rights by HTTP are those of every other way in: nobody gets further by taking this one."""

import asyncio
import json

import aiohttp
import pytest

import palio
from palio.broker.access.tokens import read_tokens, revoke_tokens
from palio.protocol.encoding import decode, encode
from palio.protocol.frames import Frames, frame
from palio.protocol.greeting import PROTOCOL, Greet, Role
from tests.broker.gateway.calling import LOCAL, Stream, Webhook, problem
from tests.security.world import World


def bearing(world, who):
    return {"Authorization": f"Bearer {world.tokens[who]}"}


class Scene:
    """A broker that wants to know who comes, with two who may do different things."""

    def __init__(self, folder):
        folder.mkdir()
        self.world = World(folder)
        self.world.add("anna", 'shop = "siena"', 'shop = "siena"')
        self.world.add("bruno", 'shop = "lucca"', 'shop = "lucca"')
        self.broker = self.world.broker(journal=True, http=True, gateway=LOCAL)

    async def __aenter__(self):
        await self.broker.start()
        self.session = aiohttp.ClientSession(self.broker.url)
        return self

    async def __aexit__(self, *_):
        await self.session.close()
        await self.broker.stop()

    async def call(self, method, path, who=None, **more):
        headers = bearing(self.world, who) if who else {}
        return await self.session.request(method, path, headers=headers, **more)


async def test_an_unauthenticated_caller_can_do_nothing(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        for method, path, body in (
            ("POST", "/events", {"shop": "siena"}),
            ("GET", "/events", None),
            ("GET", "/events?durable=x", None),
            ("POST", "/subscriptions", {"id": "x"}),
            ("GET", "/subscriptions", None),
            ("GET", "/subscriptions/x", None),
            ("PUT", "/subscriptions/x", {}),
            ("DELETE", "/subscriptions/x", None),
            ("POST", "/subscriptions/x/pause", None),
            ("POST", "/subscriptions/x/resume", None),
            ("POST", "/subscriptions/x/seek", {"since": "all"}),
            ("GET", "/metrics", None),
        ):
            for token in (None, "wrong", "palio_" + "0" * 40):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                answer = await scene.session.request(method, path, json=body, headers=headers)
                found = await problem(answer, 401, "NotAuthenticated")
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
                assert token is None or token not in json.dumps(found)
        assert (await scene.call("GET", "/health")).status == 200
        assert scene.broker.running.router.durable.journal.head == 0
        async with scene.session.ws_connect("/palio") as socket:
            await socket.send_bytes(frame(encode(Greet(PROTOCOL, Role.CLIENT, "x"))))
            [payload] = Frames().feed((await socket.receive()).data)
            assert decode(payload).error == "NotAuthenticated"


async def test_rights_are_filters_here_too(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        stream = Stream(await scene.call("GET", "/events?filter=n>0", "anna"))
        assert (await scene.call("POST", "/events", "anna", json={"shop": "siena", "n": 1})).status == 200
        refused = await scene.call("POST", "/events", "anna", json={"shop": "lucca", "n": 1})
        found = await problem(refused, 403, "NotAllowed")
        assert (found["principal"], found["what"]) == ("anna", "publish this")
        assert found["missing"].startswith('shop = "siena" does not hold')
        await scene.call("POST", "/events", "bruno", json={"shop": "lucca", "n": 2})
        await scene.call("POST", "/events", "anna", json={"shop": "siena", "n": 3})
        assert [(await stream.data())["n"] for _ in range(2)] == [1, 3]
        history = await scene.call("GET", "/events?since=all&wait=0.2", "bruno")
        assert (await history.text()).count("data: ") == 1
        await problem(await scene.call("GET", "/metrics", "anna"), 403, "NotAllowed")
        assert (await scene.call("GET", "/metrics", "admin")).status == 200


async def test_a_subscription_is_its_owners(tmp_path):
    async with Scene(tmp_path / "access") as scene, Webhook() as hook:
        wish = {"id": "desk", "sink": hook.url, "filters": [{"palio": "n > 0"}]}
        assert (await scene.call("POST", "/subscriptions", "anna", json=wish)).status == 201
        await problem(await scene.call("GET", "/subscriptions/desk", "bruno"), 404, "UnknownSubscription")
        await problem(await scene.call("DELETE", "/subscriptions/desk", "bruno"), 404, "UnknownSubscription")
        assert await (await scene.call("GET", "/subscriptions", "bruno")).json() == []
        assert (await scene.call("POST", "/subscriptions", "bruno", json=wish)).status == 201  # another one
        await scene.call("POST", "/events", "anna", json={"shop": "siena", "n": 1})
        await scene.call("POST", "/events", "bruno", json={"shop": "lucca", "n": 2})
        called = [json.loads((await asyncio.wait_for(hook.requests.get(), 10))[1]) for _ in range(2)]
        assert sorted(one["n"] for one in called) == [1, 2]  # to each its own
        assert (await scene.call("DELETE", "/subscriptions/desk", "bruno")).status == 204
        # After a restart the broker pushes for its owner, whose token it does not know.
        await scene.broker.crash()
        await scene.broker.start()
        await scene.call("POST", "/events", "bruno", json={"shop": "lucca", "n": 3})
        await scene.call("POST", "/events", "anna", json={"shop": "siena", "n": 4})
        assert json.loads((await asyncio.wait_for(hook.requests.get(), 10))[1])["n"] == 4
        # Rights that were taken away are taken away from what is pushed, too.
        scene.world.grant("anna", 'shop = "siena"', 'shop = "siena" and n > 5')
        for n in (5, 6):
            await scene.call("POST", "/events", "anna", json={"shop": "siena", "n": n})
        assert json.loads((await asyncio.wait_for(hook.requests.get(), 10))[1])["n"] == 6


async def test_a_token_that_is_revoked_ends_what_it_has_begun(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        stream = Stream(await scene.call("GET", "/events", "anna"))
        assert (await scene.call("POST", "/events", "anna", json={"shop": "siena"})).status == 200
        await stream.next()
        folder = scene.world.folder
        revoke_tokens(folder, [id for id, token in read_tokens(folder).items() if token.principal == "anna"])
        scene.world.refresh()
        fields = await stream.next()
        assert (fields["event"], json.loads(fields["data"])["error"]) == ("end", "NotAuthenticated")
        await problem(
            await scene.call("POST", "/events", "anna", json={"shop": "siena"}), 401, "NotAuthenticated"
        )


async def test_by_websocket_with_a_token(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        address = scene.broker.url.replace("http", "ws", 1)
        async with palio.connect(address, token=scene.world.tokens["anna"]) as client:
            await client.publish({"shop": "siena"})
            with pytest.raises(palio.PalioError, match="may not publish"):
                await client.publish({"shop": "lucca"})
        with pytest.raises(palio.PalioError, match="token"):
            await palio.connect(address, token="wrong")


async def test_filters_are_compared_as_they_were_asked_for_and_not_as_rights_narrow_them(tmp_path):
    async with Scene(tmp_path / "access") as scene:
        for text in ("n > 1", "n > 1 or n > 2"):
            answer = await scene.call("GET", "/events", "anna", params={"durable": "desk", "filter": text})
            assert answer.status == 200
            answer.close()
        other = {"durable": "desk", "filter": 'n > 1 and shop = "siena"'}
        found = await problem(await scene.call("GET", "/events", "anna", params=other), 409, "FilterDiffers")
        assert (found["name"], found["present"]) == ("desk", "n > 1")
        await problem(await scene.call("DELETE", "/subscriptions/desk", "bruno"), 404, "UnknownSubscription")
        await problem(await scene.call("POST", "/subscriptions/desk/pause", "bruno"), 404, "NotHome")
        await problem(await scene.call("GET", "/subscriptions/desk", "bruno"), 404, "UnknownSubscription")
        assert await (await scene.call("GET", "/subscriptions", "bruno")).json() == []
        assert (await scene.call("GET", "/subscriptions/desk", "anna")).status == 200
        paused = await scene.call("POST", "/subscriptions/desk/pause", "anna")
        assert await paused.json() == {"id": "desk", "paused": True}
        assert (await scene.call("DELETE", "/subscriptions/desk", "anna")).status == 204
