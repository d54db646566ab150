"""`DataSet`: a corpus and its questions, read from a folder or from an official benchmark file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from sire_core.arguments import check_choice, similar_names
from sire_core.documents.chunker import chunk_document
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.official_sets import ir_dataset, official_set
from sire_core.evaluate.question_files import read_questions
from sire_core.files.html import html_to_markdown
from sire_core.files.readers import read_documents
from sire_core.files.source_files import DEFAULT_MAX_BYTES, find_files, read_text
from sire_core.questions import Question
from sire_core.text.pluralize import count
from sire_core.types import Document, Failure, Passage, digest

CHUNKINGS = ("files", "langchain", "llama-index", "none")
"""Ways to cut documents: as `sire index` does, by a framework's splitters, or not at all."""

_HEADERS = [("#" * level, f"Header {level}") for level in (1, 2, 3)]
_MARKDOWN = (".md", ".markdown", ".mdx")
_HTML = (".html", ".htm")

PARTS = ("even", "odd", "test", "develop", "all")
"""Parts of the questions. `test` is about a third, chosen by a hash of their ids, to be read once a release; the others
are `even` and `odd` by position, to learn from and to choose by; `develop` is both of these."""

_MAX_LISTED = 3
_MIN_WHOLE_LETTERS = (
    4_000  # Median length in characters from which the texts of a corpus.jsonl are whole documents, not passages
)
_QUESTIONS = (
    "{'id', 'question', 'answers', 'supporting'}; supporting is ids of documents or passages; 'needs' in its place is "
    "[[{'doc', 'quote'}, ...alternatives], ...]"
)
_WANTED = (
    "A data set is a folder with corpus.jsonl (a line: {'id', 'title', 'text'}) or a folder docs/ of files, and with "
    f"questions*.jsonl (a line: {_QUESTIONS}), or an official file of HotpotQA, "
    "2WikiMultiHopQA, MuSiQue, QuALITY or ASQA, or a folder of MultiHop-RAG, IIRC or BEIR (corpus.jsonl, "
    "queries.jsonl, qrels/test.tsv)."
)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Documents to index and questions to ask.

    Attributes:
        name: Name of the folder or file.
        documents: The corpus.
        questions: Recall is a mean over those with gold passages, answer metrics over those with answers.
        whole: Whether the documents are whole files, which the index cuts into passages.
        unread: Files of the corpus that could not be read, and why.
    """

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    whole: bool = False
    unread: tuple[Failure, ...] = ()

    @property
    def measurable(self) -> tuple[Question, ...]:
        """Questions with gold passages or answers."""
        return tuple(question for question in self.questions if question.has_gold or question.answers)

    @property
    def passages(self) -> int:
        """Number of passages; a document that is not cut yet is one."""
        return sum(len(document.chunks) or 1 for document in self.documents)

    @property
    def texts(self) -> dict[str, str]:
        """Text of every document by id."""
        return {document.id: document_text(document) for document in self.documents}

    @property
    def copies(self) -> dict[str, frozenset[str]]:
        """By id of a document the ids of those that have its text, its own too; of those that have copies."""
        same: dict[str, set[str]] = {}
        for name, text in self.texts.items():
            same.setdefault(" ".join(text.split()), set()).add(name)
        return {name: frozenset(names) for names in same.values() if len(names) > 1 for name in names}

    def part(self, name: str) -> DataSet:
        """Keep the questions of a part, one of `PARTS`. The corpus stays whole."""
        check_choice("A part of the questions", name, PARTS)
        if name == "all":
            return self
        parts = {"even", "odd"} if name == "develop" else {name}
        questions = (q for number, q in enumerate(self.questions) if _part_of(number, q) in parts)
        return replace(self, name=f"{self.name}, {name} questions", questions=tuple(questions))

    def untitled(self) -> DataSet:
        """Leave out the documents' titles; a title that is also written in a text stays there."""
        return self._retitled("untitled", lambda _, text: text)

    def with_titles_in_text(self) -> DataSet:
        """Make every title the first line of its text."""
        return self._retitled("titles in text", lambda title, text: f"{title}\n{text}" if title.strip() else text)

    def _retitled(self, name: str, written: Callable[[str, str], str]) -> DataSet:
        """Documents without titles, their texts written again from title and text; also those cut into passages."""

        def bare(document: Document) -> Document:
            chunks = tuple(
                replace(passage, title="", text=written(passage.title or document.title, passage.text))
                for passage in document.passages
            )
            return replace(document, title="", text=written(document.title, document.text), chunks=chunks)

        return replace(self, name=f"{self.name}, {name}", documents=tuple(map(bare, self.documents)))

    def sample(self, limit: int | None, seed: int = 0) -> DataSet:
        """Keep a random sample of the measurable questions, in their order. The corpus stays whole."""
        questions = self.measurable
        if limit is None or limit >= len(questions):
            return self
        import numpy as np

        chosen = np.sort(np.random.default_rng(seed).permutation(len(questions))[:limit])
        return replace(self, questions=tuple(questions[i] for i in chosen))

    def around(self, documents: int, seed: int = 0) -> DataSet:
        """Keep the documents that the questions need and random others, so many in all. Recall is easier then."""
        import numpy as np

        names = {name for question in self.questions for name in question.supporting}
        names |= {need[0] for question in self.questions for quotes in question.needs for need in quotes}
        needed = [bool(names & {one.id, *(passage.id for passage in one.passages)}) for one in self.documents]
        others = np.random.default_rng(seed).permutation(np.flatnonzero(np.logical_not(needed)))
        kept = {*np.flatnonzero(needed).tolist(), *others[: max(0, documents - sum(needed))].tolist()}
        chosen = tuple(document for number, document in enumerate(self.documents) if number in kept)
        return replace(self, name=f"{self.name}, {len(chosen):,} documents", documents=chosen)


def _part_of(number: int, question: Question) -> str:
    """The part of the question at a position: whether it is of the test part does not depend on the others."""
    return "test" if int(digest(question.id), 16) % 3 == 0 else ("even", "odd")[number % 2]


def document_text(document: Document) -> str:
    """Text of a document, of one that is cut into passages theirs."""
    return " ".join(passage.text for passage in document.passages) or document.text


def load_dataset(path: Any, chunks: str | None = None) -> DataSet:
    """Read a data set.

    Args:
        path: A folder with `corpus.jsonl` (or a folder `docs` or `corpus` of files as users have them, which are read
            like `sire index` reads them; a document's id is then its path below it) and one or more `questions*.jsonl`,
            whose questions are pooled in the order of the files' names; or an official HotpotQA, 2WikiMultiHopQA or
            MuSiQue file, whose passages are pooled; or what `official_set` reads; or `ir_datasets:NAME`, or a data set
            that `ir_datasets.load` returned.
        chunks: How documents are cut into passages: `files` as `sire index` does, `langchain` or `llama-index` by the
            splitters of these frameworks, `none` not at all. None takes `files` for files and for a corpus.jsonl of
            whole documents (4,000 characters and more in the median), else `none`.

    Raises:
        CorpusError: Something is missing, cannot be read or does not fit together. No line is skipped: a benchmark with
            holes gives wrong figures. Files that cannot be read are in `DataSet.unread`.
        ConfigurationError: There is no such way to cut, or its package is not installed.
    """
    if chunks is not None:
        check_choice("--chunks", chunks, tuple(CHUNKINGS))
    name, official = ir_dataset(path)
    path = Path(name or path)
    if not name:
        if not path.exists():
            raise CorpusError(f"Not found: {path}. {_WANTED}")
        name, official = path.resolve().name if path.is_dir() else path.stem, official_set(path)
    folder = _folder_of(path) if official is None else None
    dataset = _own_format(path, folder) if official is None else DataSet("", *official)
    if chunks in ("langchain", "llama-index"):
        documents, unread = split_corpus(folder or dataset.documents, chunks)
        dataset = replace(dataset, documents=documents, unread=unread, whole=False)
    elif chunks is not None:
        dataset = replace(dataset, whole=chunks == "files")
    _check_gold(path, dataset.documents, dataset.questions)
    return replace(dataset, name=name)


def _folder_of(path: Path) -> Path | None:
    """The folder of files that a data set has in place of a corpus.jsonl."""
    if (path / "corpus.jsonl").is_file():
        return None
    return next((path / name for name in ("docs", "corpus") if (path / name).is_dir()), None)


def _own_format(path: Path, folder: Path | None) -> DataSet:
    corpus, files = path, [path]
    if path.is_dir():
        corpus, files = folder or path / "corpus.jsonl", sorted(path.glob("questions*.jsonl"))
    missing = [] if corpus.exists() else ["corpus.jsonl"]
    missing += [] if files else ["questions*.jsonl"]
    if missing:
        raise CorpusError(f"{path} has no {' and no '.join(missing)}. {_WANTED}")
    read = read_documents(corpus)
    if read.failures and folder is None:
        first = "; ".join(f"{failure.where}: {failure.reason}" for failure in read.failures[:_MAX_LISTED])
        raise CorpusError(f"{count(len(read.failures), 'passage')} of {path} cannot be used: {first}. {_WANTED}")
    whole = folder is not None or median(len(document.text) for document in read.documents) >= _MIN_WHOLE_LETTERS
    return DataSet(path.name, read.documents, _pool(files), whole=whole, unread=read.failures)


def load_questions(path: str | Path, documents: Sequence[Document], name: str) -> DataSet:
    """Questions of a file over documents that are indexed already.

    Args:
        path: A line: {'id', 'question', 'answers', 'supporting' or 'needs'}.
        documents: The corpus.
        name: Of the data set.

    Raises:
        CorpusError: The file cannot be read, or names documents that are not there.
    """
    questions = questions_of(path)
    _check_gold(Path(path), documents, questions)
    return DataSet(name, tuple(documents), questions)


def questions_of(path: str | Path) -> tuple[Question, ...]:
    """Questions of a file; see `load_questions`, which also looks whether the corpus has what they need."""
    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"Not found: {path}. A questions file has lines {_QUESTIONS}.")
    return _pool([path])


def check_measurable(questions: Iterable[Question], name: str, *, by_answers: bool = True) -> None:
    """Refuse questions of which none has gold, nor with `by_answers` an answer: they measure nothing."""
    if not any(question.has_gold or (by_answers and question.answers) for question in questions):
        lacking = "'supporting', 'needs' or 'answers'" if by_answers else "'supporting' or 'needs'"
        raise ConfigurationError(
            f"No question of {name} has {lacking}, without which nothing can be measured. A question is {_QUESTIONS}."
        )


def _pool(files: Iterable[Path]) -> tuple[Question, ...]:
    pooled: dict[str, Question] = {}
    for file in files:
        for question in read_questions(file):
            if pooled.setdefault(question.id, question) != question:
                raise CorpusError(f"{file}: another file has a different question with the id {question.id!r}.")
    return tuple(pooled.values())


def _check_gold(path: Path, documents: Sequence[Document], questions: Sequence[Question]) -> None:
    """Refuse gold ids of nothing. A need whose documents are not there counts as missed; see `EvalRow.unmet`."""
    wanted = {name for question in questions for name in question.supporting}
    lost = wanted - {document.id for document in documents}
    lost -= {passage.id for document in documents for passage in document.passages} if lost else set()
    lost -= {str(document.metadata.get("source")) for document in documents} if lost else set()
    if lost:  # ids that a search shows
        lost -= {chunk.id for document in documents if document.chunks for chunk in chunk_document(document)}
    if lost:
        without = [question for question in questions if not lost.isdisjoint(question.supporting)]
        near = similar_names(min(lost), (document.id for document in documents))
        raise CorpusError(
            f"{len(without)} of {len(questions)} questions of {path} name gold passages that are not in the corpus "
            f"({', '.join(map(repr, sorted(lost)[:_MAX_LISTED]))}); "
            "'supporting' must hold ids of its documents or passages"
            f"{', such as ' if near else ''}{', '.join(map(repr, near))}."
        )


class _Text(NamedTuple):
    name: str
    text: str
    metadata: Mapping[str, Any]
    is_markdown: bool


def split_corpus(corpus: Path | Sequence[Document], by: str) -> tuple[tuple[Document, ...], tuple[Failure, ...]]:
    """Cut a corpus with the splitters of a framework."""
    failures: list[Failure] = []
    if isinstance(corpus, Path):
        texts = list(_files(corpus, failures))
    else:
        texts = [
            _Text(d.id, d.text or "\n\n".join(p.text for p in d.passages), d.metadata, is_markdown=True) for d in corpus
        ]
    return tuple(_langchain(texts) if by == "langchain" else _llama_index(texts)), tuple(failures)


def _files(folder: Path, failures: list[Failure]) -> Iterator[_Text]:
    files, left, _ = find_files([folder])
    failures += [Failure(file.name, reason) for file, reason in left]
    for file in files:
        suffix = file.path.suffix.lower()
        try:
            text = read_text(file.path, DEFAULT_MAX_BYTES, declares=suffix in _HTML)
        except CorpusError as error:
            failures.append(Failure(file.name, str(error)))
            continue
        text = html_to_markdown(text)[1] if suffix in _HTML else text
        yield _Text(file.name, text, {"source": file.name}, suffix in _MARKDOWN)


def _langchain(texts: Sequence[_Text]) -> Iterator[Document]:
    try:
        from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
    except ImportError as error:
        raise ConfigurationError("--chunks langchain needs: pip install langchain-text-splitters") from error
    headings = MarkdownHeaderTextSplitter(_HEADERS, strip_headers=False)
    characters = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=100)
    for name, text, metadata, is_markdown in texts:
        sections = headings.split_text(text) if is_markdown else characters.create_documents([text])
        for number, piece in enumerate(characters.split_documents(sections)):
            passage_id = f"{name}#{number}"
            about = {**metadata, **piece.metadata, "source": name}
            yield Document(passage_id, metadata=about, chunks=(Passage(piece.page_content, id=passage_id),))


def _llama_index(texts: Sequence[_Text]) -> Iterator[Document]:
    try:
        from llama_index.core.node_parser import SentenceSplitter
    except ImportError as error:
        raise ConfigurationError("--chunks llama-index needs: pip install llama-index-core") from error
    splitter = SentenceSplitter(chunk_size=512, chunk_overlap=40)
    for name, text, metadata, _ in texts:
        pieces = tuple(Passage(piece, id=f"{name}#{n}") for n, piece in enumerate(splitter.split_text(text)))
        if pieces:
            yield Document(name, metadata=metadata, chunks=pieces)
