"""The typer application: its commands, and what their errors look like."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sire_core.cli.change_commands import add, delete, import_, index, reextract, sync, update
from sire_core.cli.choice_commands import advise, compare, estimate, questions, recipes
from sire_core.cli.eval_command import eval_
from sire_core.cli.folder_commands import backup, check, documents, reembed, stats
from sire_core.cli.inspect_commands import doctor, explain, export, models, skill
from sire_core.cli.option_groups import GroupedCommand
from sire_core.cli.output import note, on_terminal, say
from sire_core.cli.query_commands import ask, demo, query
from sire_core.cli.reproduce_command import reproduce
from sire_core.cli.serve_commands import explore, mcp
from sire_core.cli.train_commands import export_training, train_chains
from sire_core.errors import SireError


class _Group(TyperGroup):
    """Turns what goes wrong in a command into a line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
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
    """Add to an unknown option or argument how a question with a dash or blanks is written."""
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
        from sire_core.version import __version__

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
    """Options of `sire` itself."""
    if context.invoked_subcommand is None:
        say(_FIRST_STEPS if on_terminal() else context.get_help())


for _command in (
    *(demo, index, query, ask, explain, explore, stats, documents, sync, add, update, delete, export, import_, backup),
    *(
        check,
        doctor,
        reextract,
        reembed,
        recipes,
        models,
        compare,
        advise,
        estimate,
        questions,
        eval_,
        reproduce,
        mcp,
        skill,
    ),
    *(train_chains, export_training),
):
    app.command(_command.__name__.strip("_").replace("_", "-"), cls=GroupedCommand)(_command)
