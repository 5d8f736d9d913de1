"""lxml, which is optional and slow to import: loaded when the first document is read."""

from __future__ import annotations

from typing import Any

from palio.model.errors import MissingDependency


def etree_module() -> Any:
    try:
        from lxml import etree  # noqa: PLC0415  (optional, and slow to import)
    except ImportError:
        raise MissingDependency("lxml", "xml") from None
    return etree
