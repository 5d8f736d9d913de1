"""`Rereading`: hot reload of tokens, rights and certificates, which may change at any time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from palio.broker.access import Access
from palio.broker.access.rights import Allowance
from palio.broker.registry import Registry
from palio.broker.tls import ServerTls
from palio.routing.scopes import SetScope
from palio.transport.tls import WrongCertificate

# Seconds after which what has changed counts at the latest.
_LOOK_EVERY = 0.5


@dataclass(eq=False, repr=False)
class Rereading:
    """Looks at the files now and then. `handle` lets the router take a message of a source."""

    _access: Access
    _registry: Registry
    _handle: Callable[[Any, str], None]
    _log: logging.Logger
    tls: ServerTls | None = None

    async def watch(self) -> None:
        """Look at the files again and again, for as long as this runs."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self.refresh()

    def refresh(self) -> None:
        """Read tokens, rights and certificates again if they have changed; they count from now on."""
        self.tell(self._access.refresh())
        for connection in list(self._registry.connections):
            problem = self._access.objection(connection.principal)
            if problem is not None and connection.is_live:
                connection.refuse(problem)
        try:
            if self.tls is not None and self.tls.refresh():
                self._log.info("The certificate was read again.")
        except WrongCertificate as problem:
            self._log.error("The certificate before stays in use.", extra={"reason": str(problem)})

    def tell(self, owners: Iterable[str]) -> None:
        """Tell the router what some owners may see and say."""
        for owner in sorted(owners):
            rights = self._access.rights_of(owner)
            inspects = Allowance.INSPECT in rights.allow
            self._handle(SetScope(owner, rights.subscribe, rights.publish, inspects), "")
