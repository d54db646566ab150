"""`sire export-training`: what a model extracted, to train a smaller extractor on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.output import can_be_written, count, say
from sire_core.errors import ConfigurationError

__all__ = ["export_training"]


def export_training(
    folder: arguments.Folder,
    to: Annotated[Path, typer.Option("--to", metavar="FILE.jsonl", help="Output file, with one chat per line.")],
    documents: Annotated[
        int, typer.Option("--documents", metavar="N", min=1, help="Maximum number of documents, chosen at random.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    recipe: arguments.HeldRecipe = None,
) -> None:
    """Export a model's extractions as training examples.

    An example consists of the prompt for a passage and the model's answer.

    The SiReRAG paper trains a small model on 10,000 documents labelled by a large one. The small model is then used
    with the same prompts: sire index SRC --to DIR --llm SMALL --base-url URL.
    """
    from sire_core.evaluate.files import write_text
    from sire_core.pipeline.training_examples import training_examples

    if not can_be_written(to):
        raise ConfigurationError(f"--to {to}: name a file in a folder that exists and is yours to write.")
    examples = training_examples(folder, documents=documents, seed=seed, recipe=recipe or "")
    lines = [json.dumps(example, ensure_ascii=False) + "\n" for example in examples]
    write_text(to, "".join(lines))
    say(f"{to}: {count(len(lines), 'example')}.")
