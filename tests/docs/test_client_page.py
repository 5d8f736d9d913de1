"""The tour of the client is run: every example on it works, and prints what it says."""

import palio
from tests.docs.python_examples import run_examples


def test_the_examples_run_and_print_what_they_say(root):
    assert run_examples(root / "docs" / "client.md") > 15


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
