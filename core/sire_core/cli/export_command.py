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
    to: Annotated[Path, typer.Option("--to", metavar="FILE.jsonl", help="Where the examples go, one chat a line.")],
    documents: Annotated[
        int, typer.Option("--documents", metavar="N", min=1, help="At most so many documents, drawn at random.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the draw.")] = 0,
    recipe: arguments.RecipeName = None,
) -> None:
    """Write what a model extracted as training examples.

    An example is the prompt of a passage and the record that the model gave.

    SiReRAG trains a small model on 10,000 documents that a large one has labelled. The small one is then asked with the
    same prompts: sire index SRC --to DIR --llm SMALL --base-url URL.
    """
    from sire_core.evaluate.report import write_text
    from sire_core.pipeline.training_examples import training_examples

    if not can_be_written(to):
        raise ConfigurationError(f"--to {to}: name a file in a folder that exists and is yours to write.")
    examples = training_examples(folder, documents=documents, seed=seed, recipe=recipe or "")
    lines = [json.dumps(example, ensure_ascii=False) + "\n" for example in examples]
    write_text(to, "".join(lines))
    say(f"{to}: {count(len(lines), 'example')}.")
