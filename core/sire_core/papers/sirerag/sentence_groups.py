"""`group_sentences`: a model cuts documents into groups of sentences, details and overviews (SiReRAG section 4.1)."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from pydantic import Field

from sire_core.extend import (
    Document,
    LanguageModel,
    LenientAnswer,
    LenientLevel,
    LenientList,
    ModelError,
    Passage,
    ProgressLike,
    Prompt,
    ask_all,
    progress_of,
    split_sentences,
)

_logger = logging.getLogger(__name__)

_WINDOW = 120  # Sentences per call

_GROUPING_INSTRUCTIONS = """\
Cut the numbered sentences of the data into groups of neighbours that are about one thing; every sentence is in one \
group. For each group give the numbers of its sentences, its topic in a few words, and its abstractiveness: high when \
its sentences give an overview of the topic, low when they tell details of it."""


class _Group(LenientAnswer):
    sentences: list[int]
    topic: str = ""
    abstractiveness: LenientLevel = "low"


class _Groups(LenientAnswer):
    shape: ClassVar[str] = '{"groups":[{"sentences":[1,2],"topic":"","abstractiveness":"low"}]}'

    groups: LenientList[_Group] = Field(min_length=1)


async def group_sentences(
    documents: Sequence[Document], model: LanguageModel, progress: ProgressLike = None
) -> list[Document]:
    """Cut every document into passages by a model; their metadata has `abstractiveness` and `topic`."""
    sentences = [split_sentences(" ".join(p.text for p in d.passages) or d.text) for d in documents]
    windows = [
        (number, start)
        for number, document_sentences in enumerate(sentences)
        for start in range(0, len(document_sentences), _WINDOW)
    ]
    say = progress_of(progress)

    async def one(window: tuple[int, int]) -> list[Passage]:
        number, start = window
        return await _cut_groups(documents[number].title, sentences[number][start : start + _WINDOW], model)

    cut = await ask_all(model, one, windows, partial(say, "groups of sentences"))
    passages = dict(zip(windows, cut, strict=True))
    return [
        replace(document, text="", chunks=chunks) if chunks else document
        for document, chunks in (
            (document, tuple(passage for window in windows if window[0] == number for passage in passages[window]))
            for number, document in enumerate(documents)
        )
    ]


async def _cut_groups(title: str, sentences: Sequence[str], model: LanguageModel) -> list[Passage]:
    numbered = [{"number": number, "text": text} for number, text in enumerate(sentences, 1)]
    data = json.dumps({**({"title": title} if title else {}), "sentences": numbered}, ensure_ascii=False)
    try:
        groups = (await model.complete(Prompt(_GROUPING_INSTRUCTIONS, data), schema=_Groups)).parsed.groups
    except ModelError as error:
        _logger.warning("Sentences of %r were not grouped and are one passage: %s", title, error)
        groups = [_Group(sentences=[])]
    owner = {
        number: group_number for group_number, group in reversed(list(enumerate(groups))) for number in group.sentences
    }
    cut: list[tuple[int, list[str]]] = []
    for number, text in enumerate(sentences, 1):
        group_number = owner.get(number, cut[-1][0] if cut else 0)
        if cut and cut[-1][0] == group_number:
            cut[-1][1].append(text)
        else:
            cut.append((group_number, [text]))
    return [
        Passage(" ".join(texts), metadata={"abstractiveness": groups[i].abstractiveness, "topic": groups[i].topic})
        for i, texts in cut
    ]
