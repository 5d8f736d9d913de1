"""The examples of families: their page is run, and where real documents are, these are taken as well."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import palio
from palio import testing
from tests.cli.conftest import environment as environment  # noqa: PLC0414 (a fixture)
from tests.cli.processes import broker_up
from tests.docs.test_http_page import commands
from tests.docs.test_xml_page import lines, output

pytest.importorskip("lxml")

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "xml"
INVOICE = "urn:oasis:names:specification:ubl:schema:xsd:"


def test_every_command_does_what_the_page_says(root, environment, tmp_path):
    page = (root / "examples" / "xml" / "README.md").read_text()
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    with broker_up("--name", "siena", environment=environment, folder=tmp_path) as (_, ready):
        more = environment | {"PALIO_SERVER": ready["server"], "COLUMNS": "200"}
        for block in blocks:
            for command, printed in commands(f"```console\n{block}```"):
                assert output(command, root, more) == lines(printed), command


@pytest.mark.skipif(not REAL.is_dir(), reason="The real alerts and invoices are not beside this checkout.")
def test_real_alerts_and_invoices_are_taken_by_such_families():
    asyncio.run(_published())


async def _published() -> None:
    async with testing.broker(journal=True) as address, palio.connect(address) as client:
        schema = ("cap12.xsd", (REAL / "cap" / "cap12.xsd").read_bytes())
        paths = ["severity=/alert/info/severity", "area=/alert/info/area/areaDesc", "sent:time=/alert/sent"]
        await client.families.add("alert", [schema], paths, key=["/alert/identifier"])
        await client.families.add(
            "invoice",
            paths=["payable:float,single=/ubl:Invoice/cac:LegalMonetaryTotal/cbc:PayableAmount"],
            key=["/ubl:Invoice/cbc:ID"],
            namespace=f"{INVOICE}Invoice-2",
            root="Invoice",
            prefixes={
                "ubl": f"{INVOICE}Invoice-2",
                "cac": f"{INVOICE}CommonAggregateComponents-2",
                "cbc": f"{INVOICE}CommonBasicComponents-2",
            },
        )
        dear = await client.subscribe("family invoice where invoice.payable > 300")
        taken: dict[str, str] = {}
        invoices = sorted((REAL / "invoices").glob("*.xml"))
        for file in [*sorted((REAL / "cap").glob("*.cap")), *invoices]:
            try:
                await client.publish_document(file.read_bytes())
                taken[file.name] = ""
            except palio.RequestRefused as problem:
                taken[file.name] = problem.error
        assert {taken[file.name] for file in invoices} == {""}
        assert taken["xee.cap"] == "DocumentRefused"  # it has entities
        alerts = {error for name, error in taken.items() if name.endswith(".cap")}
        assert alerts == {"", "DocumentRefused", "NoFamily"}  # of version 1.1 there is no family here
        event = await dear.next(timeout=10)
        assert event["xml.family"] == "invoice"
        content = [file.read_bytes() for file in invoices]
        assert event.payload in content
