"""`quic://`: an ordered stream of bytes over UDP (RFC 9000), with TLS 1.3; it outlives a change of address.

Each connection has one stream; how that is bounded is said in `quic_bounds`, how it runs in `quic_streams`, and
how connections are taken in `quic_port`. They need aioquic, which is an extra, and so they are imported where
somebody dials or listens.

Whom a certificate is trusted for is said by the same `ssl.SSLContext` as for `palios://`. Only who was dialled
shows a certificate; who dials shows a token.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from palio.model.errors import MissingDependency
from palio.protocol.greeting import PROTOCOL
from palio.transport.interface import End
from palio.transport.tls import WrongCertificate, client_context

if TYPE_CHECKING:
    from aioquic.quic.configuration import QuicConfiguration

    from palio.transport.quic_port import QuicPort

# Seconds without a word after which a connection is forgotten, if no heartbeat sees it: as it begins and ends.
# Of one that is in use, heartbeats notice much earlier that the other end is dead.
_IDLE = 60.0
# Seconds that one of several addresses of a name has to answer, if nobody says that it is wrong (a guess).
_TRY_NEXT = 1.0
# Certificates of authorities, of which a system knows more than a hundred.
_FEW = 16
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


class Quic:
    """A host and a UDP port; `heartbeat` is how often those who listen there hear a word, in seconds."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None = None, *, heartbeat: float = 0.0
    ) -> None:
        self._place = host, port
        self._tls = tls
        self._idle = max(_IDLE, 6 * heartbeat)

    async def dial(self, make: Callable[[], End]) -> End:
        """A connection. Raises OSError, and `MissingDependency`."""
        configuration = _configuration(
            is_client=True, idle_timeout=self._idle, server_name=self._place[0], **_trust(self._tls)
        )
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(*self._place, type=socket.SOCK_DGRAM)
        problem: OSError = OSError("the name has no address")
        for number, (family, _, _, _, address) in enumerate(found):
            is_last = number == len(found) - 1
            try:
                async with asyncio.timeout(None if is_last else _TRY_NEXT):
                    return await _dial(family, address, configuration, make)
            except ssl.SSLError:
                raise
            except OSError as next_problem:
                problem = next_problem
        raise problem

    async def listen(
        self, make: Callable[[], asyncio.Protocol], certificate: str, key: str, *, handshake: float
    ) -> QuicServer:
        """Take connections from now on, and show a certificate; a handshake may take `handshake` seconds.

        Raises OSError, `WrongCertificate` and `MissingDependency`.
        """
        configuration = _configuration(is_client=False, idle_timeout=self._idle)
        server = QuicServer(configuration)
        server.show(certificate, key)
        from palio.transport.quic_port import QuicPort  # noqa: PLC0415 (there is the extra)

        loop = asyncio.get_running_loop()
        host, port = self._place
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                at = address[0], server.port or port, *address[2:]
                server.ports.append(QuicPort(configuration, family, at, make, handshake))
                server.port = server.ports[0].port
        except OSError:
            server.close()
            raise
        return server


class QuicServer:
    """The UDP port of a broker, at all addresses of its host."""

    def __init__(self, configuration: QuicConfiguration) -> None:
        self.port = 0
        self.ports: list[QuicPort] = []
        self._configuration = configuration

    def show(self, certificate: str, key: str) -> None:
        """The certificate, and its key, for all connections to come. Raises `WrongCertificate`."""
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 (it comes with aioquic)
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415
        from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

        try:
            chain = load_pem_x509_certificates(_read(certificate))
            found = _KEY.search(_read(key))
            if found is None:
                raise WrongCertificate(key, "it has no key")
            private = load_pem_private_key(found[0], None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise WrongCertificate(certificate, "it cannot be read") from None
        configuration = self._configuration
        configuration.certificate, *configuration.certificate_chain = chain
        configuration.private_key = private

    def close(self) -> None:
        """Take no more connections."""
        for port in self.ports:
            port.close()

    def abort(self) -> None:
        """End all connections, at once."""
        for port in self.ports:
            port.abort()


def _configuration(**given: Any) -> QuicConfiguration:
    try:
        from palio.transport.quic_bounds import bounded_configuration  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError:
        raise MissingDependency("aioquic", "quic") from None
    return bounded_configuration(alpn_protocols=[PROTOCOL], **given)


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as problem:
        raise WrongCertificate(file, problem.strerror or str(problem)) from None


def _trust(context: ssl.SSLContext | None) -> dict[str, Any]:
    """Whom a context trusts, in the words of aioquic."""
    if context is None:
        context = client_context()
    if context.verify_mode is ssl.CERT_NONE:
        return {"verify_mode": ssl.CERT_NONE}
    trusted, known = context.get_ca_certs(binary_form=True), context.cert_store_stats()
    paths = ssl.get_default_verify_paths()  # some are only read when they are needed, and so are not listed
    if not 0 < known["x509"] < _FEW and (paths.cafile or paths.capath):
        system = client_context()  # this takes some tens of milliseconds
        if known == system.cert_store_stats() and trusted == system.get_ca_certs(binary_form=True):
            return {"cafile": paths.cafile, "capath": paths.capath}
    return {"cadata": "".join(map(ssl.DER_cert_to_PEM_cert, trusted)).encode()}


async def _dial(
    family: int, address: tuple[Any, ...], configuration: QuicConfiguration, make: Callable[[], End]
) -> End:
    from palio.transport.quic_bounds import BoundedQuic  # noqa: PLC0415 (there is the extra)
    from palio.transport.quic_port import UdpSocket  # noqa: PLC0415
    from palio.transport.quic_streams import QuicEnd  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    made: asyncio.Future[End] = loop.create_future()

    def begin() -> asyncio.Protocol:
        protocol = make()
        own.tell_errors(False)
        loop.call_soon(_settle, made, protocol)
        return protocol

    def ended(end: QuicEnd, problem: OSError | None) -> None:
        if end.protocol is None:
            failed(problem or ConnectionResetError("the other end has closed it"))
        own.close()

    def failed(problem: OSError) -> None:
        if end.protocol is None and not made.done():
            made.set_exception(problem)

    def receive(data: bytes, source: tuple[Any, ...]) -> None:
        end.receive(data, source)

    anywhere = "::" if family == socket.AF_INET6 else "0.0.0.0"
    own = UdpSocket(family, (anywhere, 0), receive, failed)
    end = QuicEnd(BoundedQuic(configuration), own.send, begin, ended)
    own.tell_errors(True)
    end.connection.connect(address, now=loop.time())
    end.transmit_soon()
    try:
        return await made
    except BaseException:
        end.give_up("it was given up")
        raise


def _settle(made: asyncio.Future[End], protocol: End) -> None:
    if not made.done():
        made.set_result(protocol)
