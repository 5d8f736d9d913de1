"""Stages between log and store: what comes of a document, and what a stage cannot do to a broker."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import palio
from palio import testing
from palio.broker.documents.settings import DocumentSettings
from palio.broker.settings import Limits
from palio.documents import DocumentRefused, Family, FamilyPath
from palio.documents.stages import (
    MOST_MADE,
    StageChain,
    StageDocument,
    StageRoom,
    StageSetting,
    StageUnusable,
    UnknownStage,
    load_stages,
)
from tests.broker.documents.cards import CARD, PRICE, card

pytest.importorskip("lxml")

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "stages"


def made_twice(options):
    """A dearer version, too."""
    return lambda document: (document, document.content.replace(b"<price>", b"<price>1"))


def told(options):
    """Says what it was given, as an attribute of its own."""

    def stage(document):
        said = dict(document.attributes) | {"by": document.publisher, "stage": options["said"]}
        yield StageDocument(document.content, said)

    return stage


def choosing(options):
    """Passes over some, refuses others, fails at others."""

    def stage(document):
        if b"gone" in document.content:
            return []
        if b"refused" in document.content:
            raise DocumentRefused("This is not wanted.")
        if b"broken" in document.content:
            raise KeyError("a mistake")
        if b"endless" in document.content:
            return iter(lambda: document, None)
        return [document]

    return stage


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages with stages, as `pip install` leaves them behind."""
    info = tmp_path / "palio_teststages-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: palio-teststages\nVersion: 1\n")
    names = {name: f"{__name__}:{name}" for name in ("made_twice", "told", "choosing")}
    names["xslt"] = "palio_xslt:make"
    names["missing"] = "palio_no_such_module:make"
    lines = [f"{name} = {place}" for name, place in names.items()]
    (info / "entry_points.txt").write_text("\n".join(["[palio.stages]", *lines]))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield
    sys.modules.pop("palio_xslt", None)


def broker_with(*stages, families=(CARD,), journal=True):
    settings = DocumentSettings(stages=tuple(StageSetting(name=name, options=told) for name, told in stages))
    return testing.broker(journal=journal, documents=settings), families


async def started(made):
    broker, families = made
    await broker.start()
    broker.running.documents.readers.tell(families)
    return broker


@pytest.mark.parametrize("journal", [True, False])
async def test_each_document_is_confirmed_once_whatever_comes_of_it(installed, journal):
    made = broker_with(("choosing", {}), ("made_twice", {}), ("told", {"said": "last"}), journal=journal)
    broker = await started(made)
    async with palio.connect(broker.address) as client:
        subscription = await client.subscribe("true")
        several = [card("a", price=5), card("gone"), card("b", price=7)]
        answers = await asyncio.gather(*[client.publish_document(one, {"own": 1}) for one in several])
        # The last event of each; nothing was made of the second.
        assert [one.sequence for one in answers] == [2, 0, 4]
        events = [await subscription.next(timeout=10) for _ in range(4)]
        assert [(one["xml.key"], one[PRICE]) for one in events] == [("a", 5), ("a", 15), ("b", 7), ("b", 17)]
        assert {(one["own"], one["stage"], one["by"]) for one in events} == {
            (1, "last", "")
        }  # anybody may publish here
        assert (await client.publish_document(card("gone"))).sequence == 0
    await broker.stop()


async def test_a_stage_refuses_or_fails_and_the_broker_goes_on(installed, caplog):
    broker = await started(
        broker_with(
            ("choosing", {}),
        )
    )
    async with palio.connect(broker.address) as client:
        for content, error, said in (
            (card("refused"), "DocumentRefused", "This is not wanted."),
            (card("broken"), "StageFailed", "the stage 'choosing' has failed"),
            (card("endless"), "DocumentTooLarge", f"limit of {MOST_MADE}"),
            (b"<other/>", "NoFamily", "There are card"),  # what comes out is read like any document
        ):
            with pytest.raises(palio.RequestRefused, match=said) as refused:
                await client.publish_document(content)
            assert refused.value.error == error
        assert "A stage has failed." in caplog.text
        assert (await client.publish_document(card("a"))).sequence == 1
    await broker.stop()


async def test_nothing_is_remembered_of_what_is_refused_after_all(installed):
    settings = DocumentSettings(stages=(StageSetting(name="made_twice"),))
    broker = testing.broker(journal=True, documents=settings, limits=Limits(attributes=5))
    broker = await started((broker, (CARD,)))
    async with palio.connect(broker.address, name="p") as client:
        with pytest.raises(palio.RequestRefused, match="attributes"):
            await client.publish_document(card("a"))
        (connection,) = broker.running.sessions.values()
        assert connection.made == {}
    await broker.stop()


async def test_what_comes_again_is_known(installed):
    """A document that is published again, as after a connection was lost: what was made of it is there."""
    broker = await started(broker_with(("made_twice", {})))
    async with palio.connect(broker.address) as client:
        first = await client.publish_document(card("a"), id="one")
        again = await client.publish_document(card("a"), id="one")
        assert (first.sequence, again.sequence) == (2, 2)
        assert (await client.publish_document(card("b"))).sequence == 4
    await broker.stop()


CATALOGUE = b"""<catalogue xmlns="urn:example:card" brand="Acme"%s>
<product code="c1"><price>9.50</price></product><product code="c2"/>
<product code="c3"><price>12</price></product></catalogue>"""
EXAMPLE_CARD = Family(
    "card",
    "urn:example:card",
    "card",
    {"": "urn:example:card"},
    key=("/card/code",),
    paths=(FamilyPath("/card/price", "float"),),
)


async def test_the_example_makes_cards_of_a_catalogue(installed):
    stage = ("xslt", {"stylesheet": str(EXAMPLE / "prices.xsl"), "only": "{urn:example:card}catalogue"})
    broker = await started(broker_with(stage, families=(EXAMPLE_CARD,)))
    async with palio.connect(broker.address) as client:
        subscription = await client.subscribe(palio.Filter.parse("`/card/price` > 0"))
        assert (await client.publish_document(CATALOGUE % b"")).sequence == 2
        events = [await subscription.next(timeout=10) for _ in range(2)]
        assert [(one["xml.key"], one["/card/price"]) for one in events] == [("c1", 9.5), ("c3", 12.0)]
        with pytest.raises(palio.RequestRefused, match="This catalogue is closed"):
            await client.publish_document(CATALOGUE % b' closed="yes"')
        one = b'<card xmlns="urn:example:card"><code>c9</code><price>1</price></card>'
        await client.publish_document(one)
        assert (await subscription.next(timeout=10)).payload == one  # it is for catalogues only
    await broker.stop()


HEAD = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"'
HOSTILE = {
    "a file": """<xsl:template match="/"><xsl:copy-of select="document('file:///etc/passwd')"/></xsl:template>""",
    "an address": """<xsl:template match="/"><xsl:copy-of select="document('http://[::1]:9')"/></xsl:template>""",
    "a file to write": """<xsl:template match="/"><e:document href="%s/out.txt">x</e:document>
        </xsl:template>""",
    "no end": """<xsl:template match="/" name="a"><xsl:call-template name="a"/></xsl:template>""",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_stylesheet_reaches_nothing(installed, tmp_path, name):
    place = tmp_path / "hostile.xsl"
    e = ' xmlns:e="http://exslt.org/common" extension-element-prefixes="e">'
    place.write_text(HEAD + e + HOSTILE[name].replace("%s", str(tmp_path)) + "</xsl:stylesheet>")
    chain = load_stages([StageSetting(name="xslt", options={"stylesheet": str(place)})])
    with pytest.raises(DocumentRefused):
        chain.run(StageDocument(card()), StageRoom(100))
    assert not (tmp_path / "out.txt").exists()


def test_what_cannot_be_used_is_said_before_anything_begins(installed, tmp_path):
    with pytest.raises(UnknownStage, match="there are choosing, made_twice, missing, told, xslt"):
        load_stages([StageSetting(name="xsl")])
    with pytest.raises(StageUnusable, match="palio_no_such_module"):
        load_stages([StageSetting(name="missing")])
    with pytest.raises(StageUnusable, match="no option 'sheet'"):
        load_stages([StageSetting(name="xslt", options={"sheet": "x"})])


def test_what_is_made_of_a_message_is_bounded():
    doubling = StageChain([("double", lambda document: [document.content * 2])] * 20)
    with pytest.raises(palio.PalioError, match="bytes that stages make of one message"):
        doubling.run(StageDocument(b"x" * 10_000), StageRoom(10_000))
