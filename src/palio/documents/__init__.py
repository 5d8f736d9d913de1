"""XML documents as notifications: families of documents, their schemas and paths, and how they are read."""

from palio.documents.compiling import try_schemas
from palio.documents.errors import (
    DocumentRefused,
    DocumentTooLarge,
    FamilyIncompatible,
    FamilyRefused,
    ImpossibleCondition,
    SchemaRefused,
    UnknownFamily,
    UnknownPath,
    UnnamedFamily,
)
from palio.documents.family import Family, FamilyPath, SchemaFile
from palio.documents.family_paths import FamilyPaths, with_paths
from palio.documents.listing import ListedPath, PathType
from palio.documents.parsing import DocumentLimits, parse_document, thread_is_worn
from palio.documents.reading import DocumentReader, ReadDocument, root_name
from palio.documents.schemas import read_sources
from palio.documents.selection import Selection, read_selection
from palio.documents.typing import PathTyping
from palio.documents.validating import SchemaValidator
from palio.documents.values import FamilyCompletion, PathValues
from palio.documents.xpath_selection import xpath_selection

__all__ = [
    "DocumentLimits",
    "DocumentReader",
    "DocumentRefused",
    "DocumentTooLarge",
    "Family",
    "FamilyCompletion",
    "FamilyIncompatible",
    "FamilyPath",
    "FamilyPaths",
    "FamilyRefused",
    "ImpossibleCondition",
    "ListedPath",
    "PathType",
    "PathTyping",
    "PathValues",
    "ReadDocument",
    "SchemaFile",
    "SchemaRefused",
    "SchemaValidator",
    "Selection",
    "UnknownFamily",
    "UnknownPath",
    "UnnamedFamily",
    "parse_document",
    "read_selection",
    "read_sources",
    "root_name",
    "thread_is_worn",
    "try_schemas",
    "with_paths",
    "xpath_selection",
]
