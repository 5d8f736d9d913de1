"""A stage that transforms documents with XSLT 1.0, as the example of a package that brings one to brokers.

    [[documents.stages]]
    name = "xslt"
    options = { stylesheet = "examples/stages/prices.xsl" }

What the stylesheet makes goes on in place of the document. Where that is a `documents` element in the namespace
`urn:palio:stages`, each element in it is a document, so there may be several, or none. A stylesheet that says
`<xsl:message terminate="yes">` refuses the document with that text. A document with another root than `only`
says, if that is said, goes on as it is.

The stylesheet is the broker's own, and can do anything to a document; but neither reads or writes a file nor
opens a connection (`document()` gives an error), whatever a document says. Templates that call each other
without end are stopped by their depth. What a document may become has the limits of all stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lxml import etree

from palio.documents import DocumentRefused, parse_document
from palio.documents.stages import DocumentStage, StageDocument

SEVERAL = "{urn:palio:stages}documents"
DEPTH = 500  # of templates that call each other; libxslt's own 3,000 is more than a thread's stack may hold


def make(options: Mapping[str, Any]) -> DocumentStage:
    """`stylesheet` is a file; `only` the root of what it is for, `{namespace}name`."""
    unknown = options.keys() - {"stylesheet", "only"}
    if unknown:
        raise ValueError(f"There is no option {min(unknown)!r}; there are stylesheet and only.")
    parsed = parse_document(Path(options["stylesheet"]).read_bytes())
    etree.XSLT.set_global_max_depth(DEPTH)
    return Transformation(
        etree.XSLT(parsed, access_control=etree.XSLTAccessControl.DENY_ALL), options.get("only")
    )


class Transformation:
    """A stage; called in several threads at a time, which lxml allows."""

    def __init__(self, stylesheet: Any, only: str | None) -> None:
        self._stylesheet = stylesheet
        self._only = only

    def __call__(self, document: StageDocument) -> Iterator[StageDocument | bytes]:
        tree = parse_document(document.content)
        if self._only is not None and tree.getroot().tag != self._only:
            yield document
            return
        try:
            made = self._stylesheet(tree)
        except etree.XSLTApplyError as problem:
            raise DocumentRefused(str(problem)) from None
        root = made.getroot()
        if root is None:
            raise DocumentRefused("The stylesheet makes nothing of it.")
        if root.tag != SEVERAL:
            yield bytes(made)
            return
        for one in root.iterchildren(etree.Element):
            one.tail = None
            yield etree.tostring(one, encoding="UTF-8", xml_declaration=True)
