"""How notifications are written down: from a media type, or a file's name, to notifications and back.

`format_of` finds the format of a message (headers and a body), `file_format` that of a file. A new one is a
module of this folder and a line in `registry`; gateway, command line and Spark then know it.
"""

from palio.model.formats.binary import BINARY
from palio.model.formats.documents import from_document, to_json
from palio.model.formats.form import (
    FileFormat,
    Format,
    Message,
    Occurrence,
    Reading,
    is_json,
    is_xml,
    media_type_of,
)
from palio.model.formats.lines import JSON_LINES
from palio.model.formats.plain import JSON, PLAIN_JSON
from palio.model.formats.registry import WrongMediaType, file_format, format_of, read_message
from palio.model.formats.structured import BATCH, STRUCTURED

__all__ = [
    "BATCH",
    "BINARY",
    "JSON",
    "JSON_LINES",
    "PLAIN_JSON",
    "STRUCTURED",
    "FileFormat",
    "Format",
    "Message",
    "Occurrence",
    "Reading",
    "WrongMediaType",
    "file_format",
    "format_of",
    "from_document",
    "is_json",
    "is_xml",
    "media_type_of",
    "read_message",
    "to_json",
]
