"""Which texts are about XML documents: whoever knows their families reads them (`documents.selection`)."""

from __future__ import annotations

import re
from typing import Final

from palio.model.errors import FilterError

_OPENING: Final = re.compile(r"\s*(?:family|FAMILY)\s+[\"`\w]")
_XPATH: Final = re.compile(r"\bxpath\(")
_ATTRIBUTE: Final = re.compile(r"\bxml\.family\b")


class UnknownFamilies(FilterError):
    """A filter about documents, read where nobody knows the families that there are."""

    def __init__(self) -> None:
        super().__init__(
            "This filter is about XML documents, and their families are not known here. A broker knows them: "
            "subscribe there, or have it say what the filter means (`client.families.read`, `palio explain`)."
        )


def is_selection(text: str) -> bool:
    """Whether a text has to be read by somebody who knows the families: it begins with `family`, has an XPath
    in it, or says `xml.family`. Of others it is certain that they do not.
    """
    return bool(_XPATH.search(text) or _OPENING.match(text) or _ATTRIBUTE.search(text))


def needs_families(text: str) -> bool:
    """Whether a text, which is no plain filter, is one about documents."""
    return bool(_XPATH.search(text) or _OPENING.match(text))
