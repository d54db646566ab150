from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import LimitExceededError, ModelError, RefusalError
from sire_core.models.usage import UsageLimits, estimate_tokens
from sire_core.models.usage_meter import UsageMeter, with_meter
from sire_core.testing.doubles import ScriptedCall, ScriptedModel
from sire_core.trees.summarizers import ModelSummarizer, pack_texts
from sire_core.types import Failure, Unit, UnitKind


def unit(name: str, text: str, title: str = "") -> Unit:
    return Unit(name, UnitKind.CHUNK, text, (f"chunk-{name}",), title=title)


async def test_children_are_joined_in_order_and_named_most_telling_first() -> None:
    model = ScriptedModel(["Bob moved to Rome in 1950."])
    cluster = [unit("a", "Cats sleep.", "Cats"), unit("b", "Bob moved to Rome."), unit("c", "It was 1950.")]
    found = await ModelSummarizer(model).summarize([cluster])
    assert found == [("Bob moved to Rome in 1950.", ("b", "c", "a"))]
    assert model.log[0].data == "Cats\nCats sleep.\n\nBob moved to Rome.\n\nIt was 1950."
    assert "key details" in model.log[0].instructions


async def test_over_the_context_limit_parts_are_summarised_first() -> None:
    model = ScriptedModel(lambda call: "Short." if len(call.data) > 60 else "Final.")
    summarizer = ModelSummarizer(model, max_tokens=20, context_tokens=60)
    cluster = [unit(str(n), f"Sentence {n} has eight words in it really. " * 3) for n in range(6)]
    found = await summarizer.summarize([cluster])
    assert found[0][0] == "Final."
    assert len(model.log) > 3
    assert all(estimate_tokens(call.data) <= 60 for call in model.log)
    everything = " ".join(call.data for call in model.log)
    assert all(f"Sentence {n} " in everything for n in range(6))


async def test_a_failed_cluster_is_reported_and_the_others_are_kept() -> None:
    def script(call: ScriptedCall) -> str:
        if "bad" in call.data:
            raise RefusalError("no") if "very" in call.data else ModelError("down")
        return "Fine."

    failures: list[Failure] = []
    summarizer = ModelSummarizer(ScriptedModel(script), on_failure=failures.append)
    found = await summarizer.summarize([[unit("a", "good")], [unit("b", "bad")], [unit("c", "very bad")]])
    assert [text for text, _ in found] == ["Fine.", "", ""]
    assert sorted(failure.reason.split(":")[0] for failure in failures) == ["ModelError", "RefusalError"]
    assert all("first" in failure.where for failure in failures)
    assert await ModelSummarizer(ScriptedModel(script)).summarize([[unit("b", "bad")]]) == [("", ())]


async def test_a_limit_is_raised_not_reported() -> None:
    model = with_meter(ScriptedModel(), UsageMeter(UsageLimits(max_calls=2)))
    failures: list[Failure] = []
    with pytest.raises(LimitExceededError):
        await ModelSummarizer(model, on_failure=failures.append).summarize([[unit(str(n), f"t{n}")] for n in range(5)])
    assert failures == []


@given(
    st.lists(st.text(alphabet="abc .\u6771", min_size=1, max_size=120).filter(str.strip), max_size=8),
    st.integers(20, 60),
)
def test_packing_keeps_every_letter_and_the_limit(texts: list[str], limit: int) -> None:
    parts = pack_texts(texts, limit)
    assert all(estimate_tokens(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join("".join(texts).split())
