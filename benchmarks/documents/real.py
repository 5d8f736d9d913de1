"""Real documents, where they are: public alerts (CAP) and electronic invoices (UBL), and families of them.

Their paths are all that lead to a text in any of the documents, found by looking; a path that may occur more
than once in one document is a list.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec
from lxml import etree

from palio.documents import DocumentReader, Family, FamilyPath, parse_document
from palio.model.errors import PalioError

FOLDER: Final = Path(__file__).resolve().parents[3] / "shared" / "data" / "xml"
PREFIXES: Final = {
    "cap": "urn:oasis:names:tc:emergency:cap:1.1",
    "ubl": "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2",
    "cac": "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
    "cbc": "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
}
MOST_PATHS: Final = 200
_TEXT: Final = 200  # characters of values that conditions compare with
ALERT: Final = ("alert", PREFIXES["cap"], "alert", "/cap:alert/cap:identifier")
INVOICE: Final = ("invoice", PREFIXES["ubl"], "Invoice", "/ubl:Invoice/cbc:ID")


class RealFamily(msgspec.Struct, frozen=True):
    """A family, documents of it, and for each path the values that there are."""

    family: Family
    documents: list[bytes]
    values: dict[str, list[str]]


def real_families(folder: Path = FOLDER) -> list[RealFamily]:
    """Alerts and invoices; nothing where the folder is not there."""
    if not folder.is_dir():
        return []
    contents = [path.read_bytes() for path in sorted(folder.glob("cap/*.cap"))]
    invoices = [path.read_bytes() for path in sorted(folder.glob("invoices/*.xml"))]
    return [_family(ALERT, contents), _family(INVOICE, invoices)]


def _family(said: tuple[str, str, str, str], contents: list[bytes]) -> RealFamily:
    name, namespace, root, key = said
    found: dict[str, list[str]] = {}
    many: set[str] = set()
    documents = []
    for content in contents:
        try:
            tree = parse_document(content)
        except PalioError:
            continue
        if tree.getroot().tag != f"{{{namespace}}}{root}":
            continue
        documents.append(content)
        counts: Counter[str] = Counter()
        for element in tree.iter(etree.Element):
            if len(element) == 0 and element.text and element.text.strip():
                path = _path_of(element)
                counts[path] += 1
                if len(element.text) <= _TEXT and '"' not in element.text and "\\" not in element.text:
                    found.setdefault(path, []).append(element.text)
        many |= {path for path, count in counts.items() if count > 1}
    usual = [path for path, _ in Counter({path: len(values) for path, values in found.items()}).most_common()]
    paths = tuple([FamilyPath(path, many=path in many) for path in sorted(usual[:MOST_PATHS])])
    family = Family(name, namespace, root, PREFIXES, key=(key,), paths=paths)
    reader = DocumentReader(family)
    readable = [content for content in documents if _is_readable(reader, content)]
    return RealFamily(
        family, readable, {path.expression: sorted(set(found[path.expression])) for path in paths}
    )


def _is_readable(reader: DocumentReader, content: bytes) -> bool:
    try:
        reader.read(content)
    except PalioError:
        return False
    return True


def _path_of(element: Any) -> str:
    names = {namespace: prefix for prefix, namespace in PREFIXES.items()}
    steps = []
    for one in [*reversed(list(element.iterancestors())), element]:
        name = etree.QName(one)
        steps.append(f"{names[name.namespace]}:{name.localname}" if name.namespace in names else "*")
    return "/" + "/".join(steps)
