"""The tour of the client is run: every example on it works, and prints what it says."""

import ast
import asyncio
import builtins
import inspect
import re

import palio
from palio import testing

ADDRESS = "palio://127.0.0.1:7070"


def test_the_examples_run_and_print_what_they_say(root):
    page = (root / "docs" / "client.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(examples) > 15
    printed = []

    def note(*values):
        printed.append(" ".join(map(str, values)))

    async def run_all():
        async with testing.broker(name="siena", journal=True) as address, asyncio.timeout(60):
            namespace = {"print": note, "__builtins__": builtins}
            for example in examples:
                code = compile(
                    example.replace(ADDRESS, address), "docs/client.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                )
                printed.clear()
                if code.co_flags & inspect.CO_COROUTINE:
                    await eval(code, namespace)
                else:  # it blocks
                    await asyncio.to_thread(eval, code, namespace)
                assert printed == expected(example), example

    asyncio.run(run_all())


def expected(example):
    found = [re.search(r"print\(.*\)  # (.*)", line) for line in example.splitlines()]
    return [match[1] for match in found if match]


def test_every_error_of_the_client_is_in_the_table(root):
    page = (root / "docs" / "client.md").read_text()
    table = page.split("## What can go wrong")[1]
    from palio import client

    errors = [name for name in client.__all__ if issubclass_of_error(getattr(client, name))]
    assert len(errors) > 8
    for name in errors:
        assert f"`{name}`" in table, name


def issubclass_of_error(kind):
    return isinstance(kind, type) and issubclass(kind, palio.PalioError)
