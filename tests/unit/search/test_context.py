"""Contexts: chosen blocks within a budget of tokens, verbatim, in the order of their documents."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core import Document, Hit, Index
from sire_core.documents.document_names import page_label
from sire_core.errors import ConfigurationError, QueryError
from sire_core.extend import count_tokens
from sire_core.search.context import Context, ContextOptions, Evidence, ranked, select_context
from sire_core.types import PathStep, Unit, UnitKind
from support.indexes import indexed

POOLS = """# Pools

## Workers

Every pool keeps idle workers for a while. The number of idle workers is `min_idle`, and it is 4 by default.

Workers that fail three times are replaced.

## Tables

| setting | default | meaning |
|---|---|---|
| min_idle | 4 | idle workers |
| max_idle | 9 | upper limit of idle workers |
| grace | 30 s | time before a kill |

Unrelated remarks about the colour of the logo follow here, and they are long enough to be a block of their own.
"""
MAIL = "The canteen closes at three.\n\nIdle workers drink coffee in the canteen.\n\nParking is free."


def hit(text: str, name: str = "a", title: str = "", doc: str = "", path: tuple[PathStep, ...] = ()) -> Hit:
    unit = Unit(name, UnitKind.CHUNK, text, (name,), title=title)
    return Hit(unit, 1.0, (doc or name,), path)


def chosen(question: str, *hits: Hit, max_tokens: int = 60, options: ContextOptions | None = None) -> Context:
    return select_context(question, ranked(hits), max_tokens, options)


def test_quotes_are_spans_of_the_passage_and_the_text_has_them() -> None:
    context = chosen(
        "What is the default of min_idle workers?", hit(POOLS, title="Pools"), hit(MAIL, "b"), max_tokens=90
    )
    assert "`min_idle`, and it is 4 by default" in context.text
    assert "canteen" not in context.text
    for one in context.evidence:
        for start, end in one.spans:
            assert one.hit.unit.text[start:end] in one.text
    assert context.tokens == count_tokens(context.text) <= 90


def test_a_row_stands_below_its_header_and_its_headings() -> None:
    context = chosen("upper limit of idle workers max_idle", hit(POOLS + "\n", title="Pools"), max_tokens=55)
    assert "| max_idle | 9 |" in context.text
    assert context.text.index("| setting | default |") < context.text.index("| max_idle")


def test_what_is_left_out_is_marked_between_quotes() -> None:
    text = "\n\n".join(
        ["Alpha pumps need oil every week, says the manual of the plant."]
        + [f"Filler sentence number {n} says nothing of interest to anybody who reads this." for n in range(8)]
        + ["The oil of alpha pumps is sold in blue cans at the gate of the plant."]
    )
    context = chosen("Where is the oil of alpha pumps sold, and when do they need it?", hit(text), max_tokens=45)
    assert "blue cans" in context.text
    assert "every week" in context.text
    assert context.text.index("every week") < context.text.index("\u2026") < context.text.index("blue cans")


def test_a_long_block_is_cut_at_sentences() -> None:
    text = " ".join(f"Sentence {n} is about the harbour." for n in range(30)) + " Whales sleep upright."
    context = chosen("How do whales sleep?", hit(text), max_tokens=30)
    assert "Whales sleep upright." in context.text
    assert context.tokens <= 30


def test_documents_follow_their_best_quote_and_passages_their_place() -> None:
    passages = [
        hit("Otters eat crabs and mussels in the evening.", "2", doc="sea"),
        hit("Otters swim in rivers.", "1", doc="sea"),
        hit("Otters eat fish.", "3", doc="river"),
    ]
    context = select_context("What do otters eat in the evening?", ranked(passages, [500, 0, 3]), 200)
    assert [one.id for one in context.evidence] == ["1", "2", "3"]
    assert context.text.startswith("[1]\nOtters swim")


def test_overlapping_passages_are_quoted_once() -> None:
    same = "Nets are mended in the winter months by the crew of the old trawler in the harbour."
    context = chosen(
        "When are nets mended?", hit(f"{same}\n\nOne.", "a", doc="d"), hit(f"{same}\n\nTwo.", "b", doc="d")
    )
    assert context.text.count("mended") == 1
    assert context.evidence[-1].text == "Two."


def test_a_copy_in_another_document_is_quoted_once() -> None:
    same = "Nets are mended in the winter months by the crew of the old trawler in the harbour."
    copies = [hit(f"{same}\n\nOne.", "a"), hit(f"{same}\n\nTwo.", "b")]
    assert chosen("When are nets mended?", *copies, max_tokens=90).text.count("mended") == 1
    short = [hit("Default: nets at noon.", "a", "Harbour"), hit("Default: nets at noon.", "b", "Mill")]
    assert chosen("What is the default of nets?", *short, max_tokens=90).text.count("noon") == 2


def test_a_rare_name_of_a_piece_leads_to_the_row_that_says_the_rest() -> None:
    concept = hit("# Copies\n\nThe repository of Accounting lies on larch.\n\nParking is free.\n", "concept")
    rows = "\n".join(
        f"| {name} | {who} |" for name, who in (("larch", "Lindqvist"), ("otter", "Voss"), ("alder", "Ruiz"))
    )
    servers = hit(f"| Server | Responsible |\n| --- | --- |\n{rows}\n", "servers")
    noise = hit("Accounting asks who is responsible for servers.\n\nA server is a machine.\n", "noise")
    question = "Who is responsible for the server on which the repository of Accounting lies?"
    context = chosen(question, noise, concept, servers, max_tokens=60)
    assert "Lindqvist" in context.text


def test_of_documents_by_themselves_the_first_hits_come_first() -> None:
    film, director, other = (
        hit("The film Salt was directed by Petra Quillon.", "a", "Salt"),
        hit("She was born in Orr, in a mill by the sea.", "b", "Petra Quillon"),
        hit("Water is the star of the film.", "c", "Waves"),
    )
    context = chosen("Where was the director of the film Salt born?", film, director, other, max_tokens=36)
    assert [one.id for one in context.evidence] == ["a", "b"]
    films = "Films were dear to her, and she kept two hundred of them in a cold room under the roof."
    long = hit(f"{director.unit.text} Her father ground corn there.\n\n{films}", "b", "Petra Quillon")
    context = chosen("Where was the director of the film Salt born?", film, long, other, max_tokens=36)
    assert "born in Orr" in context.text


def test_more_names_documents_that_match_and_are_not_quoted() -> None:
    hits = [hit(f"The red lamp of hall {n} blinks when the oven is hot.", str(n), doc=f"hall-{n}") for n in range(9)]
    context = chosen("When does the red lamp blink in the hall with the oven?", *hits, max_tokens=40)
    quoted = {name for one in context.evidence for name in one.doc_ids}
    assert quoted
    assert set(context.more) == {f"hall-{n}" for n in range(9)} - quoted


def test_a_reranker_decides_and_may_stop() -> None:
    def likes_coffee(question: str, texts: list[str]) -> list[float]:
        assert question == "Who drinks?"
        return [float("coffee" in text) for text in texts[:40]]

    context = chosen(
        "Who drinks?", hit(POOLS, title="Pools"), hit(MAIL, "b"), max_tokens=20, options=ContextOptions(likes_coffee)
    )
    assert "coffee" in context.text
    with pytest.raises(ConfigurationError, match="Expected a reranker, got int"):
        chosen("Who?", hit(MAIL), options=ContextOptions(3))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="needs a model that can stop"):
        chosen("Who?", hit(MAIL), options=ContextOptions(likes_coffee, rerank_ms=5))


@pytest.mark.parametrize("max_tokens", [0, -1, True, 2.5])
def test_a_budget_is_a_positive_number(max_tokens: int) -> None:
    with pytest.raises(QueryError, match="max_tokens"):
        chosen("Who?", hit(MAIL), max_tokens=max_tokens)


def test_nothing_gives_an_empty_context() -> None:
    context = chosen("Who?")
    assert (context.text, context.evidence, context.tokens, context.more) == ("", (), 0, ())


def as_json(evidence: list[Evidence]) -> str:
    return json.dumps([one.as_dict() for one in evidence])


TEXTS = st.text("ab .\n|#-`*", max_size=400) | st.sampled_from(
    [POOLS, MAIL, "word " * 300, "x" * 900, "\u4e2d\u6587" * 90]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, st.sampled_from(["", "Pools > Workers", "a " * 40])), max_size=5),
    st.integers(1, 300),
    st.sampled_from([ContextOptions(), ContextOptions(write=as_json), ContextOptions(count=len)]),
)
def test_the_payload_never_exceeds_its_budget(
    texts: list[tuple[str, str]], max_tokens: int, options: ContextOptions
) -> None:
    hits = [hit(text, str(number), title, doc=str(number % 2)) for number, (text, title) in enumerate(texts)]
    context = chosen("idle workers a b", *hits, max_tokens=max_tokens, options=options)
    payload = options.write(context.evidence) if context.evidence else ""
    assert options.count(payload) == context.tokens <= max_tokens
    assert payload == context.text
    for one in context.evidence:
        assert all(one.hit.unit.text[start:end] in one.text for start, end in one.spans)
        assert list(one.spans) == sorted(one.spans)


@pytest.mark.parametrize("by_splitter", [False, True])
def test_an_index_joins_small_passages_with_their_neighbors(*, by_splitter: bool) -> None:
    parts = [
        "The press has two rollers.",
        "It is cleaned on Fridays by the night shift.",
        "Use soap for that, never acid.",
    ]
    press = [Document("press", chunks=tuple(parts), metadata={"page": 7})]
    if by_splitter:  # leaves documents with the same source
        about = {"page": 7, "source": "press.md"}
        press = [Document(f"press-{number}", part, metadata=about) for number, part in enumerate(parts)]
    with Index(recipe="flat", chunker=None) as index:
        index.build(
            [*press, *(Document(f"other-{n}", f"Soap number {n} smells of roses and lemons.") for n in range(40))]
        )
        context = index.context("Who cleans the press on Fridays?", 60, options=ContextOptions(pool=1))
        quoted = " ".join(one.text for one in context.evidence)
        assert all(one.doc_ids[0].startswith("press") for one in context.evidence)
        assert re.search(r"Fridays by the night shift\..*never acid", quoted)
        assert context.evidence[0].page == 7
        assert any("stands beside" in reason for one in context.evidence for reason in one.reasons)
        hidden = index.context("Who cleans the press on Fridays?", 60, filter={"page": 8})
        assert hidden.evidence == ()
        with pytest.raises(QueryError):
            index.context("Who?", 0)


def test_quoted_passages_have_the_steps_of_the_search() -> None:
    documents = [
        Document("film", "The film Salt was directed by Petra Quillon.", title="Salt"),
        Document("person", "She was born in Orr, in a mill by the sea.", title="Petra Quillon"),
        Document(
            "old", "Petra Quillon was born in Ulm.", title="Quillon", metadata={"source": "q", "date": "2020-01-01"}
        ),
        Document(
            "new", "Petra Quillon was born in Orr.", title="Quillon", metadata={"source": "q", "date": "2025-01-01"}
        ),
    ]
    question = "Where was the director of the film Salt born?"
    with indexed(documents, recipe="sire") as index:
        paths = {hit.unit.id: hit.path for hit in index.search(question, 4, as_of="2026-01-01")}
        context = index.context(question, 200, as_of="2026-01-01")
    assert {one.hit.unit.id: one.hit.path for one in context.evidence} == paths
    assert any("superseded" in step.note for one in context.evidence for step in one.hit.path)


def test_of_a_table_that_does_not_fit_a_row_is_taken_and_not_its_header_alone() -> None:
    rows = "\n".join(f"| {name} Hall | 120 people | {1 + place},600 EUR |" for place, name in enumerate(("Elm", "Oak")))
    table = f"## Halls\n\n| Hall | Capacity | Weekend |\n|---|---|---|\n{rows}"
    context = chosen("What does the Oak Hall cost on a weekend?", hit(table, "a", "Weddings"), max_tokens=46)
    assert context.text.endswith("| Oak Hall | 120 people | 2,600 EUR |")
    assert context.text.count("Capacity") == 1


def test_a_sentence_that_leads_to_code_stands_with_it() -> None:
    others = "\n\n".join(f"A good way to shut the gates of lock number {n} in a storm is by hand." for n in range(9))
    lead = "A quick and good way to shut the gates of a lock in a storm is:\n\n```\ndd if=/dev/zero\n```"
    question = "What is a quick and good way to shut the gates of a lock in a storm?"
    assert lead in chosen(question, hit(f"{others}\n\n{lead}\n\nSnow fell.\n\n{others}"), max_tokens=65).text
    cut = lead.replace("is:", "is to write")
    assert cut in chosen(question, hit(f"{others}\n\n{cut}\n\nin one go.\n\n{others}"), max_tokens=65).text


def test_a_number_below_zero_is_another_than_the_number() -> None:
    says = "A priority of {} says what is done with packages of an archive in the list."
    text = "\n\n".join(map(says.format, (990, 1, -1, 100)))
    for number in (1, -1):
        assert says.format(number) in chosen(f"What does a priority of {number} say?", hit(text), max_tokens=25).text


LINES = "\n".join(f"dock --open-valve {number} --until-level {number * 10} --log" for number in range(1, 13))
CODE = f"""Nothing of the harbour is said in this sentence, which only makes the note longer than it has to be.

```
{LINES}
```

The pump of the dock stops by itself when the dock is dry.
"""
STEPS = "\n".join(
    f"{number}. Before the pump of dock {number} may be started, its gate has to be shut, the crew has to have left the "
    f"floor, the lamps have to be on, the log has to have an entry of the officer, gauge {number} has to be read by two "
    "members of the crew who agree, and the harbour master has to be told of it. Then the pump of the dock is started, "
    f"and it stops after {number} minutes by itself, unless somebody of the crew has stopped it before that time."
    for number in range(8, 12)
)


@pytest.mark.parametrize("text", [CODE, f"{CODE}\n\n{STEPS}", f"> \n> **Pump**\n\n{STEPS}"])
def test_whatever_fits_code_stands_between_fences_and_no_mark_stands_alone(text: str) -> None:
    sizes = set()
    for max_tokens in range(12, 480, 2):
        context = chosen("When does the pump of the dock stop?", hit(text), hit(MAIL, "b"), max_tokens=max_tokens)
        assert context.tokens <= max_tokens
        for one in context.evidence:
            assert one.text.count("```") % 2 == 0
            assert re.search(r"[a-z]{3}", one.text)
        sizes.add(context.text)
    assert len(sizes) > 5
    assert "pump" in context.text


def test_the_number_of_a_step_is_not_quoted_alone() -> None:
    for max_tokens in range(20, 300):
        context = chosen("How many idle workers does a pool keep?", hit(POOLS), hit(STEPS, "b"), max_tokens=max_tokens)
        assert all(re.search(r"[a-z]{3}", one.text) for one in context.evidence), context.text


def test_an_identifier_is_quoted_by_its_words() -> None:
    sessions = hit("All sessions of a user write one file, and each of them reads it at its start.", "sessions")
    option = hit("`SHARE_HISTORY` imports what others typed, and writes at once.", "option")
    context = chosen("How do I share history between sessions?", sessions, option, max_tokens=24)
    assert [one.id for one in context.evidence] == ["option"]


def test_evidence_names_the_page_that_it_stands_on():
    text = "# Boilers\n\nThe pump is primed by hand before it starts, and checked.\n\fThe valve opens at three bars.\n\fThe lid is blue.\n"
    index = indexed([Document("manual.pdf", text), Document("own", "The hatch opens.", metadata={"page": 7})])
    [hit] = index.search("At how many bars does the valve open?", 1)
    assert (hit.page, hit.page_at(hit.unit.text.index("valve")), page_label(hit)) == (1, 2, "pages 1-3")
    [evidence] = index.context("At how many bars does the valve open?", 20).evidence
    assert (evidence.text, evidence.page) == ("The valve opens at three bars.", 2)
    assert evidence.as_dict()["page"] == 2
    assert evidence.cut_hit().metadata["page"] == evidence.cut_hit().page == 2
    [own] = index.search("What opens? The hatch", 1)
    assert (own.page, own.page_at(5), page_label(own)) == (7, 7, "page 7")
    other = replace(own, metadata={})
    assert (other.page_at(5), page_label(other)) == (None, "")


MACHINES = """| host | purpose | room | owner | support contract | memory | address |
| --- | --- | --- | --- | --- | --- | --- |
| kestrel | mailboxes of everybody at the institute | B-114 | Jorunn Aas | HT-2207 | 64 | 10.40.7.5 |
| gannet | tide model and its nightly runs | D-300 | Elin Voss | HT-2207 | 512 | 10.40.8.20 |
| petrel | mailing lists and their archive | C-020 | Tomas Brekke | HT-2224 | 16 | 10.40.7.6 |
| tern | webmail for telephones and guests | C-020 | Jorunn Aas | HT-2211 | 32 | 10.40.7.9 |"""
CONTRACTS = """| number | vendor | subject | ends |
| --- | --- | --- | --- |
| HT-2207 | Bluefjord Systems | support for virtual machines, gold, round the clock | 2027-02-28 |
| HT-2211 | Sturla Hosting | backup site and its two fibre lines | 2026-12-31 |
| HT-2219 | Nordkabel | fibre line to the harbour, both directions | 2027-03-31 |
| HT-2224 | Arktis Data | support for virtual machines, basic, by day | 2026-11-30 |"""


@pytest.mark.parametrize("max_tokens", [120, 150, 200])
def test_the_row_with_the_name_asked_for_comes_before_the_first_and_its_code_leads_on(max_tokens: int) -> None:
    """The first row stands in one piece with the header, which has the other words of the question."""
    hits = hit(MACHINES, "machines", "machines"), hit(CONTRACTS, "contracts", "contracts")
    context = chosen("When does the support contract of petrel end?", *hits, max_tokens=max_tokens)
    assert "| petrel |" in context.text
    assert "kestrel" not in context.text or max_tokens > 150
    assert "2026-11-30" in context.text or max_tokens < 150
