"""What the page for operators names is what there is."""

import re

import pytest

import palio
from palio.broker.broker import BrokerServer
from palio.broker.gateway.settings import GatewaySettings
from palio.broker.metrics import Metrics
from palio.broker.settings import Limits, Settings
from palio.broker.states import TRANSITIONS
from palio.cli.program.endings import ERRORS, code_of
from palio.cli.program.terminal import MEANINGS
from palio.protocol.durable.retry import Patience
from palio.routing.durable.desk import DurableSettings


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "operations.md").read_text()


def test_every_setting_is_on_the_page(page):
    settings = [*Settings.__struct_fields__, *Limits.__struct_fields__]
    settings += [*DurableSettings.__struct_fields__, *Patience.__struct_fields__]
    settings += GatewaySettings.__struct_fields__
    assert [name for name in settings if f"`{name}`" not in page] == []


def test_defaults_are_as_shown(page):
    for name, shown in re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", page, re.MULTILINE):
        default = getattr(Settings(), name)
        assert str(getattr(default, "value", default)).lower() == shown, name


async def started() -> list[str]:
    broker = BrokerServer(Settings(name="b", listen="127.0.0.1:0", http="off", journal=False))
    await broker.start()
    try:
        return [family.name for family in Metrics(broker).collect()]
    finally:
        await broker.stop()


def test_every_metric_is_on_the_page(page):
    import asyncio

    shown = page.replace("…", "palio_notifications")
    missing = [name for name in asyncio.run(started()) if name not in shown]
    assert missing == []


def test_the_diagram_is_the_table_of_transitions(page):
    drawn = set(re.findall(r"^    (\w+) --> (\w+): (.*)$", page, re.MULTILINE))
    assert drawn == {
        (state.value, after.value, event)
        for state, events in TRANSITIONS.items()
        for event, after in events.items()
    }


def test_the_table_of_exit_codes_is_what_the_program_ends_with(page):
    table = dict(re.findall(r"^\| (\d+) \| ([\w, ]+) \|", page, re.MULTILINE))
    assert table == {str(int(code)): meaning for code, meaning in MEANINGS.items()}


def test_the_errors_of_the_table_of_exit_codes_exist(root):
    files = (root / "src" / "palio").rglob("*.py")
    classes = {name for file in files for name in re.findall(r"^class (\w+)\(", file.read_text(), re.MULTILINE)}
    assert ERRORS.keys() <= classes
    assert code_of(palio.FilterError("This is wrong.")) == 3
    assert code_of(palio.TokenExpired("7", "yesterday")) == 5
    assert code_of(palio.NotAllowed("desk", "publish", "price > 1")) == 5
