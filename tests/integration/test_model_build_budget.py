"""What builds by a model cost, over real HTTP: estimated beforehand, bounded, and never paid twice."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path

import pytest

from sire_core import Document, Index, UsageLimits
from sire_core.errors import LimitExceededError
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.faults import RetryPolicy
from sire_core.models.usage import Price
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from support.faults import replay
from support.scripted_server import ScriptedServer

PASSAGES = 60
RETRY = RetryPolicy(max_retries=2, base=0.01, cap=0.05, seed=0)

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def musique(sire_data) -> Path:
    return sire_data / "musique"


@pytest.fixture(scope="module")
def documents(musique) -> list[Document]:
    with (musique / "corpus.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, PASSAGES)]
    return [Document(row["id"], row["text"], row["title"], chunks=(row["text"],)) for row in rows]


@pytest.fixture(scope="module")
def script(musique):
    return replay(musique / "extractions.jsonl", musique / "corpus.jsonl")


@pytest.fixture
def server(script):
    with ScriptedServer(script) as running:
        yield running


def index_at(folder, server: ScriptedServer, recipe: str = "sirerag", **options) -> Index:
    model = OpenAIChat("gpt-4o-mini", base_url=server.base_url, retry=RETRY, timeout=5.0)
    return Index(
        folder, **{"recipe": recipe, "language_model": model, "embedder": HashEmbedder(), "workers": 4, **options}
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory, script, documents):
    """A folder whose every passage and summary is paid, and the report of its build."""
    folder = tmp_path_factory.mktemp("built") / "ix"
    with ScriptedServer(script) as running, index_at(folder, running) as index:
        report = index.build(documents)
        assert report.calls == running.received
    return folder, report


@pytest.fixture
def paid(built, tmp_path):
    return shutil.copytree(built[0], tmp_path / "ix")


def within(value: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= value <= bounds[1]


@pytest.mark.parametrize(
    ("recipe", "extraction"), [("flat", "joint"), ("raptor", "joint"), ("sirerag", "joint"), ("sirerag", "native")]
)
def test_a_build_lands_inside_the_estimate(tmp_path, server, documents, recipe, extraction):
    with index_at(tmp_path / "ix", server, recipe, extraction=extraction) as index:
        estimate = index.estimate(documents)
        assert server.received == 0
        assert not (tmp_path / "ix").exists()
        report = index.build(documents)
    expected = {"flat": 0, "raptor": 0, "sirerag": PASSAGES * (1 if extraction == "joint" else 3)}[recipe]
    assert estimate.extraction.calls == (expected, expected)
    for stage, bounds in (("extraction", estimate.extraction), ("summaries", estimate.summaries)):
        used = report.usage.get(stage)
        if used is None:
            assert bounds.calls[0] == 0
            continue
        assert within(used.calls, bounds.calls), stage
        assert within(used.input_tokens, bounds.input_tokens), stage
        assert within(used.output_tokens, bounds.output_tokens), stage
    assert report.calls == server.received
    assert within(report.calls, estimate.total.calls)
    if recipe == "sirerag" and extraction == "joint":
        assert report.usage["extraction"].input_tokens / PASSAGES <= 700


def test_what_is_stored_is_deducted_and_the_price_is_what_the_tokens_cost(tmp_path, server, documents):
    with index_at(tmp_path / "ix", server) as index:
        index.build(documents[:40])
        estimate = index.estimate(documents, Price(1.0, 10.0))
        assert (estimate.passages, estimate.stored) == (60, 40)
        assert estimate.extraction.calls == (20, 20)
        low, high = estimate.extraction.price
        assert low == pytest.approx(
            (estimate.extraction.input_tokens[0] + 10 * estimate.extraction.output_tokens[0]) / 1e6
        )
        assert low < high
        asked = server.received
        report = index.build(documents)
        assert report.usage["extraction"].calls == 20
        assert report.calls == server.received - asked
        assert index.estimate(documents).total.calls[0] == 0


def test_a_second_recipe_makes_no_extraction_calls(paid, built, server, documents):
    assert built[1].usage["extraction"].calls == PASSAGES
    with index_at(paid, server, "raptor") as index:
        assert index.estimate(documents).extraction.calls == (0, 0)
        report = index.build(documents)
        assert "extraction" not in report.usage
    with index_at(paid, server, "sirerag") as index:
        assert index.build(documents).calls == 0
    assert server.passages == []


def test_calls_stay_within_the_limit_and_only_the_rest_is_paid_later(tmp_path, built, server, documents):
    calm, needed, spent = built[0], built[1].calls, 0
    for limit in (25, 25, 15):  # the last in the middle of the summaries
        limited = index_at(tmp_path / "ix", server, limits=UsageLimits(max_calls=limit))
        with limited as index, pytest.raises(LimitExceededError, match=f"{limit} calls"):
            index.build(documents)
        assert server.received - spent == limit
        assert published(tmp_path / "ix") == 0
        spent = server.received
    assert PASSAGES < spent < needed
    with index_at(tmp_path / "ix", server, limits=UsageLimits(max_calls=needed - spent)) as index:
        report = index.build(documents)
        assert report.failures == ()
        assert report.calls == needed - spent
    assert server.received == needed
    assert read_contents(tmp_path / "ix") == read_contents(calm)


def test_tokens_stay_within_the_limit_and_only_the_rest_is_paid_later(tmp_path, server, documents):
    limited = index_at(tmp_path / "ix", server, limits=UsageLimits(max_tokens=20_000))
    with limited as index, pytest.raises(LimitExceededError, match="20,000 tokens"):
        index.build(documents)
    used = [entry.call for entry in server.log]
    assert 5 < len(used) < PASSAGES
    with index_at(tmp_path / "ix", server) as index:
        report = index.build(documents)
        assert report.failures == ()
    assert len(server.passages) == PASSAGES
    assert report.usage["extraction"].calls == PASSAGES - len(used)


def test_a_report_says_what_stored_answers_took_when_they_were_paid_for(paid, built, server, documents):
    first = built[1].usage["summaries"]
    with index_at(paid, server) as index:
        index.delete([document.id for document in documents])
        again = index.build(documents).usage["summaries"]
    assert (again.calls, again.cached) == (0, first.calls)
    assert again.stored_tokens == first.input_tokens + first.output_tokens > 0


def test_a_limit_of_no_calls_serves_what_is_paid_and_asks_nothing(paid, server, documents):
    with index_at(paid, server, limits=UsageLimits(max_calls=0)) as index:
        assert index.build(documents).calls == 0
        assert index.search("Where is the Alexander Hamilton Institute?")
        with pytest.raises(LimitExceededError):
            index.add([Document("new", "Ada Holm founded Brackwater Press.", "Ada Holm")])
        assert index.stats()["documents"] == PASSAGES
    assert server.received == 0


def published(folder: Path) -> int:
    """The generation that a folder shows; 0 before the first."""
    manifest = folder / "manifest.json"
    return json.loads(manifest.read_text())["generation"] if manifest.exists() else 0
