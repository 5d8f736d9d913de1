"""`Principal`: who is at the other end of a connection, and its rights as they are now."""

from __future__ import annotations

from palio.broker.access.rights import EVERYTHING, Allowance, Rights
from palio.model.errors import NotAllowed
from palio.model.explanation import Explanation
from palio.model.filter import Filter
from palio.model.notification import Notification


class Holder:
    """The rights of one principal, which change in place: whoever looks sees the current ones."""

    __slots__ = ("rights",)

    def __init__(self, rights: Rights) -> None:
        self.rights = rights


class Principal:
    """Who proved to be who, and by what: the id of a token, or a certificate.

    Where nobody has to, it is `ANYONE`, without a name, who may do everything.
    """

    __slots__ = ("_holder", "credential", "expires", "name")

    def __init__(self, name: str, holder: Holder, credential: str = "", expires: float | None = None) -> None:
        self.name = name
        self.credential = credential
        self.expires = expires  # of a certificate; tokens have it in their file
        self._holder = holder

    def __repr__(self) -> str:
        return f"<Principal {self.name or 'anyone'}>"

    @property
    def rights(self) -> Rights:
        """What it may do, now."""
        return self._holder.rights

    def may(self, allowance: Allowance) -> bool:
        return allowance in self._holder.rights.allow

    def require(self, allowance: Allowance, what: str) -> None:
        """Raises `NotAllowed` without a right that is not about content."""
        if not self.may(allowance):
            raise NotAllowed(self.name, what, f"that needs the right {allowance.value!r}.")

    # Names that are a principal's own

    def own(self, name: str) -> str:
        """What the network calls a session or a durable subscription that this principal calls so."""
        return f"{self.name}/{name}" if self.name else name

    def called(self, name: str) -> str:
        """What this principal calls it."""
        return name.removeprefix(f"{self.name}/") if self.name else name


ANYONE = Principal("", Holder(EVERYTHING))


def failed(explanation: Explanation) -> str:
    """The condition that failed, with what decided it."""
    for _, part in explanation.walk():
        if not part.parts and not part.holds:
            return f"{part.text} does not hold ({part.note})" if part.note else f"{part.text} does not hold"
    return f"{explanation.text} does not hold"


def sees(allowed: Filter | None, notification: Notification) -> bool:
    """Whether a right to see covers a notification."""
    return allowed is not None and allowed.matches(notification)
