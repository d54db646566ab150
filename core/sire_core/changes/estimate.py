"""Estimates of the model calls of a build: exact for extraction, a median and a range for summaries."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from sire_core.documents.change_plan import plan_build
from sire_core.documents.stored_corpus import StoredCorpus
from sire_core.errors import ModelError
from sire_core.extraction.answer_schemas import ExtractionAnswer
from sire_core.extraction.merged import model_extractor
from sire_core.extraction.rules import RulesExtractor
from sire_core.extraction.stage import missing_chunks
from sire_core.models.answer_parsing import strict_json_schema
from sire_core.models.base import ModelBase
from sire_core.models.prompt_format import render
from sire_core.models.usage import CostRange, Price, StageUsage, estimate_tokens, load_prices, price_of
from sire_core.protocols import ChunkInContext, Completion, ModelRequest, Recipe
from sire_core.recipes.registry import recipe_as_built
from sire_core.storage.manifest import Manifest
from sire_core.text.pluralize import count
from sire_core.text.words import count_tokens
from sire_core.types import Chunk, Document, Passage

if TYPE_CHECKING:
    from sire_core.configuration import Configuration
    from sire_core.extraction.model_extractor import ModelExtractor
    from sire_core.storage.index_files import IndexFiles

_SPREAD = {"sim_summary": (0.6, 2.4), "rel_summary": (0.3, 3.5)}
"""Factor by which a model's number of summaries may differ from the trial's. A model names more or fewer
entities than the rules do, so aggregates vary far more than passages."""

_CHANGE, _MORE = (0.2, 4.0), 3
"""The factor for a change of an index, and so many summaries more: few are touched, and chance decides which."""

_ORGANIZING = (0.3, 4.0)  # The same of all else that organizers ask about entities
_ANSWER = (20, 600)  # Fewest and most tokens of such an answer

_RECORD = (0.38, 0.8)
"""Tokens of a record, in shares of the most that the model may write: the 5 % and 95 % quantiles of 1,890 passages of
MuSiQue with the names and triples that gpt-3.5-turbo found, in our form. The median is 0.57."""
_LEAST_BY_STEPS = 0.3  # Of records that several calls write together; 0.36 on the same passages
_SUMMARY = (0.3, 1.2)  # Tokens of a summary, in those that the recipe asks for
# Prompts of the later steps of native extraction, in prompts of the first: they hold its answer.
_LATER_STEPS = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of a build now.

    Attributes:
        passages: Number of passages after the build.
        stored: Number of distinct passages whose extraction is already stored and costs nothing.
        extraction: Calls, tokens and price of extraction.
        summaries: The same for summaries, of all recipes of the folder that the change updates.
        native: The prompts of `extraction="native"`, see `Recipe.native`; empty for the prompt of all recipes.
        superseded: Number of passages that are extracted already, but by another model or prompt (the key), and are
            extracted again.
    """

    passages: int
    stored: int
    extraction: CostRange
    summaries: CostRange
    native: str = ""
    superseded: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> CostRange:
        """Both together."""
        return self.extraction + self.summaries

    def describe(self) -> str:
        """A few lines for people."""
        whose = f"; extraction with the prompts {self.native!r}" if self.native else ""
        lines = [f"{count(self.passages, 'passage')}, {self.stored:,} of them extracted already{whose}"]
        for maker, number in self.superseded.items():
            model, _, prompt = maker.rpartition("|")
            lines.append(
                f"{count(number, 'passage')} extracted by {model} with the prompt {prompt}: superseded, to be "
                "extracted again. What is stored stays, for builds with that model."
            )
        for name, cost in (("extraction", self.extraction), ("summaries", self.summaries), ("together", self.total)):
            lines.append(f"{name:>10}: {cost.describe()}")
        lines.append("In brackets: the range to expect.")
        return "\n".join(lines)


async def estimate_build(
    files: IndexFiles | None, documents: Sequence[Document], configuration: Configuration, price: Price | None
) -> Estimate:
    """Estimate what `build(documents)` would ask of the model. Asks it nothing."""
    before = files.manifest() if files else Manifest()
    recipe, _ = configuration.built_by(before)
    recipe.check_installed()
    with files.store.snapshot() if files else nullcontext():
        stored = files.store.documents() if files else {}
        old = files.store.chunks(stored) if files else []
    change = plan_build(stored, documents, configuration.chunker_for(before))
    chunks = StoredCorpus.of(stored, old).updated(change).after.chunks
    if configuration.language_model is None:
        return Estimate(len(chunks), 0, CostRange(price=(0.0, 0.0)), CostRange(price=(0.0, 0.0)))
    price = price or price_of(configuration.language_model.fingerprint, load_prices())
    extraction, extracted, native = CostRange().priced(price), set[str](), ""
    superseded: dict[str, int] = {}
    if recipe.needs_records and configuration.extractor is None:
        way = configuration.extraction_for(recipe)
        extractor = model_extractor(configuration.language_model, way, native=recipe.native)
        native = recipe.native if way == "native" else ""
        hashes = {chunk.hash for chunk in chunks}
        if files:
            extracted = files.calls.known(extractor.fingerprint, hashes)
            superseded = files.calls.superseded(extractor.fingerprint, hashes)
        by_model = cast("ModelExtractor", getattr(extractor, "asked", extractor))
        extraction = estimate_extraction(missing_chunks(chunks, extracted), by_model, price=price)
    summaries = await _summaries(old, chunks, files, configuration, recipe)
    return Estimate(len(chunks), len(extracted), extraction, summaries.priced(price), native, superseded)


def estimate_extraction(
    items: Sequence[ChunkInContext],
    extractor: ModelExtractor,
    *,
    recorded: Collection[str] = (),
    price: Price | None = None,
) -> CostRange:
    """Calls and prompt tokens of extraction: exact in calls, and in prompt tokens as far as `estimate_tokens` is.

    Prompt tokens range from a server that does not count the JSON schema to one that does. Of native extraction only
    the first step is exact; the later ones hold its answer, and may be half or twice as long.
    """
    todo = {item.chunk.hash: item for item in items if item.chunk.hash not in recorded and item.chunk.text.strip()}
    schema = estimate_tokens(json.dumps(strict_json_schema(ExtractionAnswer), separators=(",", ":")))
    fixed: dict[str, int] = {}
    read = wrote = 0
    groups = list(extractor.groups(todo.values()))
    for group in groups:
        rendered = render(extractor.prompt(*group))
        read += fixed.setdefault(rendered.system, estimate_tokens(rendered.system)) + estimate_tokens(rendered.user)
        wrote += extractor.answer_room(*group)
    calls = len(groups) * extractor.steps
    later = (extractor.steps - 1) * read
    least = _RECORD[0] if extractor.steps == 1 else _LEAST_BY_STEPS
    cost = CostRange(
        (calls, calls),
        (read + round(_LATER_STEPS[0] * later), read + round(_LATER_STEPS[1] * later) + schema * calls),
        (round(least * wrote * extractor.steps), round(_RECORD[1] * wrote * extractor.steps)),
    )
    return cost.priced(price)


def estimate_summaries(
    clusters: tuple[int, int],
    children_tokens: tuple[int, int],
    *,
    max_tokens: int,
    price: Price | None = None,
) -> CostRange:
    """Cost of writing summaries."""
    instructions = 120
    low, high = clusters
    return CostRange(
        (low, high),
        (low * 20 + children_tokens[0], high * instructions + children_tokens[1]),
        (round(low * _SUMMARY[0] * max_tokens), round(high * _SUMMARY[1] * max_tokens)),
    ).priced(price)


async def _summaries(
    old: Sequence[Chunk], new: Sequence[Chunk], files: IndexFiles | None, configuration: Configuration, recipe: Recipe
) -> CostRange:
    """Try the change with a model that costs nothing, and count what a real one would be asked."""
    recipes = known_recipes(files.manifest(), configuration, recipe) if files else []
    trial = await dry_run(old, new, recipes, configuration, recipe)
    cost = CostRange()
    if trial is None:
        return cost
    for kind, spread in _SPREAD.items():
        sizes = [tokens for summary_kind, tokens in trial.below if summary_kind == kind]
        low, high = (factor * trial.scale for factor in (_CHANGE if recipes else spread))
        more = _MORE if recipes else 2 * bool(sizes)
        clusters = (round(low * len(sizes)), round(high * len(sizes)) + more)
        tokens = (round(low * sum(sizes)), round(high * sum(sizes)))
        cost += estimate_summaries(clusters, tokens, max_tokens=int(recipe.config.get("summary_tokens", 200)))
    cost += _organizing(trial.organizing, trial.scale)
    share = _new_share(old, new, changes=bool(recipes))
    return CostRange(
        _at_best(cost.calls, share), _at_best(cost.input_tokens, share), _at_best(cost.output_tokens, share)
    )


def _new_share(old: Sequence[Chunk], new: Sequence[Chunk], *, changes: bool) -> float:
    """Share of the passages, or of those that a change touches, that are new: at best all else is stored."""
    texts, after = {chunk.hash for chunk in old}, {chunk.hash for chunk in new}
    came = sum(chunk.hash not in texts for chunk in new)
    whole = max(came, sum(chunk.hash not in after for chunk in old)) if changes else len(new)
    return came / max(1, whole)


def _at_best(pair: tuple[int, int], share: float) -> tuple[int, int]:
    return round(pair[0] * share), pair[1]


def _organizing(usage: StageUsage | None, step: int) -> CostRange:
    """Calls of organizers beside summaries of trees: bridging facts, reports, summaries of entities."""
    if usage is None or not usage.calls:
        return CostRange()
    low, high = (spread * step for spread in _ORGANIZING)
    return CostRange(
        (round(low * usage.calls), round(high * usage.calls)),
        (round(low * usage.input_tokens), round(high * usage.input_tokens)),
        (round(low * usage.calls) * _ANSWER[0], round(high * usage.calls) * _ANSWER[1]),
    )


_MAX_CHANGED, _MAX_UNCHANGED = 1000, 400
"""Maximum number of changed and of other documents in a dry run; the result is scaled up for larger changes."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """Model calls that a build would make, counted with one that costs nothing."""

    scale: int  # Number of changed documents per document of the dry run
    below: tuple[tuple[str, int], ...] = ()  # Kind and number of input tokens of every new summary of other units
    organizing: StageUsage | None = None  # Calls of organizers except summaries of trees; None without any


def known_recipes(manifest: Manifest, configuration: Configuration, recipe: Recipe) -> list[Recipe]:
    """Return the folder's recipes whose summaries this model wrote, so that a change only asks for changed ones.

    Empty if the recipe to build is not among them: then it is built from all passages.
    """
    model = configuration.language_model.fingerprint if configuration.language_model else ""
    by_model = [built for built in manifest.recipes if built.language_model == model]
    if not any(built.builds_like(recipe) for built in by_model):
        return []
    return [same for built in by_model if (same := recipe_as_built(built, recipe)) is not None]


async def dry_run(
    old: Sequence[Chunk], new: Sequence[Chunk], recipes: Sequence[Recipe], configuration: Configuration, recipe: Recipe
) -> DryRun | None:
    """Build the old passages in memory, change them, and record the model calls of the change; None without any."""
    from sire_core.models.lexical_embedder import LexicalEmbedder
    from sire_core.storage.index_files import IndexFiles

    before, after = _documents(old) if recipes else {}, _documents(new)
    ids = list({**before, **after})
    changed = [doc for doc in ids if before.get(doc) != after.get(doc)]
    organizers = [organizer for one in (recipe, *recipes) for organizer in one.organizers]
    if not changed or not any(organizer.needs_summaries for organizer in organizers):
        return None
    unchanged = [doc for doc in ids if before.get(doc) == after.get(doc)]
    scale = _step(changed, _MAX_CHANGED)
    sample = {*changed[::scale], *unchanged[:: _step(unchanged, _MAX_UNCHANGED)]}
    files = IndexFiles(None)
    free = replace(
        configuration,
        recipe=recipe,
        language_model=DryRunModel(),
        extractor=RulesExtractor(),
        embedder=LexicalEmbedder(),
        chunker=None,
        limits=None,
    )
    try:
        for one in recipes:
            await _build(files, [before[doc] for doc in before if doc in sample], replace(free, recipe=one))
        old_summaries = set(_tokens_below(files))
        organizing = await _build(files, [after[doc] for doc in after if doc in sample], free)
        below = tuple(size for unit, size in _tokens_below(files).items() if unit not in old_summaries)
    finally:
        files.close()
    return DryRun(scale, below, organizing)


async def _build(files: IndexFiles, documents: Sequence[Document], configuration: Configuration) -> StageUsage | None:
    from sire_core.changes.builder import apply_plan

    report = await apply_plan(files, lambda stored, _: plan_build(stored, documents, None), configuration)
    return report.usage.get("deriving")


def _tokens_below(files: IndexFiles) -> dict[str, tuple[str, int]]:
    """Return kind and number of input tokens of every summary of a tree, by id."""
    owners = files.store.owners()
    units = {unit.id: unit for owner in owners for unit in files.store.units(owner)}
    below: dict[str, int] = {}
    for edge in files.store.edges(owners):
        if edge.kind == "child" and edge.source in units and edge.target in units:
            below[edge.source] = below.get(edge.source, 0) + count_tokens(units[edge.target].index_text)
    return {unit: (units[unit].kind.value, size) for unit, size in below.items()}


def _documents(chunks: Sequence[Chunk]) -> dict[str, Document]:
    """Return documents with these passages, by id."""
    passages: dict[str, list[Passage]] = {}
    for chunk in chunks:
        passages.setdefault(chunk.doc_id, []).append(Passage(chunk.text, title=chunk.title, metadata=chunk.metadata))
    return {doc: Document(id=doc, chunks=tuple(cut)) for doc, cut in passages.items()}


def _step(items: Sequence[str], limit: int) -> int:
    return max(1, -(-len(items) // limit))


_SUMMARY_WORDS = 100


class DryRunModel(ModelBase):
    """A `LanguageModel` for trials: summaries are the first words of the input, structured answers are empty."""

    fingerprint = "dry-run"

    async def answer(self, request: ModelRequest) -> Completion:
        """Answer at once."""
        prompt, schema = request.prompt, request.schema
        messages = render(prompt)
        tokens = estimate_tokens(messages.system) + estimate_tokens(messages.user)
        if schema is None:
            return Completion(" ".join(prompt.data.split()[:_SUMMARY_WORDS]) or "nothing", None, tokens, _SUMMARY_WORDS)
        try:
            value = schema.model_validate(least_value(schema.model_json_schema()))
        except ValueError as error:
            raise ModelError(f"the schema {schema.__name__} takes no empty value: {error}") from error
        return Completion("{}", value, tokens, 1)


def least_value(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> Any:
    """The smallest JSON value of the types that a JSON schema asks for; ranges and patterns are not looked at."""
    schemas = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return least_value(schemas[schema["$ref"].rsplit("/", 1)[-1]], schemas)
    for choice in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        return least_value(choice, schemas)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        wanted = schema.get("required", ())
        return {
            name: least_value(value_schema, schemas)
            for name, value_schema in schema.get("properties", {}).items()
            if name in wanted
        }
    return {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}.get(str(kind))
