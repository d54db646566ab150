"""Triples without sentences: which sentence of a passage states each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sire_core.algorithms.text import name_key, phrase_words
from sire_core.types import Fact, Triple

__all__ = ["facts_of_triples"]


def facts_of_triples(
    sentences: Sequence[str], triples: Iterable[Sequence[str]], ids: Mapping[str, str], *, first: bool
) -> tuple[Fact, ...]:
    """Sentences with their triples in order, then the triples that no sentence names.

    Args:
        sentences: Of one chunk.
        triples: Of the whole document.
        ids: Entity ids by name key.
        first: Whether this is the document's first chunk, which takes the triples that name no sentence.
    """
    padded = [_padded(sentence) for sentence in sentences]
    groups: dict[str, list[Triple]] = {sentence: [] for sentence in sentences}
    for head, predicate, tail in triples:
        both = (_padded(head), _padded(tail))
        place = next((number for number, text in enumerate(padded) if all(end in text for end in both)), None)
        if place is None and not first:
            continue
        text = f"{head} {predicate} {tail}." if place is None else sentences[place]
        triple = Triple(ids.get(name_key(head), head), predicate, ids.get(name_key(tail), tail))
        groups.setdefault(text, []).append(triple)
    listed = [(_padded(key), number) for key, number in ids.items()]
    known = frozenset(ids.values())
    facts: list[Fact] = []
    for text, group in groups.items():
        words = _padded(text)
        ends = tuple(end for triple in group for end in (triple.head, triple.tail) if end in known)
        found = dict.fromkeys((*ends, *(number for name, number in listed if name.strip() and name in words)))
        if group or len(words.split()) > 2:
            facts.append(Fact(f"f{len(facts) + 1}", text, tuple(found), answer=text, triples=tuple(group)))
    return tuple(facts)


def _padded(text: str) -> str:
    return f" {phrase_words(text)} "
