"""Authentication and authorization: principals, their tokens and certificates, and their rights.

`Access.authenticate(token, certificate)` gives the `Principal`; its rights are filters, and always the current
ones. Errors are `NotAuthenticated`, `TokenExpired` and `NotAllowed`.
"""

from palio.broker.access.access import Access
from palio.broker.access.principal import ANYONE, Principal
from palio.broker.access.rights import WrongRights

__all__ = ["ANYONE", "Access", "Principal", "WrongRights"]
