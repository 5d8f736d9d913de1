"""Elements of XML: made by name and text, and looked through by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from lxml import etree

from palio.broker.soap.names import PREFIXES, qualified

Element: TypeAlias = Any  # of lxml, which has no types

# What XML 1.0 cannot say at all, not even by a reference.
_UNSAYABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def sayable(text: str) -> str:
    """A text with what XML has no way to write replaced by U+FFFD."""
    return _UNSAYABLE.sub("\ufffd", text)


def make(namespace: str, name: str, /, *content: Element | str | None, **attributes: str) -> Element:
    """An element with attributes of no namespace, a text, and children. None is left out."""
    made = etree.Element(qualified(namespace, name), nsmap=_PREFIX_OF.get(namespace))
    for key, value in attributes.items():
        made.set(key, sayable(value))
    for one in content:
        if isinstance(one, str):
            made.text = sayable(one)
        elif one is not None:
            made.append(one)
    return made


_PREFIX_OF = {uri: {prefix: uri} for prefix, uri in PREFIXES.items()}


def children(parent: Element) -> Iterator[Element]:
    """The elements within one, without comments and processing instructions."""
    for child in parent:
        if isinstance(child.tag, str):
            yield child


def child(parent: Element | None, namespace: str, name: str) -> Element | None:
    """The first child of that name, if there is a parent and it has one."""
    return None if parent is None else parent.find(qualified(namespace, name))


def text_of(element: Element | None) -> str:
    """The text of an element, without space around it; of none, nothing."""
    return "" if element is None else "".join(element.itertext()).strip()
