"""Subscriptions over HTTP: the routes of `Subscriptions`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from palio.broker.extension import Extension, Job, Route
from palio.broker.gateway.call import Call, json_answer
from palio.broker.gateway.definitions import SubscriptionId
from palio.broker.gateway.openapi import COMMON, Given, Operation, Parameter, good
from palio.broker.gateway.parameters import KEY, read_key
from palio.broker.gateway.representations import (
    OnePlace,
    PausedSubscription,
    ShownSubscription,
    SoughtSubscription,
    Wish,
)
from palio.broker.gateway.sinks import Sinks
from palio.broker.gateway.subscriptions import Subscriptions
from palio.model.formats import JSON

EXPIRY_CHECKED_EVERY = 1.0  # seconds: nobody asks for shorter lives than that
_ALL, _ONE = "/subscriptions", "/subscriptions/{id}"

_ID = Parameter("id", Annotated[SubscriptionId, msgspec.Meta(min_length=1)], place="path")
_CHANGED = (400, 408, 413, 415, 501, *COMMON)
CREATE = Operation(
    summary="Make a subscription",
    description="A durable subscription in the shape of the CloudEvents Subscriptions API.",
    parameters=(KEY,),
    body={JSON: Wish},
    answers={
        201: Given("It is made, and on disk.", {JSON: ShownSubscription}, {"Location": "Where it is."}),
        200: Given("The same was made before.", {JSON: ShownSubscription}),
    },
    problems=(409, *_CHANGED),
)
LIST = Operation(
    summary="List one's subscriptions",
    answers=good("All that the caller has made.", list[ShownSubscription]),
    problems=COMMON,
)


def _one(summary: str, said: str, given: Any = ShownSubscription, **more: Any) -> Operation:
    """What is done with one subscription."""
    usual = {"problems": (404, 501, *COMMON), "answers": good(said, given), "parameters": (_ID,)}
    return Operation(summary=summary, **(usual | more))


GET = _one("Look at a subscription", "It, and how it is doing.", problems=(404, *COMMON))
UPDATE = _one(
    "Change a subscription",
    "It is changed.",
    description="Replaces what is wanted and where it goes; what waits to be delivered stays.",
    body={JSON: Wish},
    problems=(404, *_CHANGED),
)
DELETE = _one("End a subscription", "", answers={204: Given("It is gone.")})
PAUSE = _one(
    "Pause a subscription", "Nothing is delivered until it is resumed; what comes is kept.", PausedSubscription
)
RESUME = _one("Resume a subscription", "It delivers again.", PausedSubscription)
SEEK = _one(
    "Move a subscription to a time or a position",
    "It goes on from there; so many events that waited are dropped, or would be.",
    SoughtSubscription,
    description=(
        "What follows is delivered, also what had been acknowledged, as far back as journals and lakes go. "
        "What is before and was not acknowledged is dropped; with dry, it is only said how much that would be."
    ),
    body={JSON: OnePlace},
    problems=(404, *_CHANGED),
)


class Resources:
    """What can be done with subscriptions by requests."""

    def __init__(self, subscriptions: Subscriptions, sinks: Sinks) -> None:
        self._subscriptions = subscriptions
        self._sinks = sinks

    def extension(self) -> Extension:
        link = "subscriptions", "durable subscriptions that were made over HTTP"
        routes = (
            Route("POST", _ALL, self._create, CREATE),
            Route("GET", _ALL, self._list, LIST, reads=True, link=link),
            Route("GET", _ONE, self._get, GET, reads=True),
            Route("PUT", _ONE, self._update, UPDATE),
            Route("DELETE", _ONE, self._delete, DELETE),
            Route("POST", f"{_ONE}/pause", self._pause, PAUSE),
            Route("POST", f"{_ONE}/resume", self._resume, RESUME),
            Route("POST", f"{_ONE}/seek", self._seek, SEEK),
        )
        ending = Job("subscriptions that end", EXPIRY_CHECKED_EVERY, self._subscriptions.end_expired)
        return Extension(
            name="subscriptions", routes=routes, jobs=(ending,), start=self._start, stop=self._stop
        )

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
        return json_answer(shown, 201 if new else 200, {"Location": f"{_ALL}/{shown.id}"})

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
