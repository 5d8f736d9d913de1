"""`palio network`: several brokers from one file, that live and end together."""

from __future__ import annotations

import json
import os
import signal

import pytest

from palio.broker.settings import WrongSetting
from palio.cli.network.file import network_of, read_network, with_addresses
from palio.protocol.peers import LinkKind
from tests.cli.processes import PATIENCE, await_condition, started


def test_the_example_is_a_tree_of_five():
    network = read_network("examples/network.toml")
    assert list(network.brokers) == ["siena", "firenze", "pisa", "lucca", "arezzo"]
    assert len(network.links) == 4
    assert network.brokers["siena"].listen == "127.0.0.1:7070"
    assert network.brokers["pisa"].data == "palio-data/network/pisa"


@pytest.mark.parametrize(
    ("shape", "topology", "links", "kinds"),
    [
        ("chain", None, 4, {LinkKind.PEER}),
        ("star", None, 4, {LinkKind.PEER}),
        ("ring", None, 5, {LinkKind.GRAPH}),
        ("ring", "acyclic", 4, {LinkKind.PEER}),
        ("hierarchy", "hierarchical", 4, {LinkKind.MASTER}),
    ],
)
def test_a_shape_makes_links(shape, topology, links, kinds):
    document = {"brokers": 5, "shape": shape} | ({"topology": topology} if topology else {})
    network = network_of(document, "file")
    assert len(network.links) == links
    assert {link.kind for link in network.links} <= kinds | {LinkKind.BELOW}


def test_ports_that_are_left_open_are_reserved_and_every_link_is_dialled_once():
    document = {
        "brokers": {"a": {}, "b": {"strategy": "simple"}, "c": {}},
        "links": [{"from": "a", "to": "b", "kind": "master"}, {"from": "c", "to": "a", "kind": "graph"}],
        "strategy": "merging",
        "settings": {"journal": False},
    }
    settings, reserved = with_addresses(network_of(document, "file"))
    try:
        assert len({one.listen for one in settings.values()}) == 3
        assert not any(one.listen.endswith(":0") or one.journal for one in settings.values())
        assert [one.strategy.value for one in settings.values()] == ["merging", "simple", "merging"]
        assert settings["a"].peers == ()
        [up] = settings["b"].peers
        assert (up.address, up.kind) == (settings["a"].listen, LinkKind.BELOW)
        [across] = settings["c"].peers
        assert (across.address, across.kind) == (settings["a"].listen, LinkKind.GRAPH)
    finally:
        for one in reserved:
            one.close()


@pytest.mark.parametrize(
    ("document", "path", "reason"),
    [
        ({"brokers": 0}, "$.brokers", ">= 1"),
        ({"brokers": {}}, "$.brokers", "at least one"),
        ({"brokers": 3, "shap": "ring"}, "$", "shap"),
        ({"brokers": 3, "shape": "ring", "links": []}, "$.links", "not both"),
        ({"brokers": {"a": {"lisen": "x"}}}, "$.brokers.a", "lisen"),
        ({"brokers": {"a": {"listen": ":x"}}}, "$.brokers.a.listen", "host:port"),
        ({"brokers": {"a": {"peers": []}}}, "$.brokers.a.peers", "[[links]]"),
        ({"brokers": {"a": {}}, "links": [{"from": "a", "to": "b"}]}, "$.links[0].to", "no broker 'b'"),
        ({"brokers": {"a": {}}, "links": [{"from": "a", "to": "a"}]}, "$.links[0]", "own neighbour"),
        (
            {"brokers": 2, "links": [{"from": "b1", "to": "b2"}, {"from": "b2", "to": "b1"}]},
            "$.links[1]",
            "links[0] joins these two",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(document, path, reason):
    with pytest.raises(WrongSetting) as caught:
        network_of(document, "file")
    assert (caught.value.path, caught.value.origin) == (path, "file")
    assert reason in caught.value.reason


def write_network(folder, **more) -> None:
    settings = {"brokers": 2, "shape": '"chain"', "data": '"data"'} | more
    (folder / "network.toml").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))


def running(folder, count: int = 2):
    """The pids of the brokers once that many are up."""

    def pids():
        try:
            rows = json.loads((folder / "data" / "network.json").read_text())["brokers"]
        except FileNotFoundError:
            return None
        found = {row["name"]: row["pid"] for row in rows if row["state"] == "up"}
        return found if len(found) == count else None

    return pids


def is_gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_brokers_are_up_together_find_each_other_and_end_together(environment, tmp_path):
    write_network(tmp_path, brokers=3, shape='"ring"')
    with started("network", "up", "network.toml", environment=environment, folder=tmp_path) as process:
        pids = await_condition(running(tmp_path, 3), process)

        def well():
            with started(
                "network", "status", "network.toml", environment=environment, folder=tmp_path
            ) as status:
                shown, _ = status.communicate(timeout=PATIENCE)
            return shown if status.returncode == 0 else ""

        shown = await_condition(well, process)
        assert shown.splitlines()[0].strip() == "3 brokers, 3 links"
        assert shown.count("2/2") == 3
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert said.count("is up at 127.0.0.1:") == said.count("is stopped.") == 3
        assert all(is_gone(pid) for pid in pids.values())
        assert not (tmp_path / "data" / "network.json").exists()
    assert "The broker has stopped." in (tmp_path / "data" / "b1" / "broker.log").read_text()
    with started("network", "status", "network.toml", environment=environment, folder=tmp_path) as status:
        shown, _ = status.communicate(timeout=PATIENCE)
        assert status.returncode == 1
        assert shown.count("stopped") == 3


def test_a_broker_that_is_killed_is_restarted_where_it_was_if_that_is_wanted(environment, tmp_path):
    write_network(tmp_path)
    wanted = ("network", "up", "network.toml", "--restart")
    with started(*wanted, environment=environment, folder=tmp_path) as process:
        pids = await_condition(running(tmp_path), process)
        state = json.loads((tmp_path / "data" / "network.json").read_text())
        os.kill(pids["b2"], signal.SIGKILL)
        assert await_condition(lambda: (now := running(tmp_path)()) and now["b2"] != pids["b2"], process)
        again = json.loads((tmp_path / "data" / "network.json").read_text())
        assert [one["server"] for one in again["brokers"]] == [one["server"] for one in state["brokers"]]
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert "b2 is failed: It ended by signal 9." in said


def test_one_that_fails_ends_all_if_that_is_wanted(environment, tmp_path):
    write_network(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "b2").mkdir()
    (tmp_path / "data" / "b2" / "palio.db").write_text("This is no database.\n" * 1000)
    wanted = ("network", "up", "network.toml", "--strict")
    with started(*wanted, environment=environment, folder=tmp_path) as process:
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        [line] = [line for line in said.splitlines() if line.startswith("b2 is failed")]
        assert "palio.db" in line
        assert "b1 is stopped." in said


def test_no_broker_outlives_the_program_that_started_it(environment, tmp_path):
    write_network(tmp_path)
    with started("network", "up", "network.toml", environment=environment, folder=tmp_path) as process:
        pids = await_condition(running(tmp_path), process)
        process.kill()
        process.wait(timeout=PATIENCE)
        await_condition(lambda: all(is_gone(pid) for pid in pids.values()))
