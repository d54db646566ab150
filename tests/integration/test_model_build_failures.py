"""Builds by a model that fails, over real HTTP: listed with reasons, nothing bad kept, repaired by the next build."""

from __future__ import annotations

import functools
import re

import pytest

from sire_core import Document, Index
from sire_core.errors import BuildError
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.faults import RetryPolicy
from sire_core.recipes import raptor, sirerag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, default_script
from sire_core.types import UnitKind
from support.scripted_server import ScriptedServer

RETRY = RetryPolicy(max_retries=2, base=0.01, cap=0.05, seed=0)
TOWNS = ["Arle", "Brinn", "Corvo", "Delme", "Essen Hall", "Fjord", "Gullane", "Holm", "Ister", "Jura", "Kemi", "Lindle"]
DOCUMENTS = [
    Document(
        f"d{n}",
        f"{town} lies on the Marl. {town} has a harbour of {TOWNS[n - 1]}. Its mayor met {TOWNS[n - 2]} in 19{n:02d}.",
        town,
    )
    for n, town in enumerate(TOWNS)
]
RECIPE = sirerag(max_cluster_tokens=120, summary_tokens=40)


def is_summary(call) -> bool:
    return call.schema is None


def about(town: str):
    return lambda call: call.fields.get("title") == town


class Moody:
    """Faults that can be switched off, as when a provider has recovered."""

    def __init__(self, fault: str, when) -> None:
        self.fault, self.when = fault, when

    def __call__(self, call) -> str | None:
        return self.fault if self.fault and self.when(call) else None


def index_at(folder, server: ScriptedServer, **options) -> Index:
    model = OpenAIChat("m", base_url=server.base_url, retry=RETRY, timeout=5.0)
    return Index(
        folder, **{"recipe": RECIPE, "language_model": model, "embedder": HashEmbedder(), "workers": 4, **options}
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a build holds whose model does not fail."""

    @functools.cache
    def contents(extraction="joint"):
        folder = tmp_path_factory.mktemp("calm") / "ix"
        with ScriptedServer() as server, index_at(folder, server, extraction=extraction) as index:
            assert index.build(DOCUMENTS).failures == ()
        return read_contents(folder)

    return contents


def assert_same_but_for_places(mended, calm):
    """A passage that came late has its place in trees that were there: the clusters may differ, what they hold not."""
    assert mended.chunks == calm.chunks
    exact = (UnitKind.CHUNK, UnitKind.AGGREGATE, UnitKind.PROPOSITION, UnitKind.SIM_SUMMARY)
    assert mended.said(*exact) == calm.said(*exact)
    for contents in (mended, calm):
        over = {edge.target for edge in contents.edges if edge.kind == "child"}
        leaves = {unit.id for unit in contents.units.values() if unit.kind is UnitKind.AGGREGATE}
        assert leaves
        assert leaves <= over  # every aggregate is under a summary


def test_what_answers_finished_that_are_always_cut_off_is_used_and_the_log_says_so(tmp_path, caplog):
    """A model that cannot stop would fail at every build; what it said before is better than nothing."""
    faults = Moody("half_answer", about("Corvo"))
    with ScriptedServer(faults=faults) as server, index_at(tmp_path / "ix", server) as index:
        assert index.build(DOCUMENTS).failures == ()
        assert "cut off at its length limit, twice" in caplog.text
        asked = server.received
        assert index.build(DOCUMENTS).failures == ()
        assert server.received == asked
        hits = index.search("Corvo", 40, returns="units")
        assert any(hit.unit.kind is UnitKind.AGGREGATE and hit.unit.title == "Corvo" for hit in hits)


@pytest.mark.parametrize("fault", ["refusal", "server_error", "empty"])
def test_a_summary_that_fails_is_listed_and_asked_again_although_nothing_changed(tmp_path, fault, undisturbed):
    faults = Moody(fault, is_summary)
    with ScriptedServer(faults=faults) as server, index_at(tmp_path / "ix", server, max_failure_ratio=1) as index:
        report = index.build(DOCUMENTS)
        assert report.failures
        assert index.stats()["failed"] == len(report.failures)
        assert all(failure.where.startswith("summary of") and failure.reason for failure in report.failures)
        assert not {"sim_summary", "rel_summary"} & set(report.units)
        assert index.search("Who met in Kemi?")
        again = index.build(DOCUMENTS)
        assert again.failures == report.failures
        assert again.generation == report.generation
        faults.fault = ""
        mended = index.build(DOCUMENTS)
        assert mended.failures == ()
        assert mended.unchanged == len(DOCUMENTS)
        assert mended.units["sim_summary"] > 0
        assert mended.usage["summaries"].calls > 0
        assert "extraction" not in mended.usage
        asked = server.received
        assert index.build(DOCUMENTS).generation == mended.generation
        assert server.received == asked
    assert read_contents(tmp_path / "ix") == undisturbed()


def test_without_summaries_a_build_stops_and_says_why(tmp_path, caplog):
    faults = Moody("server_error", is_summary)
    recipe = raptor(max_cluster_tokens=120, summary_tokens=50)
    with ScriptedServer(faults=faults) as server, index_at(tmp_path / "ix", server, recipe=recipe) as index:
        with pytest.raises(
            BuildError, match=r"failed \d times for similarity_tree, which has 0 units without"
        ) as error:
            index.build(DOCUMENTS)
        logged = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert f"failed {len(logged)} times" in str(error.value)
        assert all("summary of" in line and "ModelError" in line for line in logged)
        faults.fault = ""
        assert index.build(DOCUMENTS).units["sim_summary"] >= len(logged)
        assert index.stats()["failed"] == 0


def test_a_summary_that_a_model_refuses_for_good_does_not_stop_later_changes(tmp_path):
    first = []

    def only_the_first(call) -> bool:
        if not first and is_summary(call):
            first[:] = [call.input]
        return call.input in first

    recipe = raptor(max_cluster_tokens=60, summary_tokens=20)
    with ScriptedServer(faults=Moody("refusal", only_the_first)) as server:
        more = [Document(f"{d.id}-{n}", f"{d.text} Volume {n}.", d.title) for d in DOCUMENTS for n in range(4)]
        with index_at(tmp_path / "ix", server, recipe=recipe) as index:
            assert len(index.build([*DOCUMENTS, *more]).failures) == 1
            assert index.stats()["failed"] == 1
            assert index.add([Document("late", "Arle has a new harbour master.", "Harbours")]).added == 1
            assert index.stats()["failed"] == 1


def test_too_many_failures_stop_the_build_and_keep_what_succeeded(tmp_path, undisturbed):
    faults = Moody("refusal", lambda call: call.fields.get("title", "") >= "G")
    with ScriptedServer(faults=faults) as server:
        with index_at(tmp_path / "ix", server, max_failure_ratio=0.25) as index, pytest.raises(BuildError) as error:
            index.build(DOCUMENTS)
        assert "6 of 12 passages" in str(error.value)
        assert "max_failure_ratio" in str(error.value)
        extracted = server.received
        assert extracted == len(DOCUMENTS)
        with index_at(tmp_path / "ix", server, max_failure_ratio=0.5) as index:
            report = index.build(DOCUMENTS)
            assert len(report.failures) == 6
            assert report.usage["extraction"].calls == 6
        faults.fault = ""
        with index_at(tmp_path / "ix", server, max_failure_ratio=0.0) as index:
            assert index.build(DOCUMENTS).failures == ()
    assert read_contents(tmp_path / "ix") == undisturbed()


def test_native_extraction_keeps_every_step_that_was_paid(tmp_path, undisturbed):
    entities = []

    def one_step(call) -> bool:
        return bool(call.fields.get("entities")) and call.fields.get("title") == "Corvo" and not entities.append(call)

    faults = Moody("refusal", one_step)
    with ScriptedServer(faults=faults) as server, index_at(tmp_path / "ix", server, extraction="native") as index:
        report = index.build(DOCUMENTS)
        assert [failure.where for failure in report.failures] == ["d2#0"]
        assert entities
        steps = report.usage["extraction"].calls / len(DOCUMENTS)
        assert steps == 3
        faults.fault = ""
        mended = index.build(DOCUMENTS)
        assert mended.failures == ()
        assert mended.usage["extraction"].calls == 1
        assert mended.usage["extraction"].cached == 2
        assert index.stats()["extraction"] != ""
    assert_same_but_for_places(read_contents(tmp_path / "ix"), undisturbed("native"))


def half_an_emoji(call) -> str:
    """What small models write: half of a surrogate pair, as an escape in JSON and as it is in a summary."""
    answer = default_script(call)
    return (
        f"{answer} \ud83d"
        if call.schema is None
        else re.sub(r'"(text|answer|description)": "', r'"\1": "\\ud83d ', answer)
    )


@pytest.mark.parametrize(
    ("recipe", "extraction"), [("raptor", "joint"), ("sirerag", "native"), ("smart", "joint"), ("indexrag", "native")]
)
def test_half_a_surrogate_pair_in_an_answer_stops_no_build(tmp_path, recipe, extraction):
    with (
        ScriptedServer(half_an_emoji) as server,
        index_at(tmp_path / "index", server, recipe=recipe, extraction=extraction) as index,
    ):
        assert index.build(DOCUMENTS).failures == ()
        asked = server.received
        assert index.build(DOCUMENTS).failures == ()
        assert server.received == asked  # what was answered is stored
        assert any("\ufffd" in hit.unit.text for hit in index.search("Who lies on the Marl?", 40, returns="units"))
