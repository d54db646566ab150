"""Values of forms and notes that stand on the pages of a PDF, by pypdfium2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_HIDDEN, _PASSWORD = 1 << 1 | 1 << 5, 1 << 13
"""Flags of annotations that are not shown, and of fields whose letters are not."""
_MOST_ON_A_PAGE = 5_000
_LONGEST = 1 << 20  # Bytes of a value
TICKED, EMPTY = "\N{BALLOT BOX WITH X}", "\N{BALLOT BOX}"


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A value or a note, and its place on the page in points."""

    text: str  # The value of a field, a sign for a box, or the words of a note
    name: str  # What the form calls the field; empty for a note
    left: float
    bottom: float
    top: float

    @property
    def is_box(self) -> bool:
        """True if it is a box to tick, whose label stands on its right."""
        return self.text in (TICKED, EMPTY)


def page_entries(page: Any, form: Any) -> list[PageEntry]:
    """Filled fields, boxes and notes of a page, from top to bottom; `form` is None for a file without one."""
    import pypdfium2.raw as pdfium

    entries: list[PageEntry] = []
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_ON_A_PAGE)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        try:
            if not pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
                entries += _entries(pdfium, annotation, form)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return sorted(entries, key=lambda entry: (-entry.bottom, entry.left))


def _entries(pdfium: Any, annotation: Any, form: Any) -> Iterator[PageEntry]:
    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    name = ""
    if kind == pdfium.FPDF_ANNOT_WIDGET and form is not None:
        name, text = _field_name(pdfium, annotation, form), _field_value(pdfium, annotation, form)
    elif kind in (pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_TEXT, *_markup(pdfium)):
        text = _string(lambda *into: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", *into))
    else:
        return
    rectangle = pdfium.FS_RECTF()
    pdfium.FPDFAnnot_GetRect(annotation, rectangle)
    if text.strip():
        bottom, top = sorted((rectangle.bottom, rectangle.top))
        yield PageEntry(" ".join(text.split()), name, min(rectangle.left, rectangle.right), bottom, top)


def _markup(pdfium: Any) -> tuple[int, ...]:
    """Kinds of marks in the text that may have a comment."""
    names = ("HIGHLIGHT", "UNDERLINE", "SQUIGGLY", "STRIKEOUT", "STAMP", "SQUARE", "CIRCLE", "LINE", "CARET", "INK")
    return tuple(getattr(pdfium, f"FPDF_ANNOT_{name}") for name in names)


def _field_name(pdfium: Any, annotation: Any, form: Any) -> str:
    shown = _string(lambda *into: pdfium.FPDFAnnot_GetFormFieldAlternateName(form, annotation, *into))
    return shown or _string(lambda *into: pdfium.FPDFAnnot_GetFormFieldName(form, annotation, *into))


def _field_value(pdfium: Any, annotation: Any, form: Any) -> str:
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        return TICKED if pdfium.FPDFAnnot_IsChecked(form, annotation) else EMPTY
    if kind in (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
        numbers = range(min(max(0, pdfium.FPDFAnnot_GetOptionCount(form, annotation)), _MOST_ON_A_PAGE))
        chosen = [number for number in numbers if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, number)]
        labels = [
            _string(lambda *into, n=number: pdfium.FPDFAnnot_GetOptionLabel(form, annotation, n, *into))
            for number in chosen
        ]
        if any(labels):
            return ", ".join(filter(None, labels))
    elif kind != pdfium.FPDF_FORMFIELD_TEXTFIELD or pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return ""
    return _string(lambda *into: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, *into))


def _string(read: Any) -> str:
    """A text that PDFium writes into memory that is large enough for it."""
    import ctypes

    import pypdfium2.raw as pdfium

    size = read(None, 0)
    if not 2 < size <= _LONGEST:
        return ""
    letters = (pdfium.FPDF_WCHAR * (size // 2 + 1))()
    read(letters, size)
    return ctypes.string_at(letters, size).decode("utf-16-le", "replace").rstrip("\0")
