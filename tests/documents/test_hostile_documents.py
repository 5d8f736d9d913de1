"""What strangers send to hurt whoever parses it: each is refused soon, or harmless."""

from __future__ import annotations

import resource
import socket
import threading
import time
from typing import Any

import pytest

from palio.documents.errors import DocumentRefused, DocumentTooLarge
from palio.documents.parsing import DocumentLimits, parse_document

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is not installed")

LAUGHS = b"".join(b"<!ENTITY l%d '%s'>" % (at, b"&l%d;" % (at - 1) * 10) for at in range(1, 10))
DOCTYPES = {
    "billion laughs": b"<!DOCTYPE a [<!ENTITY l0 'ha'>" + LAUGHS + b"]><a>&l9;</a>",
    "quadratic blow-up": b"<!DOCTYPE a [<!ENTITY b '" + b"b" * 50_000 + b"'>]><a>" + b"&b;" * 50_000 + b"</a>",
    "a file": b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
    "an address": b"<!DOCTYPE a SYSTEM 'http://127.0.0.1:%d/a.dtd'><a/>",
    "a parameter entity": b"<!DOCTYPE a [<!ENTITY %% b SYSTEM 'http://127.0.0.1:%d/b'> %%b;]><a/>",
    "a default attribute": b"<!DOCTYPE a [<!ATTLIST a b CDATA 'c'>]><a/>",
    "an empty one": b"<!DOCTYPE a><a/>",
    "one without an end": b"<!DOCTYPE a [" + b"<!ENTITY a 'b'>" * 50_000,
}
BEFORE = {
    "nothing": b"",
    "a declaration": b"<?xml version='1.0' encoding='utf-8'?>\n",
    "a mark": b"\xef\xbb\xbf",
    "comments and instructions": b"<!-- ? > - <a> -->\n<?b <!-- ?>\t\r\n<?c?><!---->",
}


class Listener:
    """A server that remembers whether anybody came."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.came = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            self.socket.accept()
            self.came.set()
        except OSError:
            pass


@pytest.fixture
def listener():
    made = Listener()
    yield made
    made.socket.close()


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", DOCTYPES)
def test_a_doctype_is_refused_where_it_stands(name, before, listener):
    doctype = DOCTYPES[name].replace(b"%d", b"%d" % listener.port).replace(b"%%", b"%")
    began = time.process_time()
    with pytest.raises(DocumentRefused, match="DOCTYPE is not allowed") as refused:
        parse_document(BEFORE[before] + doctype)
    assert time.process_time() - began < 0.5
    lines = BEFORE[before].removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert (refused.value.line, refused.value.column) == (len(lines), len(lines[-1]) + 1)
    assert not listener.came.is_set()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_doctype_is_found_in_any_encoding(encoding):
    with pytest.raises(DocumentRefused, match="line 2, column 1: A DOCTYPE"):
        parse_document("<!-- é -->\n<!DOCTYPE a><a/>".encode(encoding))


def test_what_only_looks_like_a_doctype_is_none():
    inside = b"<!-- <!DOCTYPE a> --><a b='&lt;!DOCTYPE a>'><![CDATA[<!DOCTYPE a>]]></a>"
    assert parse_document(inside).getroot().text == "<!DOCTYPE a>"


@pytest.mark.parametrize(
    "where", [b"<a><!DOCTYPE a></a>", b"<a/><!DOCTYPE a>", b"<!doctype a><a/>", b"<! DOCTYPE a><a/>"]
)
def test_a_doctype_elsewhere_is_no_xml(where):
    with pytest.raises(DocumentRefused):
        parse_document(where)


def test_references_in_a_document_are_not_followed(listener):
    address = b"http://127.0.0.1:%d/x" % listener.port
    content = (
        b"<?xml-stylesheet type='text/xsl' href='%s'?><a xmlns:xi='http://www.w3.org/2001/XInclude' "
        b"xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:noNamespaceSchemaLocation='%s'>"
        b"<xi:include href='%s'/><xi:include href='file:///etc/passwd' parse='text'/></a>"
    )
    root = parse_document(content % (address, address, address)).getroot()
    assert [one.tag for one in root] == ["{http://www.w3.org/2001/XInclude}include"] * 2
    assert "".join(root.itertext()) == ""
    assert not listener.came.is_set()


FLOODS = {
    "depth": b"<a>" * 300_000,
    "nodes": b"<a>" + b"<b/>" * 250_000,
    "comments": b"<a>" + b"<!---->" * 140_000,
    "instructions": b"<a>" + b"<?b?>" * 200_000,
    "attributes": b"<a " + b" ".join(b"b%d=''" % at for at in range(90_000)) + b"/>",
    "namespaces": b"<a " + b" ".join(b"xmlns:b%d='c'" % at for at in range(60_000)) + b"/>",
    "prefixes": b"".join(b"<a xmlns:b%d='c'>" % at for at in range(50_000)),
    "names": b"<" + b"a" * 1_000_000,
    "names of attributes": b"<a " + b"b" * 1_000_000,
    "prefixes of names": b"<a:" + b"b" * 1_000_000,
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_cut_off_early(name):
    content = FLOODS[name]
    assert len(content) <= DocumentLimits().size
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(DocumentTooLarge):
        parse_document(content)
    assert time.process_time() - began < 2.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024  # KiB


def test_a_document_of_many_short_texts_is_read_soon():
    content = b"<a>" + b"<b c='d'>e</b>" * 49_000 + b"</a>"
    began = time.process_time()
    assert len(parse_document(content).getroot()) == 49_000
    assert time.process_time() - began < 2.0


def test_the_alert_that_was_made_to_attack_is_refused(shared):
    with pytest.raises(DocumentRefused, match="line 3, column 1: A DOCTYPE"):
        parse_document((shared / "data/xml/cap/xee.cap").read_bytes())
