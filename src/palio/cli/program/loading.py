"""Commands that are loaded when they are needed.

A program that is started for each event had better start quickly, and its help must come up wherever it is
installed. So a group knows of its commands only what its own help says of them (`CommandEntry`), and puts a
stand-in (`Unloaded`) where the real one would be, which loads it as soon as it is called, or asked for its
help.

A package that is missing is told in a sentence, in loading as well as in the work of the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from palio.cli.program.dressing import dressed
from palio.cli.program.extras import told
from palio.cli.program.nearest import nearest
from palio.cli.program.terminal import help_epilog
from palio.model.errors import MissingDependency


class CommandEntry(NamedTuple):
    """What is known of a command before it is loaded.

    A module with an `app` is a group; otherwise the command is its function of the same name.
    """

    module: str
    summary: str  # the help of a group; of a command, the first sentence of its own, which a test compares
    extra: str = ""  # what it needs whatever it is asked for

    def load(self, name: str) -> Any:
        module = import_module(f"palio.cli.{self.module}")
        command = self._group(module) if hasattr(module, "app") else _alone(name, module)
        command.name = name
        return dressed(command)

    def _group(self, module: ModuleType) -> Any:
        group = typer.main.get_group(module.app)
        group.help = group.help or self.summary
        return group


def command_group(*examples: str) -> typer.Typer:
    """A group that shows its help where none of its commands is named."""
    return typer.Typer(no_args_is_help=True, epilog=help_epilog(*examples))


def _alone(name: str, module: ModuleType) -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    epilogs = getattr(module, "EPILOGS", None)
    epilog = epilogs[name] if epilogs else module.EPILOG
    alone.command(name, epilog=epilog)(getattr(module, name.replace("-", "_")))
    return typer.main.get_command(alone)


class Loaded(MutableMapping[str, Any]):
    """The commands by their names, each loaded when it is first asked for."""

    def __init__(self, entries: Mapping[str, CommandEntry]) -> None:
        self._entries = entries
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._entries[name].load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]


class Unloaded(TyperCommand):
    """Stands in a list for a command that nobody has called yet."""

    def __init__(self, name: str, entry: CommandEntry, commands: Mapping[str, Any]) -> None:
        super().__init__(name, help=entry.summary)
        self._commands = commands

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **more: Any) -> Any:
        try:
            command = self._commands[str(self.name)]
        except ModuleNotFoundError:
            if not more.get("resilient_parsing"):
                raise
            # A shell that completes words wants names, and no sentence.
            return super().make_context(info_name, args, parent, ignore_unknown_options=True, **more)
        return command.make_context(info_name, args, parent, **more)


class LazyGroup(TyperGroup):
    """A group whose commands are loaded when they are needed: a subclass says which ones there are."""

    entries: ClassVar[Mapping[str, CommandEntry]]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Loaded(self.entries)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = self.entries.get(cmd_name)
        return None if entry is None else Unloaded(cmd_name, entry, self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.entries and not args[0].startswith("-") and not ctx.resilient_parsing:
            meant = [f"`{ctx.command_path} {one}`" for one in nearest(args[0], self.entries)]
            advice = (
                f"Did you mean {' or '.join(meant)}?" if meant else f"`{ctx.command_path} --help` lists all."
            )
            ctx.fail(f"There is no command {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ModuleNotFoundError, MissingDependency) as problem:
            name = ctx.invoked_subcommand
            sentence = told(problem, self.entries[name].extra if name in self.entries else "")
            if sentence is None:
                raise
            raise sentence from None
