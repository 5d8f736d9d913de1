"""Whoever types what docs/spark.md, the README and the help of the commands show gets what they say."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator

import pytest

import palio
import palio.spark
from palio.cli.main import Commands
from palio.spark.lake import archiving
from tests.cli.live import live_broker
from tests.cli.test_program import examples
from tests.spark.walking import ADDRESS, Walk, blocks, require_known, settings_known_to, settings_of, typed

pytest.importorskip("pyspark", reason="pyspark is not installed")


@pytest.fixture
def walk(spark, root, tmp_path, monkeypatch) -> Iterator[Walk]:
    """An empty folder with the examples in it, and a broker as `palio up` would have made it there."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root / "examples", "examples")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "100")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with live_broker(tmp_path, "palio-data") as broker:
        monkeypatch.setenv("PALIO_SERVER", broker.server)
        walk = Walk(broker.server)
        yield walk
    if any("--open" in line for line in walk.said):
        assert (tmp_path / "palio-report.html").as_uri() in opened


def lines_of(text: str) -> Iterator[list[str]]:
    for _, block in blocks(text, "console", "sh"):
        for line in typed(block):
            yield shlex.split(line, comments=True)


def test_every_command_and_option_that_is_shown_exists(root):
    """Without running them, which takes minutes."""
    shown = [words for page in ("docs/spark.md", "README.md") for words in lines_of((root / page).read_text())]
    ours = [words for words in shown if words[:2] == ["palio", "spark"]]
    assert len(ours) > 15
    for words in shown:
        if words:
            require_known(words)
    with pytest.raises(AssertionError):
        require_known(["palio", "spark", "match", "--no-such-option"])


@pytest.mark.slow
def test_the_page_from_its_top_to_the_cluster(*, walk, spark, root, tmp_path, capsys):
    page = (root / "docs" / "spark.md").read_text()
    exists = settings_known_to(spark)
    lines = []
    for kind, block in blocks(page, "console", "sh", "python"):
        if kind == "python":
            walk.python(block)
            continue
        for line in typed(block):
            lines.append(line)
            walk.type(line)
            assert all(map(exists, settings_of(shlex.split(line, comments=True)))), line
    assert len(lines) > 20
    names, said = walk.names, {line.partition("  ")[0]: done for line, done in walk.said.items()}
    assert names["spark"] is spark
    assert {row["key"]: row["many"] for row in names["table"].collect()} == {"c1": 1, "c2": 1}
    wanted = said[
        "palio spark documents --filters examples/xml/filters.jsonl --families palio://127.0.0.1:7070"
    ]
    pairs = [json.loads(line)["subscription_id"] for line in wanted.stdout.splitlines()]
    assert sorted(pairs) == ["cheap", "full"]
    shown = capsys.readouterr().out  # by now the journal has been trimmed
    assert "|  ACME|     112.5|" in shown
    assert "|    14|         1|          1|   2|" in shown
    assert (names["crossed"].rows, names["crossed"].unconverted) == (13, 0)
    # 13 trades, the highest price and an alert; of these `customer = "c-2"` was forgotten.
    assert palio.spark.history(spark, "palio-lake", names["url"]).count() >= 14
    assert names["past"].where("sequence <= 15").count() == 14
    assert names["before"].count() == 3
    assert sum(row["both"] for row in names["counts"].collect()) == 2
    backtested = [json.loads(done.stdout) for line, done in said.items() if line.endswith("--every 1m --json")]
    assert [one["only_first"] for one in backtested] == [3]
    assert (tmp_path / "difference.png").read_bytes().startswith(b"\x89PNG")
    assert (
        len(
            said[
                "palio spark reach-back 'price > 50' --lake palio-lake --since 30d --durable desk-8"
            ].stdout.splitlines()
        )
        == 3
    )
    assert palio.Hints.load(tmp_path / "hints.json").value("symbol", "ACME") is not None
    assert spark.read.parquet(str(tmp_path / "found")).count() > 0
    # What is printed looks like what is shown.
    packed = said["palio spark package -o palio-spark.tar.gz"].stdout
    shown = next(block for _, block in blocks(page, "console") if "spark package" in block)
    assert packed.replace(str(tmp_path), "/home/you") == shown.partition("\n")[2]
    assert (tmp_path / "palio_pkgs" / "palio" / "spark" / "source" / "format.py").exists()


@pytest.mark.slow
def test_the_part_of_the_readme_that_is_about_it(walk, spark, root):
    readme = (root / "README.md").read_text()
    walk.type("palio pub symbol=ACME price=101.5")
    walk.type("palio pub symbol=ACME price=99")
    section = readme.partition("## Everything published is data\n")[2].partition("\n## ")[0]
    for kind, block in blocks(section, "sh", "python"):
        if kind == "python":
            walk.python(block)
        else:
            for line in typed(block):
                walk.type(line.replace("palio doctor", "palio doctor --no-executors"))
    found = {
        (row["subscription_id"], row["count"])
        for row in walk.names["pairs"].groupBy("subscription_id").count().collect()
    }
    assert found == {("desk-7", 1), ("acme", 2)}


@pytest.mark.slow
def test_the_examples_of_the_help(walk, spark, monkeypatch, tmp_path):
    jobs = Commands()["spark"].commands
    texts = [Walk(walk.server).type(f"palio spark {job} --help") for job in ("", *jobs)]
    shown = list(dict.fromkeys(one for text in texts if text for one in examples(text.stdout)))
    assert {line.split()[2] for line in shown} == set(jobs)
    assert all(ADDRESS in line or "://" not in line or "sqlite:///palio-data/" in line for line in shown)
    walk.type("palio pub --rate 20 < examples/trades.jsonl")
    walk.type("palio family add card --schema examples/xml/card.xsd --path price=/card/price --key /card/code")
    walk.type("palio pub --xml examples/xml/c1.xml examples/xml/c2.xml")
    (tmp_path / "jump.txt").write_text("A[price > 0] then B[price > A.price] within 5 min by symbol\n")

    def once(*arguments, every, told, **_):
        """What would go on archives what is there, and is then interrupted."""
        archiving.archive(*arguments, told=told)
        assert every == 300

    monkeypatch.setattr("palio.cli.spark.archive.archive_continuously", once)
    # The lake comes before all that reads it.
    for line in sorted(shown, key=lambda line: not line.startswith("palio spark archive")):
        walk.type(line.replace("/tmp/", f"{tmp_path}/"))
    assert spark.read.parquet(str(tmp_path / "found")).count() > 0
    assert json.loads((tmp_path / "numbers.json").read_text())["traffic"]["events"] >= 13
    assert (tmp_path / "d.png").exists()
