"""An authority, and certificates that it has signed, as files."""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import trustme

import palio.testing
from palio.transport.tls import client_context
from tests.security.world import World


class Papers:
    """What one authority signs, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        self.ca = str(folder / "ca.pem")

    def sign(self, name: str, *hosts: str, until: datetime | None = None) -> tuple[str, str]:
        """A certificate and its key, for hosts or (none) for somebody who connects."""
        identities = hosts or ("somebody.example",)
        made = self.authority.issue_cert(*identities, common_name=name, not_after=until)
        file = quote(name, safe="")
        certificate, key = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        certificate.write_bytes(b"".join(one.bytes() for one in made.cert_chain_pems))
        key.write_bytes(made.private_key_pem.bytes())
        return str(certificate), str(key)

    def of(self, name: str, *, until: datetime | None = None) -> ssl.SSLContext:
        """For somebody who connects, and shows a certificate of that name."""
        return client_context(self.ca, *self.sign(name, until=until))


def secured(world: World, papers: Papers, **settings: object) -> palio.testing.Broker:
    """A broker that speaks TLS on all its ports, and knows who has a certificate of the authority."""
    certificate, key = papers.sign("siena", "127.0.0.1")
    security = {"certificate": certificate, "key": key, "authority": papers.ca}
    return world.broker(security=security, **settings)
