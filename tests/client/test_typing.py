"""What a type checker thinks of programs that use the client, and what it is told about the calls."""

import inspect
import subprocess
import sys
import textwrap

import pytest

import palio.sync
from palio.client import arguments
from palio.client.content import Properties
from tests.conftest import ROOT

pytest.importorskip("mypy", reason="mypy is not installed")

HEAD = """
import dataclasses
import palio
import palio.sync

@dataclasses.dataclass
class Quote:
    symbol: str
    price: float
"""

GOOD = """
async def asynchronously() -> float:
    async with palio.connect("palio://127.0.0.1:7070", name="desk") as client:
        total = 0.0
        subscription = await client.subscribe("price > 100", limit=10)
        async for event in subscription:
            if event.number("price") > 100 and event.text("symbol", default=None) is not None:
                total += event.number("price", 0.0)
            note: palio.Notification = event.value
            handle(event)
            print(dict(event), note.integer("n") + 1, event.moment("at").year, event.boolean("open"))
            print([tag.upper() for tag in event.elements("tags", str)])
        quotes = await client.subscribe("price > 100", into=Quote, durable="quotes")
        print((await quotes.change("price > 200")).drops)
        async for quote in quotes:
            async with quote.process():
                total += quote.value.price
        return total

def handle(event: palio.Event) -> str:
    return event.text("symbol")

def of_quotes(events: palio.sync.Subscription[Quote]) -> list[str]:
    return [event.value.symbol for event in events]

def synchronously() -> float:
    with palio.sync.connect("palio://127.0.0.1:7070", request_timeout=5) as client:
        confirmation = client.publish({"price": 101.5}, priority=7)
        confirmations = client.publish([{"price": 101.5}])
        print(confirmation.sequence + confirmations[0].sequence)
        print(of_quotes(client.subscribe("true", into=Quote)))
        subscription = client.subscribe("price > 100", durable="desk", in_flight=10)
        return sum(event.number("price") + event.sequence + event.attempt for event in subscription)
"""

WRONG = """
def wrong(client: palio.sync.Client, event: palio.sync.Event[Quote], transient: palio.Subscription) -> None:
"""
BAD = {
    'event["price"] > 100': "Unsupported",
    'event.text("symbol") > 100': "Unsupported",
    'event.value.price + ""': "Unsupported",
    "event.value.cost": "attr-defined",
    "transient.detach()": "attr-defined",
    'client.subscribe("true", durabel="x")': "durabel",
    'client.publish({}, priority="high")': "No overload variant",
    'palio.sync.connect("palio://127.0.0.1:7070", retry=True)': "retry",
    "event.sequence.upper()": "attr-defined",
}


def checked(program, tmp_path):
    """What mypy says; in the checkout, where it remembers what it thinks of us since `make lint`."""
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "mypy", "--strict", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_typed_program_passes_and_its_mistakes_do_not(tmp_path):
    lines = "\n".join(f"    {mistake}" for mistake in BAD)
    bad = f"{WRONG}{lines}\n"
    told = checked(HEAD + GOOD + bad, tmp_path)
    first = (HEAD + GOOD + bad).splitlines().index("    " + next(iter(BAD))) + 1
    by_line = {}
    for line in told.splitlines():
        if "program.py:" in line and "error:" in line:
            by_line.setdefault(int(line.split(":")[1]), []).append(line)
    assert sorted(by_line) == list(range(first, first + len(BAD))), told
    for at, (mistake, expected) in enumerate(BAD.items()):
        assert expected in " ".join(by_line[first + at]), mistake


@pytest.mark.parametrize(
    ("call", "types", "others"),
    [
        (palio.Client.subscribe, arguments.Subscribing, {"filter", "into", "durable"}),
        (palio.Client.advertise, arguments.Advertising, {"advertisement"}),
        (palio.Client.detect, arguments.Detecting, {"patterns"}),
        (palio.Client.survey, arguments.Surveying, {"filter"}),
        (palio.Client.replay, arguments.Replaying, {"filter"}),
        (palio.Client.request, arguments.Requesting, {"content"}),
        (palio.Client.publish, arguments.PublishArguments, {"content"}),
        (palio.connect, arguments.Connecting, {"address"}),
    ],
)
def test_the_types_of_arguments_are_those_of_the_calls(call, types, others):
    takes = set(inspect.signature(call).parameters) - {"self"}
    if "properties" in takes:
        takes = takes - {"properties"} | set(Properties.__annotations__)
    assert takes - others == set(types.__annotations__)


def test_a_call_without_an_event_loop_takes_what_the_other_takes():
    """Those whose arguments are written out, by name."""
    for name, call in inspect.getmembers(palio.Client, inspect.isfunction):
        here = inspect.signature(getattr(palio.sync.Client, name, call)).parameters
        if not name.startswith("_") and not any(one.kind is one.VAR_KEYWORD for one in here.values()):
            assert list(inspect.signature(call).parameters) == list(here), name
