"""TLS for who connects: whom it trusts, and what it shows; and whether TLS is spoken somewhere at all."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import InitVar

from palio.model.errors import PalioError


class WrongCertificate(PalioError):
    """A certificate, a key or an authority that cannot be used."""

    file: str
    reason: InitVar[str]
    sentence = "{file} cannot be used for TLS: {reason}."


def client_context(authority: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """For who connects: the other end's certificate must be for its host, and signed by the authority.

    Without an authority, by one that the system trusts. The certificate, if there is one, shows who connects.
    Raises `WrongCertificate`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authority:
        load_authority(context, authority)
    else:
        context.load_default_certs()
    if certificate:
        load_certificate(context, certificate, key or certificate)
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


def load_authority(context: ssl.SSLContext, file: str) -> None:
    """Trust whom an authority signs. Raises `WrongCertificate`."""
    try:
        context.load_verify_locations(cafile=file)
    except (OSError, ssl.SSLError) as problem:
        raise WrongCertificate(file, _reason(problem)) from None


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Show a certificate. Raises `WrongCertificate`."""

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
