"""What is said for the whole program about how brokers are shown who one is: `palio --token-file FILE …`."""

from __future__ import annotations

from contextvars import ContextVar

OPTIONS = ("token_file", "authority", "certificate", "key")
TOKEN_VARIABLE = "PALIO_TOKEN"
# By the names of the options; it goes before what is saved for a connection.
SAID: ContextVar[dict[str, str]] = ContextVar("credentials")
