"""`palio audit`: the operation log of a running broker, and of the store of one that is stopped."""

from __future__ import annotations

import asyncio
import json

import palio


def lines(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def ask(live):
    async def work():
        async with palio.connect(f"palio://{live.server}", name="desk") as client:
            await client.subscribe("x > 1")
            await client.publish([{"x": 1}, {"x": 2}])
            await asyncio.sleep(0.2)

    live.do(work())


def test_rows_are_shown_filtered_and_told(command, live):
    ask(live)
    rows = lines(command("audit", "--json"))
    assert [row["kind"] for row in rows if row["session"] == "desk"] == ["greet", "subscribe", "publish"]
    [published] = lines(command("audit", "--kind", "publish", "--since", "1h", "--json"))
    assert (published["sequence"], published["events"], published["result"]) == (1, 2, "done")
    shown = command("audit", "--kind", "publish").stdout
    assert "1 to 2" in shown
    assert "desk" in shown
    assert command("audit", "--result", "refused").exit_code == 1
    wrong = command("audit", "--result", "odd")
    assert wrong.exit_code == 3
    assert "cannot be asked that" in wrong.stderr


def test_the_store_of_a_broker_is_read_without_it(command, live):
    ask(live)
    url = live.broker.settings.store_url
    everything = lines(command("audit", "--store", url, "--since", "all", "--json"))
    assert [row["number"] for row in everything] == list(range(1, len(everything) + 1))
    assert lines(command("audit", "--store", url, "--last", "2", "--json")) == everything[-2:]
    assert command("audit", "--store", url, "--follow").exit_code == 3
    assert command("audit", "--store", url, "--server", live.server).exit_code == 3
