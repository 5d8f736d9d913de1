"""Subscriptions over HTTP: the routes of `Subscriptions`."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from palio.broker.extension import Extension, Route
from palio.broker.gateway import description
from palio.broker.gateway.call import Call, json_answer
from palio.broker.gateway.parameters import read_key
from palio.broker.gateway.sinks import Sinks
from palio.broker.gateway.subscriptions import Subscriptions

_ALL, _ONE = "/subscriptions", "/subscriptions/{id}"


class Resources:
    """What can be done with subscriptions by requests."""

    def __init__(self, subscriptions: Subscriptions, sinks: Sinks) -> None:
        self._subscriptions = subscriptions
        self._sinks = sinks

    def extension(self) -> Extension:
        """Subscriptions, as a part of the gateway."""
        link = "subscriptions", "durable subscriptions that were made over HTTP"
        routes = (
            Route("POST", _ALL, self._create, description.CREATE),
            Route("GET", _ALL, self._list, description.LIST, reads=True, link=link),
            Route("GET", _ONE, self._get, description.GET, reads=True),
            Route("PUT", _ONE, self._update, description.UPDATE),
            Route("DELETE", _ONE, self._delete, description.DELETE),
            Route("POST", f"{_ONE}/pause", self._pause, description.PAUSE),
            Route("POST", f"{_ONE}/resume", self._resume, description.RESUME),
            Route("POST", f"{_ONE}/seek", self._seek, description.SEEK),
        )
        return Extension(name="subscriptions", routes=routes, start=self._start, stop=self._stop)

    async def _start(self) -> None:
        """Go on with what was kept. Raises `UnreadableDefinitions`."""
        self._sinks.open()
        await self._subscriptions.start()

    async def _stop(self) -> None:
        await self._subscriptions.stop()
        await self._sinks.close()

    async def _create(self, call: Call) -> Response:
        key = read_key(call.headers, {})
        shown, new = await self._subscriptions.create(await call.document(), key, call.enter)
        return json_answer(shown, 201 if new else 200, {"Location": f"{_ALL}/{shown['id']}"})

    async def _list(self, call: Call) -> Any:
        return await self._subscriptions.all(call.enter)

    async def _get(self, call: Call) -> Any:
        return await self._subscriptions.get(call.path["id"], call.enter)

    async def _update(self, call: Call) -> Any:
        return await self._subscriptions.update(call.path["id"], await call.document(), call.enter)

    async def _delete(self, call: Call) -> Response:
        await self._subscriptions.delete(call.path["id"], call.enter)
        return Response(status_code=204)

    async def _pause(self, call: Call) -> Any:
        return await self._subscriptions.pause(call.path["id"], call.enter)

    async def _resume(self, call: Call) -> Any:
        return await self._subscriptions.resume(call.path["id"], call.enter)

    async def _seek(self, call: Call) -> Any:
        return await self._subscriptions.seek(call.path["id"], await call.document(), call.enter)
