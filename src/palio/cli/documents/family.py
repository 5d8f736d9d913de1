"""`palio family`: families of XML documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from palio.cli.network.broker_status import AsJson, count_of, print_rows
from palio.cli.program.confirming import Yes, want_yes
from palio.cli.program.connecting import Server, with_client
from palio.cli.program.dressing import argument, flag, option
from palio.cli.program.terminal import help_epilog, plural, printable, say, write_json, write_line
from palio.client import Client
from palio.model.errors import PalioError

_ADD = "palio family add card --schema examples/xml/card.xsd --key /card/code"
_CHANGE = "palio family change card --path price=/card/price"
app = typer.Typer(no_args_is_help=True, epilog=help_epilog(_ADD, "palio family paths card --all", _CHANGE))

Name = Annotated[str, argument("NAME", "A family, as palio family ls shows it.")]
Schema = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "A file of the schema, then what it imports: files, or folders of .xsd; repeat it.",
        "--schema",
        exists=True,
        readable=True,
    ),
]
PathOption = Annotated[
    list[str] | None,
    option("[NAME[:KIND]=]XPATH", "A path that becomes an attribute; repeat it.", "--path"),
]
Key = Annotated[
    list[str] | None,
    option("XPATH", "What tells documents apart; repeat it if several paths together do.", "--key"),
]
Prefix = Annotated[
    list[str] | None,
    option("PREFIX=NAMESPACE", "What paths call a namespace; repeat it.", "--prefix"),
]
Here = Annotated[bool, flag("--here", "Do not wait until all brokers know it.")]


class WrongPrefix(PalioError):
    """A prefix of which it is not said what it stands for."""

    text: str
    sentence = "{text!r} is no prefix with its namespace; write --prefix c=urn:example:card"


class UnreadableSchema(PalioError):
    """A file of a schema that cannot be read."""

    file: str
    reason: str
    sentence = "The file {file!r} cannot be read: {reason}."


@app.command("add", epilog=help_epilog(
    _ADD,
    "palio family add note --path to=/note/to --key /note/@id",
))  # fmt: skip
def add(
    name: Annotated[str, argument("NAME", "Letters, digits and _; filters say NAME.PATH.")],
    *,
    server: Server = None,
    schema: Schema = None,
    path: PathOption = None,
    key: Key = None,
    prefix: Prefix = None,
    root: Annotated[str | None, option("NAME", "The root element, if the key does not begin with it.")] = None,
    namespace: Annotated[
        str | None, option("NAMESPACE", "Its namespace, if it is not that of the schema.")
    ] = None,
    registered: Annotated[
        bool, flag("--registered", "Only publishers that have registered may publish (palio family register).")
    ] = False,
    here: Here = False,
) -> None:
    """Add a family of documents, which all brokers of the network then know.

    Documents with its root element are read when they are published: what the
    paths find becomes attributes, of the kind that the schema says (or
    NAME:KIND=XPATH does: int, float, bool, time, string). What
    a schema imports is looked up among the files, never fetched; the first
    one is the schema itself. A path without a prefix is in the namespace of
    the schema. Needs the right families.
    """
    made = with_client(
        server,
        lambda client: client.families.add(
            name,
            _files(schema or ()),
            path or (),
            key=key or (),
            prefixes=_prefixes(prefix),
            root=root,
            namespace=namespace,
            registered=registered,
            ready=_ready(here),
        ),
    )
    say(f"{_sentence(made)} Publish its documents with palio pub --xml FILE.")


@app.command("ls", epilog=help_epilog("palio family ls", "palio family ls --json"))
def ls(server: Server = None, as_json: AsJson = False) -> None:
    """Show the families of documents."""
    rows = with_client(server, lambda client: client.families.ls())
    if as_json:
        for row in rows:
            write_json(row)
        return
    shown = [
        (
            row["name"],
            printable(row["root"]),
            printable(row["namespace"]),
            printable(" ".join(row["key"])),
            row["revision"],
            len(row["paths"]),
        )
        for row in rows
    ]
    print_rows(("family", "root", "namespace", "key", "revision", "paths"), shown, 4)
    say("1 family." if len(rows) == 1 else f"{len(rows):,} families.")


@app.command(
    "show",
    epilog=help_epilog("palio family show card", "palio family show card --schema-to /tmp/palio-example"),
)
def show(
    name: Name,
    server: Server = None,
    schema_to: Annotated[
        Path | None, option("FOLDER", "Write the files of the schema there.", file_okay=False)
    ] = None,
) -> None:
    """Show one family with all that is known of it, as JSON."""
    family = with_client(server, lambda client: client.families.show(name))
    files = family["schemas"]
    if schema_to is not None:
        for file in files:
            target = schema_to / Path(file["name"]).name  # whatever folders its name has
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file["content"])
    write_json(family | {"schemas": [file["name"] for file in files]})


@app.command("paths", epilog=help_epilog("palio family paths card", "palio family paths card --all"))
def paths(
    name: Name,
    server: Server = None,
    everything: Annotated[bool, flag("--all", "Also those that the schema has and nobody has added.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the paths of a family: what filters may ask for.

    A filter says the path itself or NAME.SHORT, such as card.price < 10. A path
    of a kind with [] is always a list.
    """
    found = with_client(server, lambda client: client.families.paths(name, all=everything))
    rows = [one | {"extracted": True} for one in found["paths"]]
    rows += [one | {"extracted": False} for one in found["others"]]
    if as_json:
        for row in rows:
            write_json(row)
        return
    shown = [
        (
            printable(row["expression"]),
            row["kind"] + ("[]" if row["many"] else ""),
            f"{name}.{row['name']}" if row["name"] else "",
            "yes" if row["extracted"] else "",
        )
        for row in rows
    ]
    print_rows(("path", "kind", "short", "extracted"), shown, 4)
    count_of(rows, "path")


@app.command("change", epilog=help_epilog(
    _CHANGE,
    "palio family change card --schema examples/xml/card.xsd --dry-run",
    "palio family change card --without price --force",
))  # fmt: skip
def change(
    name: Name,
    *,
    server: Server = None,
    schema: Schema = None,
    path: PathOption = None,
    without: Annotated[
        list[str] | None, option("PATH", "A path that goes, by its text or short name; repeat it.")
    ] = None,
    key: Key = None,
    prefix: Prefix = None,
    registered: Annotated[
        bool | None, typer.Option("--registered/--open", help="Whether publishers have to register.")
    ] = None,
    force: Annotated[
        bool, flag("--force", "Change it even if that breaks what is in use; the log says so.")
    ] = False,
    dry: Annotated[bool, flag("--dry-run", "Only show what it would break.")] = False,
    here: Here = False,
) -> None:
    """Change a family: another schema (all its files), more paths, other ones, fewer.

    What is not said stays. What would break is shown, and the change refused: a
    path that is gone, of another kind or name, another key. Subscriptions
    may say any path, wherever they are, so all paths count as in use.
    """
    made = with_client(
        server,
        lambda client: client.families.change(
            name,
            None if schema is None else _files(schema),
            path or (),
            without=without or (),
            key=key,
            prefixes=_prefixes(prefix),
            registered=registered,
            force=force,
            dry=dry,
            ready=_ready(here),
        ),
    )
    for sentence in made["broken"]:
        write_line(printable(sentence))
    if made["documents"]:
        those = "" if made["whole"] else ", the first ones"
        say(f"It was held against {plural(made['documents'], 'current document')} of this broker{those}.")
    if dry:
        say(f"Nothing was changed. This would break {plural(len(made['broken']), 'thing')}.")
    else:
        say(_sentence(made))


@app.command("remove", epilog=help_epilog("palio family remove note --yes"))
def remove(name: Name, server: Server = None, yes: Yes = False, here: Here = False) -> None:
    """Remove a family from all brokers. What was published stays what it is.

    Its documents are refused from then on, and subscriptions that ask for its
    paths get nothing more; so it wants --yes.
    """

    async def look(client: Client) -> dict[str, Any]:
        return await client.families.paths(name)

    with_client(server, look)
    if not yes:
        want_yes(f"The family {name} would be removed at all brokers; its documents would be refused.")
    with_client(server, lambda client: client.families.remove(name, ready=_ready(here)))
    say(f"The family {name} is removed.")


Address = Annotated[str, option("TEXT", "Which of several publishers of yours; empty if it is one.")]


@app.command("register", epilog=help_epilog("palio family register card"))
def register(name: Name, address: Address = "", server: Server = None) -> None:
    """Be a publisher of documents of a family, at all brokers, until it is withdrawn.

    Families that were added with --registered take documents of registered
    publishers only. It prints a handle, the same each time.
    """
    write_line(with_client(server, lambda client: client.families.register(name, address)))


@app.command("withdraw", epilog=help_epilog("palio family withdraw card"))
def withdraw(name: Name, address: Address = "", server: Server = None) -> None:
    """Be no publisher of documents of a family any more, as `register` made you one."""
    with_client(server, lambda client: client.families.withdraw(name, address))
    say(f"Not registered for {name} any more.")


@app.command("publishers", epilog=help_epilog("palio family publishers card"))
def publishers(name: Name, server: Server = None, as_json: AsJson = False) -> None:
    """Show who is registered as a publisher of documents of a family."""
    rows = with_client(server, lambda client: client.families.publishers(name))
    if as_json:
        for row in rows:
            write_json(row)
        return
    shown = [(one["principal"] or "-", one["address"] or "-", one["handle"]) for one in rows]
    print_rows(("principal", "from", "handle"), shown, 4)
    count_of(rows, "publisher")


def _files(given: Iterable[Path]) -> list[tuple[str, bytes]]:
    """Files of a schema by the names under which others of them refer to it. Raises `UnreadableSchema`."""
    named: dict[str, Path] = {}
    for one in given:
        files = sorted(one.rglob("*.xsd")) if one.is_dir() else [one]
        for file in files:
            name = file.relative_to(one).as_posix() if one.is_dir() else file.name
            named.setdefault(name, file)
    try:
        return [(name, file.read_bytes()) for name, file in named.items()]
    except OSError as problem:
        raise UnreadableSchema(str(problem.filename), problem.strerror or str(problem)) from None


def _ready(here: bool) -> Any:
    return "broker" if here else "network"


def _sentence(made: dict[str, Any]) -> str:
    paths = plural(len(made["paths"]), "path")
    return f"The family {made['name']} has {paths}, in revision {made['revision']}."


def _prefixes(given: list[str] | None) -> dict[str, str]:
    """Raises `WrongPrefix`."""
    found = {}
    for text in given or ():
        prefix, equals, namespace = text.partition("=")
        if not equals:
            raise WrongPrefix(text)
        found[prefix] = namespace
    return found
