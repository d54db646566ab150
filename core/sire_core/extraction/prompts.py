"""Prompts of extraction, by version. Our own words; the schemas of their answers are in `answers.py`.

A change of any text needs a new version: records and answers are stored under it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sire_core.errors import ConfigurationError
from sire_core.protocols import ChunkInContext

__all__ = ["PROMPTS", "ExtractionPrompts", "passage_data", "prompts"]


@dataclass(frozen=True, slots=True)
class ExtractionPrompts:
    """Instructions of one version.

    Attributes:
        joint: One call for the whole record.
        rewrite: First step of SiReRAG's pipeline: resolve references (section 4.2 and figure 6 of the paper).
        entities: Second step: named entities with types (figure 7).
        facts: Third step: facts with triples, given the entities (figure 8).
    """

    joint: str
    rewrite: str
    entities: str
    facts: str


_JOINT = """\
Index the passage for search: list what it names and everything it states. Context, if given, only tells who or what \
is meant; take nothing else from it. Write in the passage's language. Empty lists if there is nothing.
entities: each named person, place, organization, work, event, product, term or date once, under its most informative \
name; aliases used for it; description of at most 15 words.
facts: one self-contained sentence each, with full names and no pronouns; entities = ids it names; question = one it \
answers; answer = "" unless the full-sentence answer differs from text; triples = its relations: h and t are ids or \
short literals (at least one id), strength 1-10.
keywords: the five most telling phrases, verbatim from the passage.
abstractiveness: high for an overview, low for details."""

_REWRITE = """\
Write the passage again so that every sentence can be understood alone. Put names in place of pronouns and of vague \
descriptions, using the context where the passage alone does not tell who or what is meant. Call each person or thing \
by one name, the most informative one. Keep every statement and add none. Answer with the rewritten passage only."""

_ENTITIES = """\
List the named entities of the passage, each once under its most informative name, with a type that suits the subject. \
Shorter forms of a name go into its aliases."""

_FACTS = """\
List every fact that the passage states, each as one self-contained sentence with names instead of pronouns. Use the \
names of the given entities. For each fact give its relations as triples of head, predicate and tail; at least one end \
of a triple, better both, is a given entity."""

PROMPTS: dict[str, ExtractionPrompts] = {
    "v1": ExtractionPrompts(joint=_JOINT, rewrite=_REWRITE, entities=_ENTITIES, facts=_FACTS),
}
"""Versions by name; old ones stay, so that old indexes can be extended."""


def prompts(version: str) -> ExtractionPrompts:
    """The prompts of a version.

    Raises:
        ConfigurationError: There is no such version.
    """
    if version not in PROMPTS:
        raise ConfigurationError(f"unknown prompt version {version!r}; there are: {', '.join(PROMPTS)}")
    return PROMPTS[version]


def passage_data(item: ChunkInContext, *, passage: str | None = None, entities: tuple[str, ...] = ()) -> str:
    """The data block of a passage: one JSON object, so that no part can pose as another.

    Args:
        item: The chunk and the text before it.
        passage: Stands for the chunk's own text (the rewritten one); then no context is needed.
        entities: Names found in an earlier step.
    """
    data: dict[str, object] = {}
    if item.previous and passage is None:
        data["context"] = item.previous
    if item.chunk.title:
        data["title"] = item.chunk.title
    data["passage"] = item.chunk.text if passage is None else passage
    if entities:
        data["entities"] = list(entities)
    return json.dumps(data, ensure_ascii=False)
