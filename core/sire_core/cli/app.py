"""The typer application: its commands, and what their errors look like."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sire_core.cli.option_groups import GroupedCommand
from sire_core.cli.output import note, on_terminal, say
from sire_core.errors import SireError
from sire_core.version import __version__

_FUNCTIONS = (
    *("query_commands:demo", "change_commands:index", "query_commands:query", "query_commands:ask"),
    *("inspect_commands:explain", "serve_commands:explore", "folder_commands:stats", "folder_commands:documents"),
    *("change_commands:sync", "change_commands:add", "change_commands:update", "change_commands:delete"),
    *("inspect_commands:export", "change_commands:import_", "folder_commands:backup", "folder_commands:check"),
    *("inspect_commands:doctor", "change_commands:reextract", "folder_commands:reembed", "choice_commands:recipes"),
    *("inspect_commands:models", "choice_commands:compare", "choice_commands:advise", "choice_commands:estimate"),
    *("choice_commands:questions", "eval_command:eval_", "reproduce_command:reproduce", "serve_commands:mcp"),
    *("inspect_commands:skill", "train_commands:train_chains", "train_commands:export_training"),
)
_PATHS = {path.partition(":")[2].strip("_").replace("_", "-"): f"sire_core.cli.{path}" for path in _FUNCTIONS}
"""Functions of the commands by their names, as help lists them."""


@cache
def _command(name: str) -> Any:
    """Import the module of a command and make the command."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=GroupedCommand)(resolve_name(_PATHS[name]))
    return typer.main.get_command(alone)


_USUAL_NAMES = {
    **dict.fromkeys(("search", "find", "retrieve", "context"), "query"),
    **dict.fromkeys(("answer", "chat"), "ask"),
    **dict.fromkeys(("build", "create", "ingest", "init", "load"), "index"),
    **dict.fromkeys(("ls", "list", "show", "cat"), "documents"),
    **dict.fromkeys(("remove", "rm"), "delete"),
    **dict.fromkeys(("serve", "ui", "web"), "explore"),
    **dict.fromkeys(("info", "status"), "stats"),
    **dict.fromkeys(("verify", "validate"), "check"),
    **dict.fromkeys(("evaluate", "benchmark"), "eval"),
}
"""Commands by the names that other tools have for them."""


class _Commands(Mapping[str, Any]):
    """Commands by name, each made when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_PATHS)

    def __len__(self) -> int:
        return len(_PATHS)


class _Group(TyperGroup):
    """Makes commands when they are needed; turns what goes wrong in one into a line on stderr and an exit code."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": _Commands()})

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            note("Interrupted.")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            _close_output()
            raise typer.Exit(1) from None
        except (SireError, OSError) as error:
            note(f"error: {error}", "red")
            raise typer.Exit(1) from None
        except Exception as error:
            _explain_usage(error)
            raise


def _explain_usage(error: Any) -> None:
    """Add what was probably meant to an unknown command, option or argument."""
    # Typer has a click of its own or takes the one that is installed: the error is known by what it has.
    takes = (
        {parameter.name for parameter in error.ctx.command.params} if getattr(error, "ctx", None) is not None else ()
    )
    if getattr(error, "option_name", None) == "--to" and {"folder", "sources"} <= set(takes):
        error.message += f". Write: sire {error.ctx.command.name} DIR FILE"
    elif owners := _commands_with(error):
        ask = " To have a model answer a question, use `sire ask`." if "question" in takes and "ask" in owners else ""
        error.message += f". It belongs to other commands: {', '.join(f'sire {name}' for name in owners)}.{ask}"
    elif getattr(error, "option_name", None) and "question" in takes:
        error.message += f'. A question that begins with a dash goes behind two of them: -- "{error.option_name} ..."'
    elif "unexpected extra argument" in getattr(error, "message", ""):
        error.message += ". Put a question or a value of several words in quotes."
    elif getattr(error, "message", "").startswith("No such command"):
        name = error.message.partition("'")[2].partition("'")[0]
        if name in _USUAL_NAMES:
            error.message = f"No such command {name!r}. Did you mean `sire {_USUAL_NAMES[name]}`?"


def _commands_with(error: Any) -> list[str]:
    """Other commands that have the option which an error is about."""
    group = getattr(getattr(getattr(error, "ctx", None), "parent", None), "command", None)
    option, commands = getattr(error, "option_name", None), getattr(group, "commands", {})
    return [name for name, command in commands.items() if any(option in part.opts for part in command.params)]


def _close_output() -> None:
    """Drop buffered output after the reader of a pipe is gone (`| head`), so that the exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


app = typer.Typer(
    cls=_Group,
    help="Retrieval for multi-hop questions: index documents, ask questions, see the evidence and why it was found.",
    epilog="Start with `sire demo`. Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted.",
    invoke_without_command=True,
    rich_markup_mode=None,  # help is text: [brackets] stay, paragraphs are wrapped as they should
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"sire {__version__}\n")
        raise typer.Exit


_FIRST_STEPS = """Finds the passages that answer a question, in one document or in several.

  1. sire demo                           A small sample, with questions.
  2. sire index FOLDER --to my-index     Your own documents; needs no API key.
  3. sire query my-index "QUESTION"      The sentences that answer, and why.

All commands: sire --help"""
"""Text of `sire` alone on a terminal; lines fit 80 columns."""


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback prints it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        say(_FIRST_STEPS if on_terminal() else context.get_help())
