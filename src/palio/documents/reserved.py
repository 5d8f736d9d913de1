"""Attributes that say which document a notification is. They come from reading it, and from nobody else."""

from __future__ import annotations

from typing import Final

FAMILY: Final = "xml.family"
KEY: Final = "xml.key"  # the values of the key paths, joined by `/`
REVISION: Final = "xml.revision"  # of the family, as it was when the document was read
WITHDRAWN: Final = "xml.withdrawn"  # true, of a version that says that there is none any more

RESERVED: Final = frozenset((FAMILY, KEY, REVISION, WITHDRAWN))
# What the encoded attributes of a notification have in them if one of these is among them.
RESERVED_BYTES: Final = b"xml."
