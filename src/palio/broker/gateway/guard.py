"""Who may call at all, before anybody looks at what is wanted.

A browser lets any page send requests to any address, one of this machine too. So a request that says which page
it comes from (`Origin`) must come from this broker's own pages or from one that the settings name; and a broker
that is for this machine only must be called by a name of this machine, not by one that somebody has
made to point here.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers

from palio.broker.gateway.settings import GatewaySettings
from palio.model.errors import PalioError


class StrangeOrigin(PalioError):
    """A web page of another place."""

    origin: str

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"Pages from {origin[:200]!r} may not call this broker; add it to the setting `gateway.origins` if "
            "they shall.",
            origin=origin[:200],
        )


class StrangeHost(PalioError):
    """A name that is not one of this machine, at a broker that is for this machine only."""

    host: str

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This broker is for this machine only, and {host[:200]!r} is no name of it; add it to the setting "
            "`gateway.hosts` if it is.",
            host=host[:200],
        )


class Guard:
    """Looks at origins and hosts."""

    def __init__(self, settings: GatewaySettings, *, local: bool) -> None:
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.origins)
        self._hosts = frozenset(host.lower() for host in settings.hosts)
        self._local = local

    def require_known(self, headers: Headers) -> None:
        """Raises `StrangeHost` or `StrangeOrigin`."""
        host = headers.get("host", "").lower()
        if self._local and not self._is_local(host):
            raise StrangeHost(host)
        origin = headers.get("origin")
        if origin is None:
            return
        known = origin.rstrip("/").lower()
        if known in self._origins or known.partition("://")[2] == host:
            return
        raise StrangeOrigin(origin)

    def _is_local(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]")
        if name in ("", "localhost") or name.endswith(".localhost") or name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # an address cannot be made to point elsewhere
