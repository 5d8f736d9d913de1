"""The page about new versions: its brokers are replaced in turn as written, and nothing is missing."""

from __future__ import annotations

from collections import Counter

from tests.docs.shell_examples import page_shell, waited


def test_nothing_is_missing_after_all_brokers_were_restarted_in_turn(root, tmp_path):
    page = (root / "docs" / "upgrades.md").read_text()
    with page_shell(page, tmp_path) as shell:
        [ups], [work], [before], [after], [end] = (
            shell.blocks(mark) for mark in ("brokers", "work", "before", "after each", "in the end")
        )
        subscribe, publish = work.splitlines()
        brokers = {up.split()[3]: up for up in ups.splitlines()}
        own = {name: up.split()[5] for name, up in brokers.items()}
        running = {name: shell.start(up, f"log-{name}") for name, up in brokers.items()}

        def wait_until_whole(name: str) -> None:
            code, said = shell.run(after.replace(own["c"], own[name]))
            assert code == 0, said

        for name in brokers:
            waited(lambda: "3 brokers." in shell.run(f"palio overlay --server {own[name]}")[1], str)  # noqa: B023
            wait_until_whole(name)
        assert shell.run(subscribe)[0] == 1  # nothing has come yet
        assert shell.run(publish)[0] == 0
        code, said = shell.run(before)
        assert code == 0, said
        for name, up in brokers.items():
            running[name].terminate()
            assert running[name].wait(60) == 0
            code, said = shell.run(publish)
            assert code == 0, said
            running[name] = shell.start(up, f"log-{name}-again")
            wait_until_whole(name)
        code, said = shell.run(end)
        assert code == 0, said
        assert Counter(said.splitlines()) == {f'{{"price":{n}}}': 4 for n in range(1, 101)}
