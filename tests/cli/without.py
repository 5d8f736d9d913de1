"""The program in a Python that lacks packages: what somebody has who installed one extra, or none.

Started as a process of its own (`python -m tests.cli.without`), it reads from standard input which packages are
missing in which case, and which calls to try; it loads the program once, goes on in a copy of itself for each
case, and writes what came of each call as a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from typer.testing import CliRunner

from palio.cli.main import app


class Without:
    """A finder that does not find some packages."""

    def __init__(self, finder: MetaPathFinder, packages: frozenset[str]) -> None:
        self._finder = finder
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in self._packages:
            return None
        return self._finder.find_spec(fullname, path, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def attempt(words: list[str]) -> dict[str, object]:
    """What came of a call."""
    result = CliRunner().invoke(app, words, prog_name="palio")
    crash = result.exception
    trace = ""
    if crash is not None and not isinstance(crash, SystemExit):
        trace = "".join(traceback.format_exception(crash))
    return {"words": words, "code": result.exit_code, "said": result.output, "trace": trace}


def main() -> None:
    asked = json.load(sys.stdin)
    finders = list(sys.meta_path)
    anything = frozenset().union(*asked["missing"].values())
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] in anything)
    assert not loaded, f"the program alone loads {loaded}"
    # What loads with none of them loads with any, and need not be loaded in each copy again.
    hide(finders, anything)
    for module in asked["modules"]:
        with suppress(ModuleNotFoundError):
            import_module(module)
    for case, packages in asked["missing"].items():
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            assert status == 0, case
            continue
        hide(finders, frozenset(packages))
        for words in asked["calls"][case]:
            print(json.dumps({"case": case} | attempt(words)), flush=True)
        os._exit(0)


def hide(finders: list[Any], packages: frozenset[str]) -> None:
    sys.meta_path[:] = [Without(finder, packages) for finder in finders]


if __name__ == "__main__":
    main()
