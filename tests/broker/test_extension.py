"""Extensions: one with all that there can be, closed by default, and with an error in each of its parts."""

import asyncio

import aiohttp
import pytest
from starlette.responses import HTMLResponse
from starlette.websockets import WebSocket

import palio
from palio import testing
from palio.broker.extension import Extension, ExtensionConflict, Job, Question, Route, Socket
from palio.broker.gateway.settings import GatewaySettings
from tests.broker.gateway.calling import problem
from tests.security.world import World


class Unready(palio.PalioError):
    """What an extension may say when it cannot begin."""


class Counting:
    """Counts: by a route, by a question, by the clock; and does everything wrong that can be."""

    def __init__(self, name="counting", *, starts=None, stops=None, log=None):
        self.name, self.count, self.worked = name, 0, asyncio.Event()
        self.log = [] if log is None else log
        self.fails_to_start, self.fails_to_stop = starts, stops

    def __call__(self, broker):
        self.broker = broker
        routes = (
            Route("GET", "/counting", self.look),
            Route("POST", "/counting", self.add),
            Route("GET", "/counting/broken", self.broken),
            Route("GET", "/counting/page", self.page, open=True, reads=True, link=("counting", "how many")),
        )
        return [
            Extension(
                name=self.name,
                routes=routes,
                sockets=(
                    Socket("/counting/socket", self.socket),
                    Socket("/counting/broken/socket", self.broken),
                ),
                questions=(
                    Question("count", self.answer),
                    Question("count of mine", self.answer, needs=None),
                    Question("broken count", self.broken_answer),
                ),
                jobs=(Job("work", 0.01, self.work), Job("broken work", 0.01, self.broken)),
                start=self.start,
                stop=self.stop,
            )
        ]

    async def start(self):
        self.log.append(f"{self.name} starts")
        if self.fails_to_start is not None:
            raise self.fails_to_start

    async def stop(self):
        self.log.append(f"{self.name} stops")
        if self.fails_to_stop is not None:
            raise self.fails_to_stop

    async def look(self, call):
        return {"count": self.count, "who": call.principal.name}

    async def add(self, call):
        self.count += (await call.document())["add"]
        return await self.look(call)

    async def page(self, call):
        return HTMLResponse(f"<p>{self.count}")

    async def socket(self, connection: WebSocket):
        await connection.accept()
        await connection.send_text(str(self.count))
        await connection.close()

    async def broken(self, call=None):
        self.log.append("tried")
        raise RuntimeError("a mistake")

    async def work(self):
        self.worked.set()

    def answer(self, argument, principal):
        yield {"count": self.count, "of": argument.get("of", principal.name)}

    def broken_answer(self, argument, principal):
        yield {"count": 1}
        raise RuntimeError("a mistake")


def running(*extensions, **settings):
    return testing.broker(http=True, extensions=extensions, **settings)


async def test_its_routes_pages_and_work_are_those_of_the_broker():
    counting = Counting()
    broker = running(counting)
    async with broker, aiohttp.ClientSession(broker.url) as session:
        async with session.post("/counting", json={"add": 2}) as answer:
            assert (answer.status, await answer.json()) == (200, {"count": 2, "who": ""})
        assert await (await session.get("/counting/page")).text() == "<p>2"
        assert (await (await session.get("/")).json())["links"]["counting"] == "/counting/page"
        assert "how many" in await (await session.get("/", headers={"Accept": "text/html"})).text()
        async with session.ws_connect("/counting/socket") as socket:
            assert await socket.receive_str() == "2"
        answer = await session.delete("/counting")
        assert (await problem(answer, 405, "WrongMethod"))["allowed"] == "GET, POST"
        await asyncio.wait_for(counting.worked.wait(), 10)
    assert counting.log.count("counting starts") == counting.log.count("counting stops") == 1


async def test_whoever_calls_must_be_known_unless_a_route_is_open(tmp_path):
    world = World(tmp_path)
    world.add("anna", "true", "true")
    broker = world.broker(http=True, extensions=(Counting(),))
    async with broker, aiohttp.ClientSession(broker.url) as session:
        for method, path in (("GET", "/counting"), ("POST", "/counting"), ("GET", "/counting/broken")):
            answer = await session.request(method, path, json={"add": 1})
            await problem(answer, 401, "NotAuthenticated")
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect("/counting/socket")
        assert broker.running.extensions.failures["counting", "GET /counting/broken"] == 0  # it was not asked
        assert broker.statistics().refused == {"NotAuthenticated": 4}
        assert (await session.get("/counting/page")).status == 200
        anna = {"Authorization": f"Bearer {world.tokens['anna']}"}
        assert await (await session.get("/counting", headers=anna)).json() == {"count": 0, "who": "anna"}
        async with session.ws_connect("/counting/socket", headers=anna) as socket:
            assert await socket.receive_str() == "0"


async def test_the_guard_stands_before_its_routes():
    """A page elsewhere may lead to what only reads, and to nothing else, though it be a GET."""
    broker = running(Counting())
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Referer": "https://evil.example/"}
    async with broker, aiohttp.ClientSession(broker.url) as session:
        await problem(await session.get("/counting", headers=elsewhere), 403, "StrangePage")
        await problem(await session.post("/counting", json={}, headers=elsewhere), 403, "StrangePage")
        assert (await session.get("/counting/page", headers=elsewhere)).status == 200
        for path in ("/counting", "/counting/page"):
            await problem(await session.get(path, headers={"Host": "evil.example"}), 403, "StrangeHost")
            evil = {"Origin": "https://evil.example"}
            await problem(await session.get(path, headers=evil), 403, "StrangeOrigin")


async def test_its_bodies_are_within_the_limits():
    broker = running(Counting(), gateway=GatewaySettings(body=100))
    async with broker, aiohttp.ClientSession(broker.url) as session:
        large = {"add": 1, "why": "x" * 100}
        await problem(await session.post("/counting", json=large), 413, "BodyTooLarge")
        packed = await session.post("/counting", json={"add": 1}, headers={"Content-Encoding": "gzip"})
        await problem(packed, 415, "EncodedBody")
        await problem(await session.post("/counting", data=b"{}"), 415, "WrongMediaType")
        cut = await session.post("/counting", data=b"{", headers={"Content-Type": "application/json"})
        await problem(cut, 400, "InvalidNotification")
        assert await (await session.get("/counting")).json() == {"count": 0, "who": ""}


async def test_an_error_is_answered_logged_and_counted_and_the_broker_goes_on(caplog):
    counting = Counting()
    broker = running(counting)
    async with broker, aiohttp.ClientSession(broker.url) as session:
        for _ in range(2):
            await problem(await session.get("/counting/broken"), 500, "BrokerMistake")
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect("/counting/broken/socket")
        while counting.log.count("tried") < 6:  # the work is tried again and again
            await asyncio.sleep(0.01)
        failures = broker.running.extensions.failures
        assert (
            failures["counting", "GET /counting/broken"] == failures["counting", "/counting/broken/socket"] == 2
        )
        assert failures["counting", "broken work"] >= 2
        assert failures["counting", "work"] == 0
        metrics = await (await session.get("/metrics")).text()
        assert 'palio_extension_failures_total{broker="broker",extension="counting",what="GET /coun' in metrics
        assert (await session.post("/events", json={"a": 1})).status == 200
    [told, *_] = [one for one in caplog.records if one.message == "An extension has failed."]
    assert (told.extension, str(told.exc_info[1])) == ("counting", "a mistake")


async def test_questions_need_the_right_to_inspect_unless_they_say_otherwise(tmp_path):
    world = World(tmp_path)
    world.add("anna", "true", "true")
    world.add("otto", "true", "true", "inspect")
    broker = world.broker(extensions=(Counting(),))  # without HTTP
    async with broker as address:
        async with world.connect(address, "anna") as anna:
            with pytest.raises(palio.PalioError, match="needs the right 'inspect'"):
                await anna.inspect("count")
            assert await anna.inspect("count of mine") == [{"count": 0, "of": "anna"}]
        async with world.connect(address, "otto") as otto:
            assert await otto.inspect("count", of="all") == [{"count": 0, "of": "all"}]
            with pytest.raises(palio.PalioError, match="this is its mistake"):
                await otto.inspect("broken count")
            with pytest.raises(palio.PalioError, match="there are broken count, clients, count"):
                await otto.inspect("nothing")
        assert broker.running.extensions.failures["counting", "broken count"] == 1


async def test_work_is_done_without_http_too():
    counting = Counting()
    async with testing.broker(extensions=(counting,)):
        await asyncio.wait_for(counting.worked.wait(), 10)


async def test_one_that_cannot_begin_for_a_mistake_stays_off():
    broken = Counting(starts=RuntimeError("a mistake"))
    broker = running(broken)
    async with broker, aiohttp.ClientSession(broker.url) as session:
        await problem(await session.get("/counting"), 500, "BrokerMistake")
        assert (await session.get("/health")).status == 200
        assert broker.running.extensions.failures == {("counting", "start"): 1}
        await asyncio.sleep(0.05)
    assert broken.log == ["counting starts"]  # and neither works nor ends


async def test_one_that_says_why_it_cannot_begin_keeps_the_broker_from_starting():
    broker = running(Counting(starts=Unready("The counts cannot be read.")))
    with pytest.raises(Unready, match="cannot be read"):
        await broker.start()


class Beside:
    """An extension that is only there."""

    def __init__(self, name, log, stops=None):
        self.name, self.log, self.fails = name, log, stops

    def __call__(self, broker):
        return [Extension(name=self.name, start=self.start, stop=self.stop)]

    async def start(self):
        self.log.append(f"{self.name} starts")

    async def stop(self):
        self.log.append(f"{self.name} stops")
        if self.fails is not None:
            raise self.fails


async def test_they_end_in_the_reverse_order_though_one_of_them_fails():
    log = []
    broker = running(*[Beside(name, log, stops=RuntimeError("a mistake")) for name in ("one", "two", "three")])
    async with broker:
        failures = broker.running.extensions.failures
    assert log == [f"{name} starts" for name in ("one", "two", "three")] + [
        f"{name} stops" for name in ("three", "two", "one")
    ]
    assert failures == {(name, "stop"): 1 for name in ("one", "two", "three")}


@pytest.mark.parametrize(
    ("extension", "what"),
    [
        (Extension(name="streams"), "an extension 'streams'"),
        (Extension(name="mine", routes=(Route("GET", "/events", None),)), "GET /events"),
        (Extension(name="mine", sockets=(Socket("/palio", None),)), "a socket at /palio"),
    ],
)
async def test_nothing_is_there_twice(extension, what):
    broker = running(lambda _: [extension])
    with pytest.raises(ExtensionConflict) as caught:
        await broker.start()
    assert caught.value.what == what


async def test_the_gateways_own_parts_are_extensions():
    broker = running()
    async with broker:
        own = {one.name: one for one in broker.running.extensions}
        parts = {"operations", "publishing", "streams", "subscriptions", "guide", "health", "websocket"}
        assert parts <= set(own)
        is_open = {route.path for one in own.values() for route in one.routes if route.open}
        assert is_open == {"/", "/docs", "/openapi.json", "/health"}
        gets = [route for one in own.values() for route in one.routes if route.method == "GET"]
        assert {route.path for route in gets if not route.reads} == {"/events"}
