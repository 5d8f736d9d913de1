"""A broker with families, as a process of its own: as `palio up` starts it, and as clients add them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import palio
from benchmarks.live.servers import PENDING_BYTES, Server, start_palio
from palio.documents import Family


def start_broker(
    folder: Path,
    families: Sequence[Family],
    *,
    store: str = "",
    pending: int = PENDING_BYTES,
    further: Sequence[str] = (),
) -> Server:
    """Started, with a journal that syncs, these families, and further options."""
    server = start_palio(folder, journal=True, store=store, pending=pending, further=further)
    asyncio.run(_add(server.port, families))
    return server


async def _add(port: int, families: Sequence[Family]) -> None:
    async with palio.connect(f"palio://127.0.0.1:{port}") as client:
        for one in families:
            paths: list[dict[str, Any]] = [
                {"expression": path.expression, "kind": path.kind, "many": path.many, "name": path.name}
                for path in one.paths
            ]
            await client.families.add(
                one.name,
                [(file.name, file.content) for file in one.schemas],
                paths,
                key=one.key,
                prefixes=one.prefixes,
                namespace=one.namespace,
                root=one.root,
            )
