"""How abstract a passage is, by cues that need no model (SiReRAG section 4.1)."""

from __future__ import annotations

import re

from sire_core.algorithms.text import count_tokens, split_sentences

__all__ = ["abstractiveness"]

_NUMBER = re.compile(r"\b\d[\d.,:/-]*")
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][\w'\u2019-]*")
_QUOTE = re.compile(r"[\"\u201c\u201d]")
_OVERVIEW = re.compile(
    r"\b(?:overall|in (?:general|summary|short|conclusion)|generally|usually|typically|broadly|commonly|overview|"
    r"summary|introduction|concepts?|theor(?:y|ies)|principles?|(?:kinds?|types?|forms?|range|variety) of|"
    r"(?:refers?|relates?) to|consists? of|throughout|various|many|most|often)\b",
    re.IGNORECASE,
)
_FEW = 0.06
_SOME = 0.12
_SHORTEST = 12


def abstractiveness(text: str) -> str:
    """`high` for an overview, `low` for details.

    Details carry numbers, names and quotations. A passage is an overview when it has next to none of them, or few of
    them and on average a word per sentence that generalises. The bounds are set by reading; they depend on nothing but
    the passage, so that a change of the corpus relabels nothing.

    Args:
        text: A passage without its title. Headings and fragments below a dozen tokens are `low`.
    """
    tokens = count_tokens(text)
    if tokens < _SHORTEST:
        return "low"
    details = len(_NUMBER.findall(text)) + len(_NAME.findall(text)) + len(_QUOTE.findall(text)) / 2
    density = details / tokens
    general = len(_OVERVIEW.findall(text)) >= len(split_sentences(text))
    return "high" if density < _FEW or (general and density < _SOME) else "low"
