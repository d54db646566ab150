"""Text of passages as text of HTML and XML, whatever is in it."""

from __future__ import annotations

import html
import re

__all__ = ["escaped"]

# What neither XML nor a UTF-8 file may hold: control characters except tab and newlines, and halves of pairs.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """A text that is read as it stands, inside an element or a quoted attribute of HTML or XML."""
    return html.escape(_FORBIDDEN.sub("\ufffd", text), quote=True)
