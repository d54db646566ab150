"""Test doubles, without network: a scripted language model, an embedder by hashes, a plain extractor."""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import BaseModel

from sire_core.errors import ConfigurationError, ModelError, RefusalError
from sire_core.models.answer_parsing import strict_json_schema
from sire_core.models.base import AnswerParts, CheckedModel
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import ChunkInContext, Completion, FloatArray, ModelRequest, Prompt
from sire_core.text.words import split_sentences, tokenize
from sire_core.types import Chunk, Entity, ExtractionRecord, Fact

PREVIOUS_ANSWER = "\n\nPREVIOUS ANSWER\n"  # Where a repair prompt shows the answer that could not be used

_SUMMARY_SENTENCES = 3
_NAME = re.compile(r"\b[A-Z][\w'\u2019-]*(?:\s+(?:of|the|de|von|and)?\s*[A-Z][\w'\u2019-]*)*|\b\d{4}\b")
_KEYWORDS = 5


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One prompt that a scripted model got."""

    instructions: str  # Our words (the whole system message on a server)
    data: str = ""  # The data block
    # The JSON schema that was asked for, or None for text. Empty when a server does not know it.
    schema: Mapping[str, Any] | None = None
    number: int = 1  # 1 for the first call of the model
    attempt: int = 0  # How many calls had the same input before, repairs included
    active: int = 1  # Calls under way, this one included
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def input(self) -> str:
        """The data without the unusable answer that a repair prompt adds."""
        return self.data.split(PREVIOUS_ANSWER)[0]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The input of an extraction prompt (`title`, `passage`, `context`, `entities`); empty for others."""
        try:
            value, _ = json.JSONDecoder().raw_decode(self.data)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


Script = Callable[[ScriptedCall], str]  # Answers a call. An exception that it raises is the model's failure


def default_script(call: ScriptedCall) -> str:
    """A sensible answer to anything, always the same one.

    Extraction prompts get a record made by simple rules, other schemas a filled-in example, plain prompts the first
    sentences of the input.
    """
    passage = call.fields.get("passage")
    if call.schema is None:
        if isinstance(passage, str):
            return passage
        return " ".join(split_sentences(call.input)[:_SUMMARY_SENTENCES]) or "Nothing."
    if isinstance(passage, str):
        answer = rule_answer(str(call.fields.get("title", "")), passage)
        if "relations" in call.schema.get("properties", {}):
            answer = {"relations": [_relation(triple) for fact in answer["facts"] for triple in fact["triples"]]}
        return json.dumps(answer, ensure_ascii=False)
    sentences = split_sentences(call.input) or ["Nothing."]
    return json.dumps(_filled(call.schema, call.schema, sentences[0][:200]), ensure_ascii=False)


def _relation(triple: Mapping[str, Any]) -> dict[str, Any]:
    """A triple as SMART's second step has it."""
    return {"source": triple["h"], "target": triple["t"], "description": triple["p"], "strength": triple["strength"]}


def rule_answer(title: str, passage: str) -> dict[str, Any]:
    """An answer to the joint extraction prompt: sentences are facts, capitalised words are entities."""
    names: dict[str, str] = {}
    facts = []
    for sentence in split_sentences(passage):
        spelled = list(dict.fromkeys(match.group(0) for match in _NAME.finditer(sentence)))
        for name in ([title] if title else []) + spelled:
            names.setdefault(name, f"n{len(names) + 1}")
        ends = ([title] if title and title not in spelled else []) + spelled
        triples = [{"h": ends[0], "p": "is mentioned with", "t": tail, "strength": 5} for tail in ends[1:]]
        facts.append({"text": sentence, "entities": [names[name] for name in ends], "triples": triples})
    return {
        "entities": [{"id": local, "name": name, "type": "Thing"} for name, local in names.items()],
        "facts": facts,
        "keywords": [name for name in names if name in passage and name != title][:_KEYWORDS],
        "topic": title,
        "abstractiveness": "low",
    }


def _filled(node: Mapping[str, Any], root: Mapping[str, Any], text: str) -> Any:
    """The simplest value of a JSON schema, lists with one item, strings filled with `text`."""
    if "$ref" in node:
        return _filled(root["$defs"][str(node["$ref"]).rsplit("/", 1)[-1]], root, text)
    for choice in ("anyOf", "oneOf", "allOf"):
        if node.get(choice):
            return _filled(node[choice][0], root, text)
    if "enum" in node or "const" in node:
        options: Sequence[Any] = node.get("enum") or [node.get("const")]
        return options[0]
    kind = node.get("type")
    if kind == "object" or "properties" in node:
        return {name: _filled(child, root, text) for name, child in node.get("properties", {}).items()}
    if kind == "array":
        return [_filled(node.get("items", {"type": "string"}), root, text)]
    return {"integer": 1, "number": 1.0, "boolean": False, "null": None}.get(str(kind), text)


_STREAMED_WORD = re.compile(r"\S+\s*|\s+")


class ScriptedModel(CheckedModel):
    """A `StreamingModel` that plays a script through the real parse ladder and logs every prompt.

    Args:
        script: A function from a call to a text, or the texts and errors themselves in the order of the calls. None
            gives sensible answers to everything, see `default_script`.
        name: Part of the fingerprint.
        latency: Seconds that an answer takes, or its first word when it is streamed.
        gap: Seconds between two words.
    """

    def __init__(
        self,
        script: Script | Sequence[str | Exception] | None = None,
        *,
        name: str = "default",
        latency: float = 0.0,
        gap: float = 0.0,
    ) -> None:
        self._script = script or default_script
        self._latency = latency
        self._gap = gap
        self._seen: Counter[str] = Counter()
        self._active = 0
        self.name = name
        self.concurrency = 8
        self.log: list[ScriptedCall] = []
        """Every call, in order; repairs are calls of their own."""

    @property
    def fingerprint(self) -> str:
        """`scripted:` and the name."""
        return f"scripted:{self.name}"

    async def send(self, request: ModelRequest) -> Completion:
        """One call of the script."""
        self._active += 1
        prompt = request.prompt
        form: type[BaseModel] | None = request.schema
        try:
            call = self._note(prompt, None if form is None else strict_json_schema(form))
            await asyncio.sleep(self._latency)
            text = self._play(call)
        except RefusalError as refusal:
            return Completion(str(refusal), finish="refusal")
        finally:
            self._active -= 1
        size = estimate_tokens(prompt.instructions) + estimate_tokens(prompt.data)
        return Completion(text, None, size, estimate_tokens(text))

    async def pieces(self, request: ModelRequest) -> AnswerParts:
        """Stream the answer word by word."""
        answer = await self.send(request)
        for word in _STREAMED_WORD.findall(answer.text if answer.finish == "stop" else ""):
            yield word
            await asyncio.sleep(self._gap)
        yield answer

    def _note(self, prompt: Prompt, schema: dict[str, Any] | None) -> ScriptedCall:
        call = ScriptedCall(prompt.instructions, prompt.data, schema, number=len(self.log) + 1, active=self._active)
        attempt = self._seen[call.input]
        self._seen[call.input] += 1
        call = ScriptedCall(call.instructions, call.data, schema, call.number, attempt, self._active)
        self.log.append(call)
        return call

    def _play(self, call: ScriptedCall) -> str:
        if callable(self._script):
            return self._script(call)
        if call.number > len(self._script):
            raise ModelError(f"the script has {len(self._script)} answers, and this is call {call.number}")
        answer = self._script[call.number - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


class HashEmbedder:
    """Hashed word counts: texts that share words point the same way, and every run gives the same bits.

    Needs no fitting, no download and nothing but numpy. For tests; `LexicalEmbedder` is the one to search with.
    """

    def __init__(self, dimension: int = 64) -> None:
        if dimension < 1:
            raise ConfigurationError(f"dimension must be at least 1, not {dimension}")
        self._dimension = dimension

    @property
    def fingerprint(self) -> str:
        """`hash/1:<dimension>`."""
        return f"hash/1:{self._dimension}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:  # noqa: ARG002 - the protocol's
        """Embed texts; float32 `[len(texts), dimension]`, unit rows, zero for a text without words."""
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word, count in Counter(tokenize(text)).items():
                code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
                sign = 1.0 if code & 0x80000000 else -1.0
                vector[code % self._dimension] += sign * math.sqrt(count)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors


Facts = Sequence[tuple[str, Sequence[str]]]


class PlainExtractor:
    """Makes records without learning anything from the corpus, so that the order of arrival changes nothing."""

    links_titles = False  # Facts have the entities that their own passage gives them, no others

    def __init__(self, facts: Mapping[str, Facts] | None = None, *, batch: int = 4) -> None:
        self._facts = facts
        self._batch = batch
        self.asked: list[str] = []
        """Hashes of the passages that were extracted, in order."""

    @property
    def fingerprint(self) -> str:
        """`plain/1`, or `plain/1:written` with facts that were written down."""
        return "plain/1" if self._facts is None else "plain/1:written"

    async def extract(self, chunks: Sequence[ChunkInContext]) -> AsyncIterator[Sequence[ExtractionRecord]]:
        """Yield records in batches; see `sire_core.protocols.Extractor`."""
        for start in range(0, len(chunks), self._batch):
            part = [item.chunk for item in chunks[start : start + self._batch]]
            self.asked += [chunk.hash for chunk in part]
            yield [self._record(chunk) for chunk in part]

    def _record(self, chunk: Chunk) -> ExtractionRecord:
        if self._facts is None:
            answer = rule_answer("", chunk.text)
            names = {entity["id"]: entity["name"] for entity in answer["entities"]}
            facts: Facts = [(fact["text"], [names[e] for e in fact["entities"]]) for fact in answer["facts"]]
        else:
            facts = self._facts.get(chunk.text, ())
        ids = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(n for _, names in facts for n in names), 1)}
        return ExtractionRecord(
            hash=chunk.hash,
            model="plain",
            prompt="1",
            status="ok" if facts else "empty",
            entities=tuple(Entity(local, name) for name, local in ids.items()),
            facts=tuple(
                Fact(f"f{i}", text, tuple(ids[name] for name in names)) for i, (text, names) in enumerate(facts, 1)
            ),
        )
