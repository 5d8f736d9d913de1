"""WS-Security's UsernameToken: who calls, said in the envelope, as cameras and their clients do.

The user is a principal (or the id of a token), the password is the text of one of its tokens. It comes either
as it is, or as a digest: a hash over a nonce, the time of the request and the password. For the latter the
broker must know the password, so the token has to be one for digests.

1. Whoever is known by a password has the token's rights, and no others: both ways end in the same token.
2. A digest counts once. Its nonce is remembered as long as its time is near enough to count, and a time that is
   further away is refused: a request that somebody has overheard cannot be sent again.
3. What is remembered is bounded; what would exceed it is refused, and not forgotten.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import OrderedDict
from typing import TYPE_CHECKING

from palio.broker.gateway.arriving import NotNow
from palio.broker.soap.elements import Element, child, text_of
from palio.broker.soap.names import USERNAME_TOKEN, WSSE, WSU
from palio.broker.soap.termination import WrongTerm, read_moment, write_moment
from palio.model.errors import NotAuthenticated

if TYPE_CHECKING:
    from collections.abc import Callable

    from palio.broker.access import Access

# Seconds that the clock of a client may be apart. What the profile recommends as a minimum for keeping nonces.
APART = 300.0
# Nonces that are remembered: some 300 requests a second for as long as they count.
MAX_NONCES = 100_000
_LONGEST = 1_024  # characters of a name, a password or a nonce
_DIGEST = f"{USERNAME_TOKEN}#PasswordDigest"
_TEXT = (f"{USERNAME_TOKEN}#PasswordText", "")


class UsernameTokens:
    """Checks UsernameTokens, and remembers the nonces of digests."""

    def __init__(self, access: Access, now: Callable[[], float]) -> None:
        self._access = access
        self._now = now
        self._seen: OrderedDict[bytes, float] = OrderedDict()  # until when each nonce would count

    def token_of(self, security: Element | None) -> str | None:
        """The text of the token that a request is made with, if it says so. Raises `NotAuthenticated`."""
        said = child(security, WSSE, "UsernameToken")
        if said is None or not self._access.is_on:
            return None
        name, password = text_of(child(said, WSSE, "Username")), child(said, WSSE, "Password")
        given = text_of(password)
        if password is None or not given or len(name) > _LONGEST or len(given) > _LONGEST:
            raise NotAuthenticated("A UsernameToken needs a name, and a token as its password.")
        kind = password.get("Type", "")
        if kind in _TEXT:
            return self._of_text(name, given)
        if kind == _DIGEST:
            return self._of_digest(name, given, said)
        raise NotAuthenticated(f"A password of the type {kind[:200]!r} is not known here.")

    def _of_text(self, name: str, given: str) -> str:
        principal = self._access.authenticate(given)
        if name not in (principal.name, principal.credential):
            raise NotAuthenticated(f"The token that is shown as a password is not one of {name[:80]!r}.")
        return given

    def _of_digest(self, name: str, given: str, said: Element) -> str:
        written, created = text_of(child(said, WSSE, "Nonce")), text_of(child(said, WSU, "Created"))
        if not written or not created or len(written) > _LONGEST:
            raise NotAuthenticated("A digest needs a Nonce, and when it was Created.")
        nonce = _decoded(written)
        try:
            moment = read_moment(created)
        except WrongTerm as problem:
            raise NotAuthenticated(str(problem)) from None
        now = self._now()
        if abs(now - moment) > APART:
            raise NotAuthenticated(
                f"The request was made at {created}, and here it is {write_moment(now)}; clocks may be "
                f"{APART:g} seconds apart. Ask GetSystemDateAndTime for the time here."
            )
        for text in self._access.texts_for_digests(name):
            hashed = hashlib.sha1(nonce + created.encode() + text.encode()).digest()
            if hmac.compare_digest(base64.b64encode(hashed).decode().encode(), given.encode(errors="replace")):
                self._remember(nonce, moment + APART, now)
                return text
        raise NotAuthenticated(
            f"The password of {name[:80]!r} is wrong, or there is no token for digests; "
            "`palio token create NAME --digest` makes one."
        )

    def _remember(self, nonce: bytes, until: float, now: float) -> None:
        while self._seen and next(iter(self._seen.values())) < now:
            self._seen.popitem(last=False)
        if self._seen.get(nonce, 0.0) >= now:
            raise NotAuthenticated("This request was made before: its nonce was used already.")
        if len(self._seen) >= MAX_NONCES:
            raise NotNow
        self._seen.pop(nonce, None)
        self._seen[nonce] = until


def _decoded(written: str) -> bytes:
    try:
        return base64.b64decode(written, validate=True)
    except (binascii.Error, ValueError):
        raise NotAuthenticated("The Nonce of a digest is written in base64.") from None
