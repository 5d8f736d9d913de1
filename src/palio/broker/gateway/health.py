"""Health of the broker, and its metrics for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

from palio.broker.access.rights import Allowance
from palio.broker.extension import Extension, Route
from palio.broker.gateway.call import Call
from palio.broker.gateway.openapi import TEXT, Given, Operation, good
from palio.broker.metrics import Metrics

if TYPE_CHECKING:
    from palio.broker.broker import BrokerServer

HEALTH = Operation(
    summary="Whether the broker is well",
    answers={200: Given("It is.", {TEXT: str}), 503: Given("It cannot write, and why.", {TEXT: str})},
)
METRICS = Operation(
    summary="Metrics for Prometheus", answers=good("All of them.", str, TEXT), problems=(401, 403)
)


class Health:
    """Health and metrics, for whoever watches over a broker."""

    def __init__(self, broker: BrokerServer) -> None:
        self._broker = broker
        self._registry = CollectorRegistry()
        self._registry.register(Metrics(broker))

    def extension(self) -> Extension:
        well = "health", "whether the broker is well"
        counts = "metrics", "counts, for Prometheus"
        routes = (
            Route("GET", "/health", self.health, HEALTH, open=True, reads=True, link=well),
            Route("GET", "/metrics", self.metrics, METRICS, reads=True, link=counts),
        )
        return Extension(name="health", routes=routes)

    async def health(self, call: Call) -> Response:
        """Well, or (503) why not: the store cannot be written to."""
        store = self._broker.store
        waiting = store.statistics().waiting if store is not None else None
        text = f"not well: {waiting}\n" if waiting else "well\n"
        return Response(text, status_code=503 if waiting else 200, media_type="text/plain")

    async def metrics(self, call: Call) -> Response:
        """For who has the right to inspect, where anybody has to say who they are."""
        call.principal.require(Allowance.INSPECT, "see the metrics")
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
