"""`skill_text`: how an agent uses an index by commands, in the format of agent skills (SKILL.md)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError
from sire_core.text.pluralize import count, shorten

if TYPE_CHECKING:
    from sire_core.index import Index

_TITLES, _KEYS, _LONGEST_TITLE = 8, 30, 60

_SKILL = """---
name: {name}
description: Find evidence in a collection of {documents} ({titles}). Use it before answering a question about them, \
also when the answer needs several documents.
---

# Search the documents

Run these commands in a shell; they read an index and change nothing.

## When to search

Before you answer a question about these documents. Write one complete question with names spelled out; do not search \
for keywords. One search follows names from document to document, so ask the whole question first, and its parts only \
if evidence is missing.

```
sire query {folder} "QUESTION" -k 8 --json
```

Each result has `doc_ids`, `title`, `snippet` (the sentences that answer best), `text` and `path` (why it was found). \
Results are the best, not all: the absence of a document among them says nothing.

## When to open a document

If a snippet breaks off, or steps or a table go on:

```
sire documents {folder} DOC_ID
```

## When to ask for more

- The second of two documents is missing: search again with the name that the first one gives.
- Nothing fits: say so. Look at what there is with `sire documents {folder}`, and why a document was not found with \
`sire explain {folder} "QUESTION" DOC_ID`.
- Only some documents count: add `--filter`, for example `--filter "{example}"`. {keys}

## How to cite

Put the id of the document in brackets behind each statement, as results name it: [DOC_ID]; where `metadata` of the \
result has a `page`, the passage begins on it: [DOC_ID, page 3]. State nothing that no \
result says. If the evidence is insufficient, say what is missing.
"""


def titles_among(index: Index, ids: Sequence[str]) -> str:
    """Titles of a few documents from all parts of an index, for descriptions that agents choose by."""
    few = ids[:: max(1, len(ids) // _TITLES)][:_TITLES]
    titles = [document.title or document.id for document in index.documents(few)]
    shown = "; ".join(shorten(" ".join(title.split()), _LONGEST_TITLE) for title in titles)
    return f"{shown}{'; ...' if len(ids) > len(few) else ''}"


def skill_text(index: Index, folder: str, name: str = "search-documents") -> str:
    """Return the text of a SKILL.md about an index.

    Args:
        index: The index.
        folder: Its path, as the agent's shell names it.
        name: Name of the skill: lower case letters, digits and dashes.

    Raises:
        ConfigurationError: The name is not of this form.
    """
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+){0,20}", name) or len(name) > 64:
        raise ConfigurationError(f"name is up to 64 lower case letters, digits and single dashes, not {name!r}.")
    snapshot = index.snapshot()
    ids = snapshot.document_ids()
    keys = sorted({key for row in snapshot.metadata() for key in row if not key.startswith("sire_")})[:_KEYS]
    return _SKILL.format(
        name=name,
        documents=count(len(ids), "document"),
        titles=titles_among(index, ids),
        folder=shlex.quote(folder),
        example=f"{keys[0]}=VALUE" if keys else "source=NAME",
        keys=f"Metadata keys: {', '.join(keys)}." if keys else "These documents have no metadata.",
    )
