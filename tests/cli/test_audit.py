"""`palio audit`: the operation log of a running broker, and of the store of one that is stopped."""

from __future__ import annotations

import asyncio
import json
import signal

import palio
from tests.cli.processes import PATIENCE, started


def lines(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def ask(live):
    async def work():
        async with palio.connect(f"palio://{live.server}", name="desk") as client:
            await client.subscribe("x > 1")
            receipt, *_ = await client.publish([{"x": 1}, {"x": 2}])
            logged: set[int] = set()  # the row of a publish comes with those of all that was before it
            while receipt.sequence not in logged:
                await asyncio.sleep(0.01)
                page = await client.operations(kinds=("publish",))
                logged = {row["sequence"] for row in page["operations"]}

    live.do(work())


def test_rows_are_shown_filtered_and_told(command, live):
    ask(live)
    rows = lines(command("audit", "--json"))
    asked = [row["kind"] for row in rows if row["session"] == "desk"]  # in the end, for what was logged
    assert asked[:3] == ["greet", "subscribe", "publish"]
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
    some = lines(command("audit", "--store", url, "--last", "2", "--json"))
    everything = lines(command("audit", "--store", url, "--since", "all", "--json"))
    assert [row["number"] for row in everything] == list(range(1, len(everything) + 1))
    begin = some[0]["number"] - 1  # the broker is running: its log may have become longer
    assert some == everything[begin : begin + 2]
    assert command("audit", "--store", url, "--follow").exit_code == 3
    assert command("audit", "--store", url, "--server", live.server).exit_code == 3


def test_the_log_is_followed_until_ctrl_c(live, environment, tmp_path):
    ask(live)
    wanted = ("audit", "--follow", "--json", "--server", live.server, "--kind", "publish")
    with started(*wanted, environment=environment, folder=tmp_path) as following:
        assert json.loads(following.stdout.readline())["sequence"] == 1
        ask(live)
        assert json.loads(following.stdout.readline())["sequence"] == 3
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE) == 130
