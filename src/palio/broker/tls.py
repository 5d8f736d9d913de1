"""TLS: the contexts for ports and for connections. Certificates are read again when their files change.

A context that is in use takes a new certificate for all connections to come; those that are there stay as they
are. So nothing is interrupted when a certificate is renewed.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from palio.broker.files import Watched
from palio.model.errors import PalioError


class WrongCertificate(PalioError):
    """A certificate, a key or an authority that cannot be used."""

    file: str

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file} cannot be used for TLS: {reason}.", file=file)


class ServerTls:
    """The context of a broker's ports."""

    def __init__(self, certificate: str, key: str = "", authority: str = "") -> None:
        """Raises `WrongCertificate`."""
        self._certificate = certificate
        self._key = key or certificate
        self._files = [Watched(Path(one)) for one in (self._certificate, self._key)]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if authority:
            _load_authority(self.context, authority)
            self.context.verify_mode = ssl.CERT_OPTIONAL  # who shows none must have a token
        for file in self._files:
            file.changed()
        self._load()

    def refresh(self) -> bool:
        """Read the certificate again if it has changed; returns whether. Raises `WrongCertificate`."""
        changed = [file.changed() for file in self._files]  # each of them is asked
        if not any(changed):
            return False
        self._load()
        return True

    def _load(self) -> None:
        _load_certificate(self.context, self._certificate, self._key)


def client_context(authority: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """For who connects: the other end's certificate must be for its host, and signed by the authority.

    Without an authority, by one that the system trusts. The certificate, if there is one, shows who connects.
    Raises `WrongCertificate`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authority:
        _load_authority(context, authority)
    else:
        context.load_default_certs()
    if certificate:
        _load_certificate(context, certificate, key or certificate)
    return context


# What a handshake ends with if the other end does not speak TLS: as OpenSSL 3 calls it, and before.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"})


def is_without_tls(problem: ssl.SSLError) -> bool:
    """Whether a handshake failed because the other end does not speak TLS."""
    return problem.reason in _NO_TLS


async def speaks_tls(host: str, port: int, within: float) -> bool:
    """Whether TLS is spoken at a port, whatever the certificate: for who was cut off there without a word."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError as problem:
        return problem.reason is not None and not is_without_tls(problem)
    except OSError:  # also that it took too long
        return False
    writer.transport.abort()
    return True


def _load_authority(context: ssl.SSLContext, file: str) -> None:
    try:
        context.load_verify_locations(cafile=file)
    except (OSError, ssl.SSLError) as problem:
        raise WrongCertificate(file, _reason(problem)) from None


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    def no_passphrase() -> str:
        raise WrongCertificate(key, "the key asks for a passphrase; keep it without one, in a private file")

    try:
        context.load_cert_chain(certificate, key, no_passphrase)
    except (OSError, ssl.SSLError) as problem:
        which = certificate if certificate == key else f"{certificate} with {key}"
        raise WrongCertificate(which, _reason(problem)) from None


def _reason(problem: OSError) -> str:
    if isinstance(problem, ssl.SSLError):
        return (problem.reason or "it is no PEM file").replace("_", " ").lower()
    return problem.strerror or str(problem)
