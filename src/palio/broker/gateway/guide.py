"""The gateway about itself: the first page, and what can be called, for people and as OpenAPI."""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from palio.broker.extension import Extension, Route
from palio.broker.gateway import openapi, pages
from palio.broker.gateway.call import Call, json_answer
from palio.broker.gateway.openapi import HTML, Given, Operation, good
from palio.model.formats import JSON
from palio.protocol.greeting import PROTOCOL

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """What this is, and where everything is."""

    broker: str
    protocol: Annotated[str, Meta(examples=[PROTOCOL])]
    links: dict[str, str]
    version: Annotated[str, Meta(description="Only where nobody has to say who they are.")] | UnsetType = UNSET


HOME = Operation(
    summary="What this is, and where everything is",
    answers={
        200: Given(
            "A page for who accepts `text/html`, otherwise the same for programs.", {JSON: Home, HTML: str}
        )
    },
)
DOCS = Operation(summary="This description, for people", answers=good("A page.", str, HTML))


class Guide:
    """Tells what there is, from the routes of all extensions."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker

    def extension(self) -> Extension:
        docs = "docs", "what can be called, for people"
        openapi = "openapi", "the same for machines (OpenAPI)"
        routes = (
            Route("GET", "/", self._home, HOME, open=True, reads=True),
            Route("GET", "/docs", self._docs, DOCS, open=True, reads=True, link=docs),
            Route("GET", "/openapi.json", self._openapi, open=True, reads=True, link=openapi),
        )
        return Extension(name="guide", routes=routes)

    def _routes(self) -> list[Route]:
        return [route for extension in self._broker.extensions for route in extension.routes]

    @cached_property
    def _document(self) -> dict[str, Any]:
        return openapi.document(f"Palio broker {self._broker.settings.name}", self._routes())

    async def _home(self, call: Call) -> Response:
        known = self._broker.access.is_on
        links = {route.link: route.path for route in self._routes() if route.link is not None}
        home = Home(
            broker=self._broker.settings.name,
            protocol=PROTOCOL,
            links={name: path for (name, _), path in links.items()},
            # Who has not said who they are need not know whom to attack with what.
            version=UNSET if known else version("palio"),
        )
        if "text/html" in call.headers.get("accept", "").lower():
            rows = [(path, sentence) for (_, sentence), path in links.items()]
            return pages.home(home.broker, home.version or "", rows, call.base, known=known)
        return json_answer(home, headers={"Vary": "Accept"})

    async def _docs(self, call: Call) -> Response:
        return pages.page(self._document, call.base, known=self._broker.access.is_on)

    async def _openapi(self, call: Call) -> Any:
        return self._document
