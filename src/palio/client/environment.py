"""Credentials from the environment: how a program that nobody can ask shows brokers who it is.

It is the same that the command line reads: a token (`PALIO_TOKEN`, or the file `PALIO_TOKEN_FILE`), who signs
the certificates of brokers (`PALIO_AUTHORITY`), and a certificate of one's own (`PALIO_CERTIFICATE` and
`PALIO_KEY`). Tasks of Spark use it, since what is an option there is shown in plans and logs.
"""

from __future__ import annotations

import os
import ssl
from typing import TypedDict

from palio.client.address import is_secure
from palio.transport.tls import client_context
from palio.transport.tokens import read_token

TOKEN = "PALIO_TOKEN"
TOKEN_FILE = "PALIO_TOKEN_FILE"
AUTHORITY = "PALIO_AUTHORITY"
CERTIFICATE = "PALIO_CERTIFICATE"
KEY = "PALIO_KEY"


class ConnectCredentials(TypedDict):
    """What `palio.connect` takes."""

    token: str | None
    tls: ssl.SSLContext | None


def credentials(address: str) -> ConnectCredentials:
    """For an address. Raises `NoToken`, `WrongCertificate` and `WrongAddress`."""
    file = os.environ.get(TOKEN_FILE)
    token = read_token(file) if file else os.environ.get(TOKEN)
    if not is_secure(address):
        return {"token": token, "tls": None}
    files = (os.environ.get(name, "") for name in (AUTHORITY, CERTIFICATE, KEY))
    return {"token": token, "tls": client_context(*files)}
