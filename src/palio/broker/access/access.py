"""`Access`: the principals of a broker. The files may change while it runs, and count from then on.

What cannot be read leaves everything as it was: a mistake in a file neither opens a broker nor locks it.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from palio.broker.access import rights as of_rights
from palio.broker.access import tokens as of_tokens
from palio.broker.access.principal import ANYONE, Holder, Principal
from palio.broker.access.rights import NOTHING, Rights, WrongRights, read_rights
from palio.broker.access.tokens import Token, check_token, read_tokens, texts_for_digests
from palio.broker.files import Watched
from palio.model.errors import NotAuthenticated

CERTIFICATE = "certificate"
_log = logging.getLogger("palio.broker.access")


class Access:
    """Principals, tokens and rights of a folder. Without a folder everybody may do everything."""

    def __init__(self, folder: Path | None, now: Callable[[], float]) -> None:
        self.is_on = folder is not None
        self._folder = folder or Path()
        self._now = now
        self._tokens: dict[str, Token] = {}
        self._rights: dict[str, Rights] = {}
        self._holders: dict[str, Holder] = {}
        self._token_file = Watched(self._folder / of_tokens.FILE)
        self._rights_file = Watched(self._folder / of_rights.FILE)

    def open(self) -> None:
        """Read the files. Raises `WrongRights`."""
        if self.is_on:
            self._token_file.changed()
            self._rights_file.changed()
            self._tokens = read_tokens(self._folder)
            self._take(read_rights(self._folder))

    def authenticate(self, token: str | None, certificate: Mapping[str, Any] | None = None) -> Principal:
        """Who shows a token, or the certificate of its connection (as `ssl` gives it, verified).

        Raises `NotAuthenticated` or `TokenExpired`. Where authentication is off, it is `ANYONE`.
        """
        if not self.is_on:
            return ANYONE
        if token is not None:
            self._refresh_tokens()
            known = check_token(self._tokens, token, self._now())
            return Principal(known.principal, self._holder(known.principal), known.id)
        name = common_name(certificate)
        if name is None or certificate is None:
            raise NotAuthenticated("This broker wants to know who connects.")
        if name not in self._rights:
            raise NotAuthenticated("The name of this certificate has no rights here.")
        return Principal(name, self._holder(name), CERTIFICATE, _expires(certificate))

    def texts_for_digests(self, name: str) -> list[str]:
        """The tokens whose secrets are kept so that a digest can be checked, by their principal or id."""
        self._refresh_tokens()
        return texts_for_digests(self._tokens, name)

    def principal(self, name: str) -> Principal:
        """Somebody for whom the broker itself acts, with the rights of that name as they are then."""
        return Principal(name, self._holder(name)) if self.is_on else ANYONE

    def objection(self, principal: Principal) -> NotAuthenticated | None:
        """Why somebody who was let in may not stay: a token or a certificate that counts no more."""
        if not self.is_on or not principal.credential:
            return None
        reason = ""
        if principal.credential == CERTIFICATE:
            if principal.name not in self._rights:
                reason = "The name of this connection's certificate has no rights here any more."
            elif principal.expires is not None and principal.expires <= self._now():
                reason = "The certificate of this connection has expired."
        else:
            token = self._tokens.get(principal.credential)
            if token is None or token.principal != principal.name:
                reason = "The token of this connection was revoked."
            elif token.has_expired(self._now()):
                reason = "The token of this connection has expired."
        return NotAuthenticated(reason) if reason else None

    def rights_of(self, name: str) -> Rights:
        """The current rights of a principal; none if it is not known."""
        return self._rights.get(name, NOTHING)

    def principals(self) -> dict[str, Rights]:
        """All that have rights."""
        return dict(self._rights)

    def refresh(self) -> frozenset[str]:
        """Reads files again that have changed. Returns those principals whose rights did."""
        if self.is_on:
            self._refresh_tokens()
            if self._rights_file.changed():
                try:
                    return self._take(read_rights(self._folder))
                except WrongRights as problem:
                    _log.error("The rights cannot be read; those before stay.", extra={"reason": str(problem)})
        return frozenset()

    def _refresh_tokens(self) -> None:
        if self._token_file.changed():
            try:
                self._tokens = read_tokens(self._folder)
            except WrongRights as problem:
                _log.error("The tokens cannot be read; those before stay.", extra={"reason": str(problem)})

    def _take(self, rights: dict[str, Rights]) -> frozenset[str]:
        changed = frozenset(
            [name for name in {*self._rights, *rights} if self._rights.get(name) != rights.get(name)]
        )
        self._rights = rights
        for name, holder in self._holders.items():
            holder.rights = self.rights_of(name)
        return changed

    def _holder(self, name: str) -> Holder:
        return self._holders.setdefault(name, Holder(self.rights_of(name)))


def _expires(certificate: Mapping[str, Any]) -> float | None:
    end = certificate.get("notAfter")
    return None if end is None else float(ssl.cert_time_to_seconds(end))


def common_name(certificate: Mapping[str, Any] | None) -> str | None:
    """The name that a verified certificate is for; None if there is none, or it cannot be a principal's."""
    for part in (certificate or {}).get("subject", ()):
        for key, value in part:
            if key == "commonName":
                try:
                    return of_rights.require_name(value)
                except WrongRights:
                    return None
    return None
