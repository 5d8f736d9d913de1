"""The gateway about itself: the first page, and what can be called, for people and as OpenAPI."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from palio.broker.extension import Extension, Route
from palio.broker.gateway import description, pages
from palio.broker.gateway.call import Call, json_answer
from palio.protocol.greeting import PROTOCOL

if TYPE_CHECKING:
    from palio.broker.broker import Broker


class Guide:
    """Tells what there is, from the routes of all extensions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def extension(self) -> Extension:
        """The guide, as a part of the gateway."""
        docs = "docs", "what can be called, for people"
        openapi = "openapi", "the same for machines (OpenAPI)"
        routes = (
            Route("GET", "/", self._home, description.HOME, open=True, reads=True),
            Route("GET", "/docs", self._docs, description.DOCS, open=True, reads=True, link=docs),
            Route("GET", "/openapi.json", self._openapi, open=True, reads=True, link=openapi),
        )
        return Extension(name="guide", routes=routes)

    def _routes(self) -> list[Route]:
        return [route for extension in self._broker.extensions for route in extension.routes]

    def _document(self) -> dict[str, Any]:
        return description.document(f"Palio broker {self._broker.settings.name}", self._routes())

    async def _home(self, call: Call) -> Response:
        known = self._broker.access.is_on
        links = {route.link: route.path for route in self._routes() if route.link is not None}
        home: dict[str, Any] = {
            "broker": self._broker.settings.name,
            "protocol": PROTOCOL,
            "links": {name: path for (name, _), path in links.items()},
        }
        if not known:  # who has not said who they are need not know whom to attack with what
            home["version"] = version("palio")
        if "text/html" in call.headers.get("accept", "").lower():
            rows = [(path, sentence) for (_, sentence), path in links.items()]
            return pages.home(home, rows, call.base, known=known)
        return json_answer(home, headers={"Vary": "Accept"})

    async def _docs(self, call: Call) -> Response:
        return pages.page(self._document(), call.base, known=self._broker.access.is_on)

    async def _openapi(self, call: Call) -> Any:
        return self._document()
