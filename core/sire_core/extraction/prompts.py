"""Prompts of extraction, by version. Our own words; the schemas of their answers are in `answers.py`.

A change of any text needs a new version: records and answers are stored under it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sire_core.errors import ConfigurationError
from sire_core.protocols import ChunkInContext


@dataclass(frozen=True, slots=True)
class ExtractionPrompts:
    """Instructions of one version.

    Attributes:
        joint: One call for the whole record.
        rewrite: First step of SiReRAG's pipeline: resolve references (section 4.2 and figure 6 of the paper).
        entities: Second step: named entities with types (figure 7).
        facts: Third step: facts with triples, given the entities (figure 8).
        names: First step of MS-RAG's graph: what the passage names (its figure 6).
        triples: Second step: relations, given the names (figure 5).
        aliases: Third step: different names of one thing (figure 8).
        keywords: IIER's five keywords of a passage (section 3.1).
        document: IndexRAG's first stage: all that a document states as questions and answers (section 3.2.1, figure 4).
    """

    joint: str
    rewrite: str
    entities: str
    facts: str
    names: str = ""
    triples: str = ""
    aliases: str = ""
    keywords: str = ""
    document: str = ""


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

_EXAMPLE = (
    "Example. Passage: Mira Vale (born 3 July 1961), who signs as M. Vale, is a Norwegian painter. She was taught by "
    "Otto Kell at the Harbour School and later built the sets of The Long Tide.\nAnswer: "
)
"""One passage for all examples."""

_NAMES = (
    "List what the passage names, each once: people, places, organizations, works, events, products, and dates. Write "
    "a name as the passage writes it where it is fullest.\n"
    + _EXAMPLE
    + '{"names":["Mira Vale","3 July 1961","M. Vale","Norwegian","Otto Kell","Harbour School","The Long Tide"]}'
)

_TRIPLES = (
    "Turn the passage into a graph: every relation that it states as head, predicate and tail. At least one end, "
    "better both, is one of the given names; put names in place of pronouns.\n"
    + _EXAMPLE
    + '{"triples":[["Mira Vale","born on","3 July 1961"],["Mira Vale","signs as","M. Vale"],'
    '["Mira Vale","is","Norwegian"],["Mira Vale","is","painter"],["Mira Vale","taught by","Otto Kell"],'
    '["Mira Vale","studied at","Harbour School"],["Mira Vale","built the sets of","The Long Tide"]]}'
)

_ALIASES = (
    "Which of the given names mean one and the same thing in this passage? Answer with groups of two or more names; no "
    "group where nothing has two names. A group holds no kinds, parts or relatives of a thing.\n"
    + _EXAMPLE
    + '{"aliases":[["Mira Vale","M. Vale"]]}'
)

_KEYWORDS = (
    "Give the five phrases that tell best what the passage is about: its main things and themes, each copied from the "
    "passage letter by letter.\n"
    + _EXAMPLE
    + '{"keywords":["Mira Vale","Norwegian painter","Otto Kell","Harbour School","The Long Tide"]}'
)

_DOCUMENT = (
    "The data is a document in numbered passages. Write down everything that it states as pairs of a question and its "
    "answer: facts, descriptions, properties, events, and how the things in it are related. Each pair is about one "
    "statement and can be understood alone; the answer is a full sentence that names its subject, says nothing beyond "
    "the document, and comes with the number of its passage. And list every person, place, organization, work, event, "
    "product and date that it names, under the fullest name.\n"
    + _EXAMPLE
    + '{"qa_pairs":[{"passage":1,"question":"When was Mira Vale born?","answer":"Mira Vale was born on 3 July 1961."},'
    '{"passage":1,"question":"How does Mira Vale sign?","answer":"Mira Vale signs as M. Vale."},'
    '{"passage":1,"question":"What is Mira Vale?","answer":"Mira Vale is a Norwegian painter."},'
    '{"passage":1,"question":"Who taught Mira Vale?","answer":"Otto Kell taught Mira Vale at the Harbour School."},'
    '{"passage":1,"question":"What did Mira Vale build?","answer":"Mira Vale built the sets of The Long Tide."}],'
    '"entities":["Mira Vale","3 July 1961","Otto Kell","Harbour School","The Long Tide"]}'
)

PROMPTS: dict[str, ExtractionPrompts] = {
    "v1": ExtractionPrompts(
        joint=_JOINT,
        rewrite=_REWRITE,
        entities=_ENTITIES,
        facts=_FACTS,
        names=_NAMES,
        triples=_TRIPLES,
        aliases=_ALIASES,
        keywords=_KEYWORDS,
        document=_DOCUMENT,
    ),
}
"""Versions by name; old ones stay, so that old indexes can be extended."""


def prompts(version: str) -> ExtractionPrompts:
    """The prompts of a version."""
    if version not in PROMPTS:
        raise ConfigurationError(f"unknown prompt version {version!r}; there are: {', '.join(PROMPTS)}")
    return PROMPTS[version]


def document_data(items: Sequence[ChunkInContext]) -> str:
    """The data block of a document: title and numbered passages."""
    passages = [{"number": number, "text": item.chunk.text} for number, item in enumerate(items, 1)]
    title = {"title": items[0].chunk.title} if items[0].chunk.title else {}
    return json.dumps({**title, "passages": passages}, ensure_ascii=False)


def passage_data(item: ChunkInContext, *, passage: str | None = None, entities: tuple[str, ...] = ()) -> str:
    """The data block of a passage: one JSON object, so that no part can pose as another."""
    data: dict[str, object] = {}
    if item.previous and passage is None:
        data["context"] = item.previous
    if item.chunk.title:
        data["title"] = item.chunk.title
    data["passage"] = item.chunk.text if passage is None else passage
    if entities:
        data["entities"] = list(entities)
    return json.dumps(data, ensure_ascii=False)
