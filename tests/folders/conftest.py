"""The program and a broker for it, as the tests of its commands have them."""

from tests.cli.conftest import command, environment, live

__all__ = ["command", "environment", "live"]
