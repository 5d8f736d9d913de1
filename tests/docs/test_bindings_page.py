"""The page about bindings is run: its commands, and its binding against an FTP server that others wrote."""

import asyncio
import json
import re
import shlex

import aioftp
import pytest

import palio
from palio import testing
from palio.cli.documents import files
from tests.broker.documents.cards import card, know_cards
from tests.cli.conftest import command, live  # noqa: F401 (fixtures)


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "bindings.md").read_text()


def test_files_come_and_go_as_the_page_says(page, live, command, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(files, "QUIET", 0.2)
    live.do(know_cards(live.broker))
    shown = shlex.split(re.search(r"^```sh\n(palio files .*)\n```", page, re.MULTILINE)[1])
    assert shown == ["palio", "files", "--in", "orders", "--out", "received"]
    orders, received = tmp_path / "orders", tmp_path / "received"
    orders.mkdir()
    received.mkdir()
    (orders / "a.xml").write_bytes(card("a"))
    (orders / "card.xml").write_bytes(b"<card")
    once = ("--once", "--interval", "0.05s", "--json")
    result = command("files", "--out", str(received), *once)  # its subscription begins
    result = command("files", "--in", str(orders), *once)
    line = re.search(r"^```json\n(.*)\n```", page, re.MULTILINE)[1]
    assert result.exit_code == 1
    assert json.loads(line) in [json.loads(one) for one in result.stdout.splitlines()]
    assert {one.name for one in (orders / "rejected").iterdir()} == {"card.xml", "card.xml.reason.txt"}
    result = command("files", "--out", str(received), *once, "--metadata")
    assert result.exit_code == 0
    names = {one.name for one in received.iterdir() if one.is_file()}
    assert names == {"siena-000000000001.xml", "siena-000000000001.json"}


def test_a_binding_of_ones_own_works_as_it_stands_there(page, tmp_path, capsys):
    code = {}
    exec(re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1], code)
    for name in ("incoming", "half", "outgoing", "rejected"):
        (tmp_path / name).mkdir()
    for name, content in (("a", card("a")), ("b", b"<card"), ("c", card("c"))):
        (tmp_path / "incoming" / f"{name}.xml").write_bytes(content)
    asyncio.run(exchanged(code["exchange"], tmp_path))
    assert {one.name for one in (tmp_path / "rejected").iterdir()} == {"b.xml"}
    assert "b.xml: This document is refused" in capsys.readouterr().out
    assert list((tmp_path / "incoming").iterdir()) == list((tmp_path / "half").iterdir()) == []
    given = sorted([one.read_bytes() for one in (tmp_path / "outgoing").iterdir()])
    assert given == [card("a"), card("c")]


async def exchanged(exchange, folder):
    server = aioftp.Server([aioftp.User(base_path=folder)])
    await server.start("127.0.0.1", 0)
    try:
        broker = testing.broker(journal=True)
        async with broker as address:
            await know_cards(broker.running)
            async with palio.connect(address) as client:
                await (await client.subscribe("exists(xml.family)", durable="ftp")).detach()
            await exchange("127.0.0.1", server.server_port, address)
    finally:
        await server.close()
