"""Webhooks: where events may be sent, whether the other side agrees, and the sending itself.

*Forgery.* Whoever names a sink lets the broker send requests, from where the broker stands. So it connects to
public addresses only, unless the settings name a network. What is looked at is the very address that a socket
is made for: whatever a name resolves to, now or at the next request, and however an address is written, passes
there. Redirects are not followed, proxies and cookies not used, and little is read of the answer.

*Abuse.* Before anything is sent to it, a webhook is asked whether it wants events from here: `OPTIONS`, as the
CloudEvents specification for webhooks has it.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from palio.broker.gateway.settings import GatewaySettings
from palio.model.errors import PalioError, cut

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(*written: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, written))


# What is public is said here and not left to the standard library, whose opinion changes with its version. Of
# IPv4, all but what IANA's registry of special-purpose addresses lists, and multicast.
_NOT_PUBLIC_4 = _networks(
    "0.0.0.0/8",  # this host, this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # behind a carrier's translation
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local, and the metadata services of clouds
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays of 6to4, deprecated
    "192.168.0.0/16",  # private
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
)
# Of IPv6, global unicast alone, and what is no way to write something else. So fec0::/10, fc00::/7, 5f00::/16,
# 64:ff9b:1::/48, 100::/64 and whatever else lies beside it need not be named.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = _networks(
    "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4, deprecated
    "3fff::/20",  # documentation
)
# Two ways to write an address of IPv4 in IPv6; others are not public, whatever they contain.
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
# What is read of an answer, so that its connection can be used again; longer ones cost their connection.
MAX_ANSWER = 4_096
MAX_CONNECTIONS = 128


class SinkNotAllowed(PalioError):
    """An address that events may not be sent to."""

    sink: str = cut(200)
    reason: str
    sentence = "Events cannot be sent to {sink!r}: {reason}"


class SinkNotReached(PalioError):
    """A webhook that does not answer."""

    sink: str = cut(200)
    reason: str
    sentence = "The webhook {sink!r} was not reached: {reason}"


class SinkDeclined(PalioError):
    """A webhook that does not want events from here."""

    sink: str = cut(200)
    reason: str
    sentence = (
        "The webhook {sink!r} has not agreed to get events: {reason} It has to answer OPTIONS with "
        "`WebHook-Allowed-Origin: *` or the origin that asks."
    )


class Answer(msgspec.Struct, frozen=True):
    """What a webhook has said."""

    status: int
    headers: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


def _forms(address: Address) -> Iterator[Address]:
    """An address, and those that are written within it."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            yield address.ipv4_mapped
        if address.sixtofour is not None:
            yield address.sixtofour
        if address.teredo is not None:
            yield from address.teredo
        if address in _TRANSLATED or address in _COMPATIBLE:
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def is_public(address: Address) -> bool:
    """Whether an address, however it is written, is one of the public network."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None or address in _TRANSLATED:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        else:
            return address in _GLOBAL_UNICAST and not any(address in one for one in _NOT_PUBLIC_6)
    return not any(address in one for one in _NOT_PUBLIC_4)


def require_form(sink: str) -> URL:
    """A sink as a URL. Raises `SinkNotAllowed` for what is no address of a webhook."""
    try:
        url = URL(sink)
        _ = url.port
    except (ValueError, IndexError) as problem:  # the library's own slip, for a user of brackets and no host
        raise SinkNotAllowed(sink, f"It is no URL ({problem}).") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise SinkNotAllowed(sink, "It is not of the form http://host/path or https://host/path.")
    if url.user is not None or url.password is not None:
        raise SinkNotAllowed(
            str(url.with_user(None)), "Put secrets into `sinkcredential`, not into the address."
        )
    if url.port == 0:
        raise SinkNotAllowed(sink, "There is no port 0.")
    return url


_refused: ContextVar[list[str] | None] = ContextVar("refused addresses", default=None)


class Sinks:
    """The way out to webhooks. `open` it in an event loop, and `close` it."""

    def __init__(self, settings: GatewaySettings, origin: str) -> None:
        self._settings = settings
        self._origin = origin
        self._allowed = _networks(*settings.sinks)
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        connector = aiohttp.TCPConnector(
            socket_factory=self._socket, limit=MAX_CONNECTIONS, use_dns_cache=False, enable_cleanup_closed=True
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._settings.push_within),
            auto_decompress=False,
            trust_env=False,
            headers={"User-Agent": "Palio"},
            skip_auto_headers=("Accept-Encoding",),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def allows(self, address: str) -> bool:
        """Whether the broker may connect to an address."""
        one = ipaddress.ip_address(address.partition("%")[0])
        if is_public(one):
            return True
        return any(form in network for form in _forms(one) for network in self._allowed)

    async def ask(self, sink: str) -> float | None:
        """Ask a webhook whether it wants events. Returns how many a minute, None for any number.

        Raises `SinkNotAllowed`, `SinkNotReached` or `SinkDeclined`.
        """
        if not self._settings.validate_sinks:
            return None
        answer = await self._request("OPTIONS", sink, {"WebHook-Request-Origin": self._origin}, b"")
        if not answer.is_good:
            raise SinkDeclined(sink, f"It answered OPTIONS with {answer.status}.")
        allowed = answer.headers.get("WebHook-Allowed-Origin", "").strip()
        if allowed not in ("*", self._origin):
            whom = repr(allowed[:100]) if allowed else "no origin"
            raise SinkDeclined(sink, f"It allows {whom}, and this is {self._origin!r}.")
        rate = answer.headers.get("WebHook-Allowed-Rate", "*").strip()
        return float(rate) if rate.isascii() and rate.isdigit() and 0 < len(rate) < 10 and int(rate) else None

    async def send(self, sink: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send an event. Raises `SinkNotAllowed` or `SinkNotReached`."""
        more = {"WebHook-Request-Origin": self._origin} if self._settings.validate_sinks else {}
        return await self._request("POST", sink, {**headers, **more}, body)

    async def _request(self, method: str, sink: str, headers: Mapping[str, str], body: bytes) -> Answer:
        assert self._session is not None
        url = require_form(sink)
        refused: list[str] = []
        token = _refused.set(refused)
        try:
            async with self._session.request(
                method, url, headers=headers, data=body or None, allow_redirects=False
            ) as response:
                await response.content.read(MAX_ANSWER)
                if not response.content.at_eof():
                    response.close()
                return Answer(response.status, response.headers)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            if refused:
                reason = f"{refused[0]} is no public address, and the setting `gateway.sinks` does not name it."
                raise SinkNotAllowed(sink, reason) from None
            raise SinkNotReached(sink, _told(problem)) from None
        finally:
            _refused.reset(token)

    def _socket(self, address: Any) -> socket.socket:
        """A socket for an address, if it may be connected to."""
        family, kind, protocol, _, place = address
        if not self.allows(place[0]):
            noted = _refused.get()
            if noted is not None:
                noted.append(place[0])
            raise PermissionError(f"{place[0]} is no public address")
        return socket.socket(family, kind, protocol)


def _told(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "It did not answer in time."
    if known := getattr(getattr(problem, "os_error", None), "strerror", None):
        return f"{known}."
    return f"{str(problem)[:200].rstrip('.') or type(problem).__name__}."
