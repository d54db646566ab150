"""Stop texts: a text that comes in pieces ends where the whole one does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sire_core.models.base import ModelBase, StopCutter, cut_at
from sire_core.protocols import Completion, ModelRequest, Prompt


class Repeating(ModelBase):
    """Answers with the stop texts that it was given."""

    fingerprint = "repeating"

    async def answer(self, request: ModelRequest) -> Completion:
        return Completion("|".join(request.stop))


async def test_one_stop_text_is_not_a_list_of_letters() -> None:
    model, prompt = Repeating(), Prompt("Go on.")
    assert (await model.complete(prompt, stop="END")).text == "END"
    assert [piece async for piece in model.stream(prompt, stop="END")] == ["END", Completion("END")]
    assert (await model.complete(prompt, stop=["A", "B"])).text == "A|B"


def test_the_first_stop_text_ends_it() -> None:
    assert cut_at("one. two. three", ["three", "two"]) == "one. "
    assert cut_at("one", ["", "x"]) == "one"
    assert cut_at("one", []) == "one"


@given(st.text("abE", max_size=30), st.lists(st.text("abE", min_size=1, max_size=4), max_size=3), st.data())
def test_pieces_add_up_to_the_cut_text(text: str, stop: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    cutter = StopCutter(stop)
    given_out = [cutter.add(text[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(given_out) + cutter.end() == cut_at(text, stop)
