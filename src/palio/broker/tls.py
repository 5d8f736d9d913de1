"""TLS for a broker's ports. Certificates are read again when their files change.

A context that is in use takes a new certificate for all connections to come; those that are there stay as they
are. So nothing is interrupted when a certificate is renewed.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from palio.broker.files import Watched
from palio.transport.tls import load_authority, load_certificate


class ServerTls:
    """The context of a broker's ports."""

    def __init__(self, certificate: str, key: str = "", authority: str = "") -> None:
        """Raises `WrongCertificate`."""
        self.files = certificate, key or certificate
        self.shown_by: Callable[[str, str], None] | None = None  # who else reads them when they have changed
        self._files = [Watched(Path(one)) for one in self.files]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if authority:
            load_authority(self.context, authority)
            self.context.verify_mode = ssl.CERT_OPTIONAL  # who shows none must have a token
        self.refresh()

    def refresh(self) -> bool:
        """Read the certificate if it has changed; returns whether. Raises `WrongCertificate`."""
        changed = True in [file.changed() for file in self._files]  # each of them is asked
        if changed:
            load_certificate(self.context, *self.files)
            if self.shown_by is not None:
                self.shown_by(*self.files)
        return changed
