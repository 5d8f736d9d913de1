"""Origin check: which requests are taken at all, before anybody looks at what is wanted.

A browser lets any page send requests to any address, one of this machine too. So a request that says which page
it comes from (`Origin`) must come from this broker's own pages or from one that the settings name; and a broker
that is for this machine only must be called by its names, not by one that somebody has made to point here.

A page can also let its browser fetch an address without saying where it comes from: an image, a script, a link.
It learns nothing of the answer, but `GET /events` subscribes, and with `durable` it creates and acknowledges.
So who changes something without an `Origin` must not come from a page elsewhere:

- *Browsers of today* say by themselves what the page is to this broker (`Sec-Fetch-Site`). `same-origin` is a
  page of ours, also with an EventSource; `none` is somebody who typed the address; all else is a stranger's.
- *Browsers that do not say it* (old ones; all of them, over plain HTTP to another machine) are known by how
  they call themselves, and must name a page of ours as the one they come from (`Referer`): a page elsewhere can
  leave that out, but not forge it.
- *Programs*, such as curl, say none of this, and no page can make a browser look like one. Nor can it send a
  token without an `Origin`.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers

from palio.broker.gateway.settings import GatewaySettings
from palio.model.errors import PalioError, cut


class StrangeOrigin(PalioError):
    """A web page of another place."""

    origin: str = cut(200)
    sentence = (
        "Pages from {origin!r} may not call this broker; add it to the setting `gateway.origins` if they shall."
    )


class StrangePage(PalioError):
    """A request that changes something, from a web page of another place that does not say which."""

    site: str = cut(40)
    sentence = (
        "This would change something, and a web page of another place asks for it. Call from a page of this "
        "broker or from a program; or from a page whose origin is in the setting `gateway.origins`, by a "
        "request that names it (with CORS, as those of EventSource do)."
    )


class StrangeHost(PalioError):
    """A name that is not one of this machine, at a broker that is for this machine only."""

    host: str = cut(200)
    sentence = (
        "This broker is for this machine only, and {host!r} is no name of it; add it to the setting "
        "`gateway.hosts` if it is."
    )


class OriginGuard:
    """Checks the origin and the host of requests."""

    def __init__(self, settings: GatewaySettings, *, local: bool) -> None:
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.origins)
        self._hosts = frozenset(host.lower() for host in settings.hosts)
        self._local = local

    def require_known(self, headers: Headers, *, changes: bool) -> None:
        """Raises `StrangeHost`, `StrangeOrigin`, or `StrangePage` for what changes something."""
        host = headers.get("host", "").lower()
        if self._local and not self._is_local(host):
            raise StrangeHost(host)
        origin = headers.get("origin")
        if origin is not None:
            if not self._is_ours(origin, host):
                raise StrangeOrigin(origin)
        elif changes and "authorization" not in headers:
            self._require_own_page(headers, host)

    def _is_ours(self, origin: str, host: str) -> bool:
        known = origin.rstrip("/").lower()
        return known in self._origins or known.partition("://")[2] == host

    def _require_own_page(self, headers: Headers, host: str) -> None:
        site = headers.get("sec-fetch-site")
        if site is not None:
            if site.lower() not in ("same-origin", "none"):
                raise StrangePage(site)
        elif "mozilla/" in headers.get("user-agent", "").lower():
            scheme, _, rest = headers.get("referer", "").partition("://")
            if not self._is_ours(f"{scheme}://{rest.partition('/')[0]}", host):
                raise StrangePage("unknown")

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
