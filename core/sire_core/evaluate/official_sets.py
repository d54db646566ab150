"""Data sets of papers in their official files: a table of formats, and how each is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sire_core.documents.chunker import SentenceChunker
from sire_core.documents.validation import clean_metadata
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.qrels import Judgements, read_qrels
from sire_core.files.html import html_to_markdown
from sire_core.files.source_files import DEFAULT_MAX_BYTES, json_lines, parse_json, read_text
from sire_core.questions import Question
from sire_core.text.words import clean_text
from sire_core.types import Document, Passage, digest

LoadedSet = tuple[tuple[Document, ...], tuple[Question, ...]]
_Line = Mapping[str, Any]
_QUALITY_TOKENS = 100
_NO_CONTEXT = "no context provided"
_IR_DATASETS = "ir_datasets:"
_SPLITS = ("test", "dev", "train")


def official_set(path: Path) -> LoadedSet | None:
    """Documents and questions of a data set in its official form; None for anything else."""
    try:
        if path.is_dir():
            return next((read(path) for names, read in _FOLDERS if all((path / n).is_file() for n in names)), None)
        if path.suffix == ".json":
            value = parse_json(read_text(path, DEFAULT_MAX_BYTES))
            return next((read(value) for is_format, read in _JSON_FILES if is_format(value)), None)
        if path.suffix in (".jsonl", ".dev", ".train"):
            first = next((line.value for line in json_lines(path, DEFAULT_MAX_BYTES) if not line.error), None)
            if isinstance(first, Mapping) and {"article", "questions"} <= set(first):
                return _quality(line.value for line in json_lines(path, DEFAULT_MAX_BYTES))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise CorpusError(f"{path} is not what its format promises: {error!r}.") from error
    return None


def _question(identifier: object, text: str, answers: Iterable[object], gold: Iterable[str], **more: Any) -> Question:
    names = tuple(dict.fromkeys(name for name in gold if name))
    return Question(str(identifier), clean_text(text), tuple(dict.fromkeys(map(str, answers))), names, **more)


def _json(path: Path) -> Any:
    return parse_json(read_text(path, DEFAULT_MAX_BYTES))


def _lines(path: Path) -> Iterator[_Line]:
    for line in json_lines(path, DEFAULT_MAX_BYTES):
        if line.error:
            raise CorpusError(f"{path}:{line.number}: {line.error}")
        yield line.value


def _beir(path: Path) -> LoadedSet:
    """Passages, and questions with graded judgements; of several splits test, dev or train."""
    files = {file.stem: file for file in sorted((path / "qrels").glob("*.tsv"))}
    split = next((name for name in _SPLITS if name in files), next(iter(files), None))
    if split is None:
        raise CorpusError(f"{path} has queries.jsonl and no qrels/test.tsv: its lines are query-id, corpus-id, score.")
    judged = read_qrels(files[split])
    documents = (
        Document(
            str(line["_id"]),
            clean_text(line.get("text") or ""),
            clean_text(line.get("title") or ""),
            clean_metadata(line.get("metadata") or {}, "the document"),
        )
        for line in _lines(path / "corpus.jsonl")
    )
    return _judged_set(documents, ((line["_id"], line["text"]) for line in _lines(path / "queries.jsonl")), judged)


def _judged_set(documents: Iterable[Document], queries: Iterable[tuple[str, str]], judged: Judgements) -> LoadedSet:
    questions = []
    for name, text in queries:
        if grades := judged.get(str(name)):
            gold = (document for document, grade in grades.items() if grade > 0)
            questions.append(_question(name, text, (), gold, grades=tuple(grades.items())))
    return tuple(d for d in documents if d.text.strip() or d.title.strip()), tuple(questions)


def ir_dataset(source: Any) -> tuple[str, LoadedSet | None]:
    """Name, passages and graded queries of `ir_datasets:NAME` or a loaded set; no name for anything else.

    `ConfigurationError`: ir_datasets is not installed or has no such set; `CorpusError`: documents, queries or
    judgements are missing.
    """
    if not hasattr(source, "docs_iter"):
        name = str(source).removeprefix(_IR_DATASETS)
        if name == str(source):
            return "", None
        try:
            import ir_datasets

            source = ir_datasets.load(name)
        except ImportError as error:
            raise ConfigurationError(f"{source} needs: pip install ir_datasets") from error
        except KeyError as error:
            raise ConfigurationError(f"ir_datasets has no {name!r}; ir-datasets.com lists all.") from error
    name = source.dataset_id() if hasattr(source, "dataset_id") else "ir_datasets"
    if missing := [part for part in ("docs", "queries", "qrels") if not getattr(source, f"has_{part}")()]:
        raise CorpusError(f"{name} has no {', '.join(missing)}; take a part with all three, such as beir/scifact/test.")
    judged: dict[str, dict[str, int]] = {}
    for judgement in source.qrels_iter():
        judged.setdefault(judgement.query_id, {})[judgement.doc_id] = int(judgement.relevance)
    documents = (
        Document(
            document.doc_id,
            clean_text(getattr(document, "text", None) or document.default_text()),
            clean_text(getattr(document, "title", None) or ""),
        )
        for document in source.docs_iter()
    )
    return name, _judged_set(documents, ((q.query_id, q.default_text()) for q in source.queries_iter()), judged)


def _multihop_rag(path: Path) -> LoadedSet:
    """News articles, and questions over two to four of them."""
    documents = {}
    for item in _json(path / "corpus.json"):
        name = str(item.get("url") or item["title"])
        metadata = {key: item[key] for key in ("source", "category", "published_at", "author") if item.get(key)}
        documents[name] = Document(name, clean_text(item["body"]), clean_text(item["title"]), metadata)
    titles = {document.title: name for name, document in documents.items()}
    questions = []
    for number, item in enumerate(_json(path / "MultiHopRAG.json")):
        evidence = item["evidence_list"]
        gold = [one["url"] if one.get("url") in documents else titles[clean_text(one["title"])] for one in evidence]
        if item["question_type"] != "null_query":
            kind = str(item["question_type"]).removesuffix("_query")
            facts = {"facts": [one.get("fact", "") for one in evidence]}
            more = {"type": kind, "hops": len(set(gold)), "metadata": facts}
            questions.append(_question(number, item["query"], (item["answer"],), gold, **more))
    return tuple(documents.values()), tuple(questions)


def _iirc(questions_file: str, path: Path) -> LoadedSet:
    """Whole pages of Wikipedia: those that questions are asked about, and those that their evidence stands in."""
    pages = {title.casefold(): text for title, text in _json(path / "context_articles.json").items()}
    documents: dict[str, Document] = {}
    questions = []

    def page(title: str, text: str = "") -> str:
        """Add a page, unless nothing is known of it; return its id."""
        name = clean_text(title).casefold()
        text = pages.get(title.casefold(), text)
        if name not in documents and text:
            documents[name] = Document(name, clean_text(html_to_markdown(text)[1]), clean_text(title))
        return name if name in documents else ""

    for item in _json(path / questions_file):
        main = page(item["title"], item["text"])
        for link in item.get("links", ()):
            page(link["target"])
        for number, entry in enumerate(item["questions"]):
            if answers := _iirc_answers(entry["answer"]):
                names = (str(context["passage"]) for context in entry.get("context", ()))
                gold = [main if name == "main" else page(name) for name in names]
                identifier = entry.get("qid") or f"{item.get('pid', main)}-{number}"
                more = {"type": str(entry["answer"]["type"]), "hops": len(set(filter(None, gold)))}
                questions.append(_question(identifier, entry["question"], answers, gold, **more))
    return tuple(documents.values()), tuple(questions)


def _iirc_answers(answer: _Line) -> tuple[str, ...]:
    """Accepted answers: a span (several ones joined), a value with and without its unit, yes or no."""
    if answer["type"] == "span":
        return (" ".join(clean_text(span["text"]).strip() for span in answer["answer_spans"]),)
    if answer["type"] in ("value", "binary"):
        value = str(answer["answer_value"]).strip()
        return value, f"{value} {str(answer.get('answer_unit') or '').strip()}".strip()
    return ()


def _quality(lines: Iterable[_Line]) -> LoadedSet:
    """Articles, and questions with four options each, asked about their article alone (SiReRAG section 4.1)."""
    cut = SentenceChunker(_QUALITY_TOKENS, 0)
    documents: dict[str, Document] = {}
    questions = []
    for line in lines:
        name, title = str(line["article_id"]), clean_text(line["title"])
        if name not in documents:
            passages = tuple(Passage(text, title=title) for text in cut.split(clean_text(line["article"])))
            documents[name] = Document(name, title=title, metadata={"article": name}, chunks=passages)
        for entry in line["questions"]:
            if entry.get("gold_label"):  # the test set's are secret
                options = [clean_text(option) for option in entry["options"]]
                answers = (options[int(entry["gold_label"]) - 1],)
                metadata = {"options": options, "filter": {"article": name}}
                more = {"type": "hard" if entry.get("difficult") else "easy", "metadata": metadata}
                questions.append(_question(entry["question_unique_id"], entry["question"], answers, (name,), **more))
    return tuple(documents.values()), tuple(questions)


def _asqa_split(value: Any) -> _Line | None:
    split = (value.get("dev") or value.get("train")) if isinstance(value, Mapping) else None
    is_split = isinstance(split, Mapping) and all("ambiguous_question" in item for item in split.values())
    return split if is_split else None


def _asqa(value: Any) -> LoadedSet:
    """Passages that annotators were shown, and ambiguous questions whose long answers cover several readings."""
    documents: dict[str, Document] = {}
    questions = []

    def passage(title: str | None, text: str | None) -> str:
        """Add a passage, unless it has no text; return its id."""
        title, text = title or "", clean_text(text or "").strip()
        if not text or text.casefold().strip(". ") == _NO_CONTEXT:
            return ""
        name = f"{title}#{digest(title, text, size=6)}"
        documents.setdefault(name, Document(name, text, clean_text(title)))
        return name

    for name, item in (_asqa_split(value) or {}).items():
        pairs, annotations = item["qa_pairs"], item["annotations"]
        gold = [passage(pair.get("wikipage"), pair.get("context")) for pair in pairs]
        knowledge = (one for annotation in annotations for one in annotation.get("knowledge", ()))
        gold += [passage(one.get("wikipage"), one.get("content")) for one in knowledge]
        readings = [{"question": pair["question"], "answers": pair["short_answers"]} for pair in pairs]
        metadata = {"pairs": readings, "long": [annotation["long_answer"] for annotation in annotations]}
        answers = (answer for pair in pairs for answer in pair["short_answers"])
        more = {"type": "ambiguous", "metadata": metadata}
        questions.append(_question(name, item["ambiguous_question"], answers, gold, **more))
    return tuple(documents.values()), tuple(questions)


def _is_pages(value: Any) -> bool:
    return bool(value) and isinstance(value, list) and isinstance(value[0], Mapping) and "title_chunks" in value[0]


def _pages(entries: Sequence[_Line]) -> LoadedSet:
    """Pools of whole pages, cut into passages (IIER section 4.1, in KGP's form); pages of all questions together."""
    chunks: dict[str, dict[str, None]] = {}
    for item in entries:
        for title, text in item["title_chunks"]:
            if clean_text(text).strip():
                chunks.setdefault(clean_text(title), {})[clean_text(text).strip()] = None
    documents = (
        Document(title, title=title, chunks=tuple(Passage(text, title=title) for text in texts))
        for title, texts in chunks.items()
    )
    questions = []
    for number, item in enumerate(entries):
        gold: dict[str, list[str]] = {}
        for title, *sentences in item.get("supports", ()):
            gold.setdefault(clean_text(title), []).extend(clean_text(text).strip() for text in sentences[:1])
        if missing := [title for title in gold if title not in chunks]:
            raise CorpusError(f"question {number} needs pages that no pool holds: {json.dumps(missing)}")
        answers = item["answer"] if isinstance(item["answer"], list) else [item["answer"]]
        pool = list(dict.fromkeys(clean_text(title) for title, _ in item["title_chunks"]))
        more = {"type": str(item.get("type") or ""), "hops": len(gold), "metadata": {"pool": pool, "evidence": gold}}
        identifier = item.get("idx", item.get("id", number))
        questions.append(_question(identifier, item["question"], answers, gold, **more))
    return tuple(documents), tuple(questions)


_MARKED = ("contexts", "paragraphs", "positive_ctxs", "negative_ctxs", "hard_negative_ctxs")


def _is_marked(value: Any) -> bool:
    first = value[0] if value and isinstance(value, list) and isinstance(value[0], Mapping) else {}
    passages: Sequence[Any] = next((first[key] for key in _MARKED if first.get(key)), ())
    return isinstance(first.get("question"), str) and bool(passages) and "text" in passages[0]


def _marked(entries: Sequence[_Line]) -> LoadedSet:
    """Passages that each question marks as supporting or not, pooled: Natural Questions, PopQA and TriviaQA.

    In the form of DPR (`positive_ctxs`, `negative_ctxs`, `hard_negative_ctxs`) or of HippoRAG (`contexts` or
    `paragraphs` with `is_supporting`).
    """
    documents: dict[str, Document] = {}
    questions = []
    for number, item in enumerate(entries):
        gold = []
        for key in _MARKED:
            for passage in item.get(key) or ():
                title, text = clean_text(passage.get("title") or ""), clean_text(passage["text"])
                name = f"{title}#{digest(title, text, size=6)}"
                documents.setdefault(name, Document(name, text, title))
                if passage.get("is_supporting", key == "positive_ctxs"):
                    gold.append(name)
        answers = item.get("answers") or item.get("reference") or item.get("possible_answers") or item.get("answer")
        answers = parse_json(answers) if isinstance(answers, str) and answers.startswith("[") else answers
        named = [answers] if isinstance(answers, str) else list(answers or ())
        questions.append(_question(item.get("id", number), item["question"], named, gold, hops=len(set(gold))))
    return tuple(documents.values()), tuple(questions)


_FOLDERS: tuple[tuple[tuple[str, ...], Callable[[Path], LoadedSet]], ...] = (
    (("MultiHopRAG.json", "corpus.json"), _multihop_rag),
    (("queries.jsonl", "corpus.jsonl"), _beir),
    (("context_articles.json", "dev.json"), partial(_iirc, "dev.json")),
    (("context_articles.json", "train.json"), partial(_iirc, "train.json")),
)
"""Formats of folders, by the files that they have."""
_JSON_FILES: tuple[tuple[Callable[[Any], Any], Callable[[Any], LoadedSet]], ...] = (
    (_asqa_split, _asqa),
    (_is_pages, _pages),
    (_is_marked, _marked),
)
"""Formats of JSON files, by what is true of their contents; see also `_quality`, a file of lines."""
