"""Data sets of the papers in their official files: QuALITY, ASQA, MultiHop-RAG, IIRC, and pools of whole pages (KGP).

Questions without an answer in the corpus are left out, as the papers leave them out: MultiHop-RAG's null queries and
IIRC's questions of the type `none`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sire_core.clean_text import clean_text
from sire_core.corpus.benchmarks import Question
from sire_core.corpus.chunker import SentenceChunker
from sire_core.corpus.files import DEFAULT_MAX_BYTES, json_lines, parse_json, read_text
from sire_core.corpus.html import html_to_markdown
from sire_core.errors import CorpusError
from sire_core.types import Document, Passage, digest

__all__ = ["paper_set"]

LoadedSet = tuple[tuple[Document, ...], tuple[Question, ...]]

_UNSAID = "no context provided"
_QUALITY_TOKENS = 100


def paper_set(path: Path) -> LoadedSet | None:
    """Documents and questions of a data set in its official form; None for anything else."""
    try:
        return _read(path)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise CorpusError(f"{path} is not what its format promises: {error!r}.") from error


def _read(path: Path) -> LoadedSet | None:
    if path.is_dir():
        if (path / "MultiHopRAG.json").is_file() and (path / "corpus.json").is_file():
            return _multihop_rag(_json(path / "corpus.json"), _json(path / "MultiHopRAG.json"))
        asked = [path / name for name in ("dev.json", "train.json") if (path / name).is_file()]
        if (path / "context_articles.json").is_file() and asked:
            return _iirc(_json(asked[0]), _json(path / "context_articles.json"))
        return None
    if path.suffix in (".jsonl", ".dev", ".train"):
        first = next((line.value for line in json_lines(path, DEFAULT_MAX_BYTES) if not line.error), None)
        if isinstance(first, Mapping) and {"article", "questions"} <= set(first):
            return _quality([line.value for line in json_lines(path, DEFAULT_MAX_BYTES)])
        return None
    return _of_json(_json(path)) if path.suffix == ".json" else None


def _of_json(value: Any) -> LoadedSet | None:
    if isinstance(value, Mapping):
        split = value.get("dev") or value.get("train")
        if isinstance(split, Mapping) and all("ambiguous_question" in item for item in split.values()):
            return _asqa(split)
    if isinstance(value, list) and value and isinstance(value[0], Mapping) and "title_chunks" in value[0]:
        return _pages(value)
    return None


def _json(path: Path) -> Any:
    return parse_json(read_text(path, DEFAULT_MAX_BYTES))


def _quality(lines: Iterable[Mapping[str, Any]]) -> LoadedSet:
    """Articles, and questions with four options each, asked about their article alone (SiReRAG section 4.1).

    Articles of some 5,000 words are cut as RAPTOR cuts them: whole sentences, up to 100 tokens.
    """
    cut = SentenceChunker(_QUALITY_TOKENS, 0)
    documents: dict[str, Document] = {}
    questions = []
    for line in lines:
        name = str(line["article_id"])
        if name not in documents:
            title = clean_text(line["title"])
            passages = tuple(Passage(text, title=title) for text in cut.split(clean_text(line["article"])))
            documents[name] = Document(name, title=title, metadata={"article": name}, chunks=passages)
        for asked in line["questions"]:
            if not asked.get("gold_label"):  # the test set's are secret
                continue
            options = [clean_text(option) for option in asked["options"]]
            questions.append(
                Question(
                    id=str(asked["question_unique_id"]),
                    question=clean_text(asked["question"]),
                    answers=(options[int(asked["gold_label"]) - 1],),
                    supporting=(name,),
                    type="hard" if asked.get("difficult") else "easy",
                    metadata={"options": options, "filter": {"article": name}},
                )
            )
    return tuple(documents.values()), tuple(questions)


def _asqa(split: Mapping[str, Mapping[str, Any]]) -> LoadedSet:
    """Passages that annotators were shown, and ambiguous questions whose long answers cover several readings."""
    documents: dict[str, Document] = {}
    questions = []

    def passage(title: str, text: str) -> str:
        text = clean_text(text).strip()
        if not text or text.casefold().strip(". ") == _UNSAID:
            return ""
        name = f"{title}#{digest(title, text, size=6)}"
        documents.setdefault(name, Document(name, text, clean_text(title)))
        return name

    for name, item in split.items():
        gold = [passage(pair.get("wikipage") or "", pair.get("context") or "") for pair in item["qa_pairs"]]
        for annotation in item["annotations"]:
            gold += [passage(k.get("wikipage") or "", k.get("content") or "") for k in annotation.get("knowledge", ())]
        pairs = [{"question": pair["question"], "answers": pair["short_answers"]} for pair in item["qa_pairs"]]
        questions.append(
            Question(
                id=name,
                question=clean_text(item["ambiguous_question"]),
                answers=tuple(dict.fromkeys(a for pair in pairs for a in pair["answers"])),
                supporting=tuple(dict.fromkeys(found for found in gold if found)),
                type="ambiguous",
                metadata={"pairs": pairs, "long": [annotation["long_answer"] for annotation in item["annotations"]]},
            )
        )
    return tuple(documents.values()), tuple(questions)


def _multihop_rag(corpus: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, Any]]) -> LoadedSet:
    """News articles, and questions over two to four of them."""
    documents = {}
    for item in corpus:
        name = str(item.get("url") or item["title"])
        said = {key: item[key] for key in ("source", "category", "published_at", "author") if item.get(key)}
        documents[name] = Document(name, clean_text(item["body"]), clean_text(item["title"]), said)
    titles = {document.title: name for name, document in documents.items()}
    questions = []
    for number, item in enumerate(asked):
        if item["question_type"] == "null_query":
            continue
        gold = [
            evidence["url"] if evidence.get("url") in documents else titles[clean_text(evidence["title"])]
            for evidence in item["evidence_list"]
        ]
        questions.append(
            Question(
                id=str(number),
                question=clean_text(item["query"]),
                answers=(str(item["answer"]),),
                supporting=tuple(dict.fromkeys(gold)),
                type=str(item["question_type"]).removesuffix("_query"),
                hops=len(set(gold)),
                metadata={"facts": [evidence.get("fact", "") for evidence in item["evidence_list"]]},
            )
        )
    return tuple(documents.values()), tuple(questions)


def _iirc(asked: Sequence[Mapping[str, Any]], articles: Mapping[str, str]) -> LoadedSet:
    """Whole pages of Wikipedia: those that questions are asked about, and those that their evidence stands in."""
    pages = {title.casefold(): page for title, page in articles.items()}
    documents: dict[str, Document] = {}
    questions = []

    def page(title: str, text: str) -> str:
        name = clean_text(title).casefold()
        if name not in documents and text:
            documents[name] = Document(name, clean_text(html_to_markdown(text)[1]), clean_text(title))
        return name if name in documents else ""

    for item in asked:
        main = page(item["title"], pages.get(item["title"].casefold(), item["text"]))
        for link in item.get("links", ()):
            page(link["target"], pages.get(link["target"].casefold(), ""))
        for number, question in enumerate(item["questions"]):
            answers = _iirc_answers(question["answer"])
            if not answers:
                continue
            names = [str(context["passage"]) for context in question.get("context", ())]
            gold = [main if name == "main" else page(name, pages.get(name.casefold(), "")) for name in names]
            questions.append(
                Question(
                    id=str(question.get("qid") or f"{item.get('pid', main)}-{number}"),
                    question=clean_text(question["question"]),
                    answers=answers,
                    supporting=tuple(dict.fromkeys(name for name in gold if name)),
                    type=str(question["answer"]["type"]),
                    hops=len({name for name in gold if name}),
                )
            )
    return tuple(documents.values()), tuple(questions)


def _iirc_answers(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Accepted answers: a span (several ones joined), a value with and without its unit, yes or no."""
    if answer["type"] == "span":
        return (" ".join(clean_text(span["text"]).strip() for span in answer["answer_spans"]),)
    if answer["type"] in ("value", "binary"):
        value = str(answer["answer_value"]).strip()
        unit = str(answer.get("answer_unit") or "").strip()
        return tuple(dict.fromkeys((value, f"{value} {unit}".strip())))
    return ()


def _pages(asked: Sequence[Mapping[str, Any]]) -> LoadedSet:
    """Pools of whole pages, cut into passages (IIER section 4.1, in KGP's form); pages of all questions together."""
    chunks: dict[str, dict[str, None]] = {}
    for item in asked:
        for title, text in item["title_chunks"]:
            if clean_text(text).strip():
                chunks.setdefault(clean_text(title), {})[clean_text(text).strip()] = None
    documents = tuple(
        Document(title, title=title, chunks=tuple(Passage(text, title=title) for text in texts))
        for title, texts in chunks.items()
    )
    questions = []
    for number, item in enumerate(asked):
        gold: dict[str, list[str]] = {}
        for title, *said in item.get("supports", ()):
            gold.setdefault(clean_text(title), []).extend(clean_text(text).strip() for text in said[:1])
        answers = item["answer"] if isinstance(item["answer"], list) else [item["answer"]]
        lost = [title for title in gold if title not in chunks]
        if lost:
            raise CorpusError(f"question {number} needs pages that no pool holds: {json.dumps(lost)}")
        questions.append(
            Question(
                id=str(item.get("idx", item.get("id", number))),
                question=clean_text(item["question"]),
                answers=tuple(str(answer) for answer in answers),
                supporting=tuple(gold),
                type=str(item.get("type") or ""),
                hops=len(gold),
                metadata={
                    "pool": list(dict.fromkeys(clean_text(title) for title, _ in item["title_chunks"])),
                    "evidence": gold,
                },
            )
        )
    return documents, tuple(questions)
