"""How many documents a second come in by HTTP and by SOAP, beside the native client.

Each publisher has one connection, and sends the next document when the one before is confirmed. By SOAP it is
`Notify` of the simple protocol with the document as an attachment, as the load tests of the source sent it.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.documents.cards import card_family, cards
from benchmarks.documents.parties import DocumentPlan, DocumentRun, connect_client, run_documents
from benchmarks.documents.publishing import ALL, DIFFERENT, SOURCE_SIZES, XmlRun
from benchmarks.documents.report import XmlRow
from benchmarks.documents.serving import start_broker
from palio.model.errors import PalioError

BINDINGS: Final = {"palio": "the native client", "http": "HTTP", "soap": "SOAP with an attachment"}
_WITH_HTTP = ("--http", "127.0.0.1:0", "--soap")
_PART = (
    b'--part\r\nContent-Type: text/xml\r\n\r\n<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
    b'<Notify xmlns="http://docs.oasis-open.org/wsn/b-2"><NotificationMessage><Message href="cid:card"/>'
    b"</NotificationMessage></Notify></s:Body></s:Envelope>\r\n"
    b"--part\r\nContent-Type: application/xml\r\nContent-ID: <card>\r\n\r\n"
)
_LAST = b"\r\n--part--\r\n"


class NotTaken(PalioError):
    """A document that a broker did not take."""

    answer: str
    sentence = "The broker has not taken a document: {answer}"


class HttpPublisher:
    """One connection by HTTP."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, soap: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._soap = soap
        path, kind = "/documents", "application/xml"
        if soap:
            path, kind = "/wsn/simple", 'multipart/related; boundary="part"; type="text/xml"'
        self._head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: "

    @classmethod
    async def connect(cls, port: int, *, soap: bool) -> HttpPublisher:
        return cls(*await asyncio.open_connection("127.0.0.1", port), soap=soap)

    async def publish_document(self, content: bytes) -> None:
        """Raises `NotTaken`."""
        body = _PART + content + _LAST if self._soap else content
        self._writer.write(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 2") or (self._soap and b'valueACK="true"' not in answer):
            raise NotTaken(answer.decode(errors="replace")[:300])

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def bindings(run: XmlRun, kilobytes: Sequence[float]) -> list[XmlRow]:
    """T1 by each way in, with one durable subscriber, on SQLite."""
    rows: list[XmlRow] = []
    for size in kilobytes:
        documents = cards(DIFFERENT, size)
        plan = DocumentPlan(documents, run.publishers, [ALL], run.seconds)
        by: dict[str, DocumentRun] = {}
        for name, said in BINDINGS.items():
            run.tell(f"{size:g} KB, {said}")
            by[name] = max([_published(run, plan, name) for _ in range(run.rounds)], key=lambda one: one.rate)
        native = by.pop("palio")
        for name, ours in by.items():
            said = BINDINGS[name]
            cost = ours.server_cpu / native.server_cpu
            rows += [
                XmlRow(
                    "bindings", f"{size:g} KB by {said}, {run.publishers} at a time", ours.rate, native.rate,
                    BINDINGS["palio"], ours.rate / native.rate,
                    source=f"{SOURCE_SIZES[size]}/s" if size in SOURCE_SIZES else "",
                    x=size, line=f"{said}: ",
                ),
                XmlRow(
                    "processor", f"{size:g} KB by {said}: what a publish takes of the broker's processor",
                    ours.server_cpu, native.server_cpu, BINDINGS["palio"], cost, unit="s", x=size,
                    line=f"{said}: ",
                ),
            ]  # fmt: skip
    return rows


def _published(run: XmlRun, plan: DocumentPlan, binding: str) -> DocumentRun:
    folder = Path(tempfile.mkdtemp(dir=run.folder))
    server = start_broker(folder, [card_family()], further=_WITH_HTTP)
    try:
        if binding == "palio":
            found = run_documents(server, plan, connect_client)
        else:
            port = json.loads((folder / "ready.json").read_text())["http_port"]

            async def connect(_: int, name: str) -> HttpPublisher:
                return await HttpPublisher.connect(port, soap=binding == "soap")

            found = run_documents(server, plan, connect)
    finally:
        server.stop()
    assert found.lost == 0, f"{found.lost:,} deliveries did not arrive."
    return found
