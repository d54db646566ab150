"""Words of the charts and diagrams in Word and PowerPoint files."""

from __future__ import annotations

from typing import Any

__all__ = ["graphic_words"]

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def graphic_words(part: Any, graphic: Any) -> str:
    """Words of a chart or diagram, which lie in a part of their own."""
    from lxml import etree

    names = [(element.tag, element) for element in graphic if element.tag in (f"{_CHART}chart", f"{_DIAGRAM}relIds")]
    words: list[str] = []
    for tag, element in names:
        relation = element.get(f"{_RELATION}{'id' if tag == f'{_CHART}chart' else 'dm'}")
        if relation in part.rels and not part.rels[relation].is_external:
            root = etree.fromstring(part.related_part(relation).blob, etree.XMLParser(resolve_entities=False))
            known: dict[str, None] = {}  # each series of a chart names the categories again
            for found in root.iter(f"{_DRAWING}t", f"{_CHART}v"):
                known.setdefault((found.text or "").strip(), None)
            words += [word for word in known if word]
    return f"\n{'; '.join(words)}\n" if words else ""
