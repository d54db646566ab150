"""Text without the addresses of its Markdown links, as it is searched."""

from __future__ import annotations

import re

LINK_TARGET = r"\]\([^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500}){0,4}(?:[ \t]+\"[^\"\n]{0,300}\")?\)"
"""Pattern of the address of a Markdown link or image, from the closing bracket of its text on."""
_TARGET = re.compile(LINK_TARGET)


def without_link_targets(text: str) -> str:
    """Return a text with `[words]` for every `[words](address)`: addresses are no words of a passage."""
    return _TARGET.sub("]", text) if "](" in text else text
