"""What the routes take and give, for OpenAPI."""

from typing import Any

PUBLISH: dict[str, Any] = {}
STREAM: dict[str, Any] = {}
DOCS: dict[str, Any] = {}
