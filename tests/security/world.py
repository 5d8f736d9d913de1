"""What tests of security share: a folder with tokens and rights, and brokers that ask for them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import palio
import palio.testing
from palio.broker.access.rights import Rights, parse_rights, write_rights
from palio.broker.access.tokens import create_token
from palio.broker.settings import Security

BROKERS = "brokers"
ADMIN = "admin"
EVERYTHING = ("inspect", "trace", "dlq", "journal", "forget", "links", "peer")


class World:
    """Principals with tokens and rights in one folder, which all brokers of a network share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokens: dict[str, str] = {}
        self.brokers: list[palio.testing.Broker] = []
        self.add(BROKERS, "true", "true", "peer")
        self.add(ADMIN, "true", "true", *EVERYTHING)
        (folder / "brokers.token").write_text(self.tokens[BROKERS] + "\n")

    def add(self, name: str, publish: str | None, subscribe: str | None, *allow: str) -> str:
        """A principal with rights and a token, which is returned."""
        self.grant(name, publish, subscribe, *allow)
        self.tokens[name] = self.token(name)
        return self.tokens[name]

    def token(self, name: str, **options: Any) -> str:
        return create_token(self.folder, name, now=time.time(), **options)[1]

    def grant(self, name: str, publish: str | None, subscribe: str | None, *allow: str) -> Rights:
        """Change rights; the brokers know at once."""
        rights = parse_rights(publish, subscribe, allow, name)
        write_rights(self.folder, name, rights)
        self.refresh()
        return rights

    def refresh(self) -> None:
        for broker in self.brokers:
            if broker.is_running:
                broker.running.refresh_access()

    def security(self, **settings: Any) -> Security:
        usual = {"folder": str(self.folder), "token_file": str(self.folder / "brokers.token")}
        return Security(authentication=True, **(usual | settings))

    def broker(self, *, security: dict[str, Any] | None = None, **settings: Any) -> palio.testing.Broker:
        broker = palio.testing.broker(security=self.security(**(security or {})), **settings)
        self.brokers.append(broker)
        return broker

    def network(self, links: list[tuple[str, str]], **settings: Any) -> palio.testing.Network:
        network = palio.testing.network(links, security=self.security(), **settings)
        self.brokers += network.brokers.values()
        return network

    def connect(self, address: str, who: str, **options: Any) -> palio.Client:
        return palio.connect(address, token=self.tokens[who], **options)
