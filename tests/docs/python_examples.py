"""Examples in Python on a page, run in turn against a broker, each printing what its comments say."""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import re
from pathlib import Path
from typing import Any

from palio import testing

ADDRESS = "palio://127.0.0.1:7070"


def run_examples(page: Path) -> int:
    """Run all examples of a page in one namespace. Returns how many there are."""
    examples = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    printed: list[str] = []

    def note(*values: object) -> None:
        printed.append(" ".join(map(str, values)))

    async def run_all() -> None:
        async with testing.broker(name="siena", journal=True) as address, asyncio.timeout(60):
            namespace: dict[str, Any] = {"print": note, "__builtins__": builtins}
            for example in examples:
                code = compile(
                    example.replace(ADDRESS, address), str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                )
                printed.clear()
                if code.co_flags & inspect.CO_COROUTINE:
                    await eval(code, namespace)
                else:  # it blocks
                    await asyncio.to_thread(eval, code, namespace)
                assert printed == _expected(example), example

    asyncio.run(run_all())
    return len(examples)


def _expected(example: str) -> list[str]:
    found = [re.search(r"print\(.*\)  # (.*)", line) for line in example.splitlines()]
    return [match[1] for match in found if match]
