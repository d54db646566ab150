"""Folders as small firms have them: a manual and nine office files, with questions that were written before any search.

    python benchmarks/mixed_folders.py MANUALS [--embedder NAME] [--answers] [--work FOLDER] [NAME ...]

MANUALS holds the unpacked Debian packages borgbackup-doc, openvswitch-doc, gnucash-docs and nut-doc (see
`tried_manuals.py`; those of bookworm were asked). `benchmarks/mixed` has the office files as JSON, from which mails,
Word files, workbooks and PDFs are written (needs fpdf2), and thirty questions on each folder: nine need two files,
nine are in words of people who never saw the text, six ask for a fact of one file, and six are answered by none.
Printed is the recall of the needs in the first five passages by kind, or with `--answers` the needs that `sire ask`
quotes without a model, and of how many questions of each kind it doubts that they are answered.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from dataclasses import replace
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
from extracts import met
from fpdf import FPDF

from sire_core import Index
from sire_core.evaluate import Experiment, load_questions
from sire_core.evaluate.datasets import DataSet
from sire_core.evaluate.runner import EvalConfig
from sire_core.files.readers import read_documents
from sire_core.search.extracts import PASSAGES, extract_sentences
from sire_core.search.unanswered import judge_hits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sire_core.types import Document

FOLDERS = Path(__file__).parent / "mixed"
NAMES = ("choir", "lab", "clinic", "freight")
KINDS = ("two", "own", "lookup", "none")
ROWS = {"bm25": "BM25", "dense": "vectors", "hybrid": "hybrid", "sire": "`sire`"}


def write_word(file: Path, office: Mapping[str, Any]) -> None:
    """A Word file of headings, paragraphs, items and tables."""
    document = docx.Document()
    for block in office["blocks"]:
        if isinstance(block, list):
            table = document.add_table(len(block), len(block[0]), style="Table Grid")
            for row, cells in zip(table.rows, block, strict=True):
                for cell, text in zip(row.cells, cells, strict=True):
                    cell.text = text
        elif block.startswith("#"):
            marks, _, text = block.partition(" ")
            document.add_heading(text, len(marks))
        elif block.startswith("- "):
            document.add_paragraph(block[2:], style="List Bullet")
        else:
            document.add_paragraph(block)
    document.save(str(file))


def write_pdf(file: Path, office: Mapping[str, Any]) -> None:
    """A PDF file of headings and paragraphs."""
    page = FPDF()
    page.add_page()
    for block in office["blocks"]:
        is_heading = block.startswith("#")
        page.set_font("Helvetica", "B" if is_heading else "", 14 if is_heading else 11)
        text = block.lstrip("# ").encode("latin-1", "replace").decode("latin-1")
        page.multi_cell(0, 6, text, new_x="LMARGIN", new_y="NEXT")
        page.ln(3)
    page.output(str(file))


def write_workbook(file: Path, office: Mapping[str, Any]) -> None:
    """A workbook, empty cells included."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in office["sheets"].items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append([cell or None for cell in row])
    book.save(file)


def write_mail(file: Path, office: Mapping[str, Any]) -> None:
    """A mail."""
    mail = EmailMessage()
    for name, value in office["headers"].items():
        mail[name] = value
    mail.set_content(office["body"])
    file.write_bytes(bytes(mail))


def write_rows(file: Path, office: Mapping[str, Any]) -> None:
    """A CSV file."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(office["rows"])


def write_text(file: Path, office: Mapping[str, Any]) -> None:
    """A file of plain text."""
    file.write_text(office["text"], "utf-8")


WRITERS: dict[str, Callable[[Path, Mapping[str, Any]], None]] = {
    ".docx": write_word,
    ".pdf": write_pdf,
    ".xlsx": write_workbook,
    ".eml": write_mail,
    ".csv": write_rows,
    ".md": write_text,
}


def documents_of(manuals: Path, name: str, work: Path) -> list[Document]:
    """The pages of the manual and the office files, which are written first."""
    described = json.loads((FOLDERS / f"{name}.json").read_text("utf-8"))
    office = work / f"{name}-office"
    office.mkdir(parents=True, exist_ok=True)
    for one in described["office"]:
        file = office / one["file"]
        WRITERS[file.suffix](file, one)
    pages = read_documents(manuals / described["manual"]).documents
    left_out = tuple(f"{folder}/" for folder in described.get("exclude", ()))
    return [
        replace(document, id=f"{folder}/{document.id}")
        for folder, documents in (("manual", pages), ("office", read_documents(office).documents))
        for document in documents
        if not document.id.startswith(left_out)
    ]


def load_mixed(manuals: Path, name: str, work: Path) -> DataSet:
    """A folder with its questions."""
    questions = load_questions(FOLDERS / f"{name}.jsonl", documents_of(manuals, name, work), name)
    return replace(questions, whole=True)


def print_recall(sets: Sequence[DataSet], work: Path, embedder: str | None) -> None:
    """Recall of needs in five passages, of each folder by kind of question and of all folders together."""
    print(f"| folder | questions | {' | '.join(ROWS.values())} |\n|---|---|{'--:|' * len(ROWS)}")
    together: dict[str, list[list[float]]] = {}
    for dataset in sets:
        config = EvalConfig(ks=(5,), budget=None, returns="passages")
        run = partial(Experiment, dataset, ["sire"], list(ROWS)[:-1], embedder=embedder, config=config)
        rows = run(folder=work / dataset.name).run()
        results = [{result.id: result for result in row.results} for row in rows]
        for kind in KINDS[:-1]:
            asked = [one.id for one in dataset.questions if one.type == kind]
            values = [100 * fmean(each[name].recall_passages(5) for name in asked) for each in results]
            together.setdefault(kind, []).append(values)
            print(f"| {dataset.name} | {kind} | {' | '.join(f'{value:.1f}' for value in values)} |")
    for kind, values in together.items():
        means = [fmean(column) for column in zip(*values, strict=True)]
        print(f"| together | {kind} | {' | '.join(f'{value:.1f}' for value in means)} |")


def print_answers(sets: Sequence[DataSet], work: Path, embedder: str | None) -> None:
    """Needs that quotes meet, and questions that are doubted, by kind."""
    print(f"| folder | {' | '.join(f'quoted, {kind}' for kind in KINDS[:-1])} |", end="")
    print(f" {' | '.join(f'doubted, {kind}' for kind in KINDS)} |\n|---|{'--:|' * (2 * len(KINDS) - 1)}")
    for dataset in sets:
        quoted: dict[str, list[float]] = {kind: [] for kind in KINDS}
        doubted: dict[str, list[bool]] = {kind: [] for kind in KINDS}
        with Index(work / dataset.name / "sire", recipe="sire", embedder=embedder) as index:
            index.build(dataset.documents)
            for question in dataset.questions:
                hits = index.search(question.question, PASSAGES)
                texts = [one.quoted for one in extract_sentences(question.question, hits)]
                doubted[question.type].append(not judge_hits(question.question, hits).is_answered)
                quoted[question.type] += met(question, texts) if question.needs else []
        cells = [*(quoted[kind] for kind in KINDS[:-1]), *doubted.values()]
        print(f"| {dataset.name} | {' | '.join(f'{100 * fmean(each):.0f}' for each in cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manuals", type=Path, metavar="MANUALS")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--answers", action="store_true", help="what `sire ask` quotes and doubts without a model")
    parser.add_argument("--work", type=Path, default=None, help="a folder that keeps the indexes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        sets = [load_mixed(options.manuals, name, work) for name in options.names]
        (print_answers if options.answers else print_recall)(sets, work, options.embedder)


if __name__ == "__main__":
    main()
