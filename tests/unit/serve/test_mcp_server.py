"""The MCP server through the SDK's own client, in this process."""

import asyncio
import json
import re

import pytest
from mcp import Client

from sire_core import Document, Index, Passage
from sire_core.documents.chunker import SentenceChunker
from sire_core.errors import IndexMissingError, ModelError
from sire_core.extend import count_tokens
from sire_core.reason import ReasoningLimits
from sire_core.serve.mcp_server import make_server
from sire_core.testing.doubles import ScriptedModel
from support.command import run_python
from support.indexes import indexed

DOCUMENTS = [
    Document("m-1", "Ada Holm founded Brackwater Press.", "Ada Holm", {"year": 1901, "lang": "en"}),
    Document("m-2", "Brackwater Press stood in Lindle. It burnt down.", "Brackwater Press", {"year": 1930}),
    Document("m-3", "Lindle lies on the Marl. Its mayor was Ada Holm.", "Lindle", {"year": 1950}),
]


@pytest.fixture(scope="module")
def index():
    with indexed(DOCUMENTS, recipe="sirerag") as made:
        yield made


@pytest.fixture
def call(index):
    """Calls a tool: a connection belongs to the task that made it, so no fixture can hold one open."""

    async def called(name, given):
        async with Client(make_server(index)) as client:
            return await client.call_tool(name, given)

    return called


def text_of(result):
    (block,) = result.content
    return block.text


async def test_the_tools_explain_themselves(index):
    async with Client(make_server(index)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["search", "ask", "explain", "fetch", "open", "neighbors"]
    for tool in tools.values():
        assert len(tool.description) > 60
        assert tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False
        assert all(given["description"] for given in tool.input_schema["properties"].values())
    assert tools["search"].input_schema["required"] == ["query"]
    assert list(tools["search"].input_schema["properties"]) == ["query", "k", "filter", "as_of", "max_tokens"]
    assert list(tools["ask"].input_schema["properties"]) == [
        *("query", "k", "filter", "as_of", "show_steps", "via", "flavor", "max_steps", "timeout")
    ]
    assert tools["ask"].input_schema["properties"]["via"]["enum"] == ["single", "ircot", "self-ask"]
    assert "no language model is configured" in tools["ask"].description


async def test_the_instructions_name_size_and_metadata(index):
    async with Client(make_server(index)) as client:
        instructions = client.instructions
    assert "3 documents" in instructions
    assert "Metadata keys for filters: lang, year." in instructions


def hits_of(result):
    """Documents, passage id and text of each hit of a search, as an agent reads them."""
    return re.findall(r"(?:^|\n\n)\[(.*?)\](?: \(passage (\S+)\))? ((?:(?!\n\n\[).)*)", text_of(result), re.DOTALL)


async def test_search_gives_every_passage_once_with_what_to_cite_and_its_id(call, index):
    result = await call("search", {"query": "Who founded Brackwater Press?", "k": 4})
    assert not result.is_error
    expected = index.search("Who founded Brackwater Press?", 4)
    assert hits_of(result) == [
        (", ".join(hit.doc_ids), hit.unit.id if hit.unit.kind == "chunk" else "", hit.unit.index_text)
        for hit in expected
    ]
    assert result.structured_content is None  # clients show a model one of the two, or both


@pytest.mark.parametrize("where", [{"year": {"gt": 1940}}, "year>1940", '{"year": {"gt": 1940}}'])
async def test_filters_hold(call, where):
    result = await call("search", {"query": "Ada Holm", "filter": where})
    assert {documents for documents, _, _ in hits_of(result)} == {"m-3"}


@pytest.mark.parametrize("tool", ["search", "ask", "explain"])
@pytest.mark.parametrize("word", ["query", "question", "input"])
async def test_every_tool_takes_one_name_and_the_usual_others(call, tool, word):
    expected = text_of(await call(tool, {"query": "Who founded Brackwater Press?", "k": 2}))
    for number in ("k", "top_k", "limit"):
        result = await call(tool, {word: "Who founded Brackwater Press?", number: 2})
        assert (result.is_error, text_of(result)) == (False, expected)


@pytest.mark.parametrize("word", ["doc_id", "id", "document_id"])
async def test_documents_are_named_alike(call, word):
    [(document, passage, _)] = hits_of(await call("search", {"query": "Ada Holm founded", "k": 1}))
    for tool in ("fetch", "open"):
        assert text_of(await call(tool, {word: document})).startswith(f"[{document}] ")
    assert text_of(await call("neighbors", {"id": passage})).startswith(f"[{document}] passages 1 to 1 of 1")
    by_number = await call("neighbors", {word: document, "passage": 1})
    assert text_of(by_number).startswith(f"[{document}] passages 1 to 1 of 1")


@pytest.mark.parametrize(("tool", "argument"), [("search", "query"), ("ask", "query")])
async def test_a_name_that_no_hit_has_is_told(call, tool, argument):
    result = await call(tool, {argument: "Who founded Zellaby Press?"})
    assert text_of(result).startswith("No hit mentions 'Zellaby'.\n\n")
    assert "No hit mentions" not in text_of(await call(tool, {argument: "Who founded Brackwater Press?"}))


async def test_nothing_found_is_no_error(call):
    result = await call("search", {"query": "Ada Holm", "filter": "year=3"})
    hint = "Values of the metadata key 'year' go from 1901 to 1950."
    assert (text_of(result), result.is_error) == (f"Nothing was found. {hint}", False)
    hint = "No passage has the metadata key 'yeer'; did you mean 'year'? The keys are lang, year; "
    hint += "doc_id, passage_id and title can be filtered on, too."
    result = await call("search", {"query": "Ada Holm", "filter": "yeer=1930"})
    assert (text_of(result), result.is_error) == (f"Nothing was found. {hint}", False)


async def test_ask_without_a_model_quotes_the_sentences_that_answer(call):
    result = await call("ask", {"question": "Who founded Brackwater Press?"})
    assert text_of(result).startswith("Ada Holm founded Brackwater Press. [m-1]")
    assert "\n\nOutcome: answered. Quoted" in text_of(result)
    assert "no model has checked whether they answer the question" in text_of(result)
    assert "\n\nSources:\n[m-1]" in text_of(result)
    result = await call("ask", {"question": "Who founded Brackwater Press on Mars?"})
    assert "No hit mentions 'Mars'" in text_of(result)
    assert "\n\nOutcome: doubted. Quoted" in text_of(result)
    assert "\n\nOutcome: unanswered. " in text_of(await call("ask", {"question": "How do turbines rust?"}))


@pytest.fixture
def sections():
    text = "# Guide\n\n" + "\n\n".join(f"## Part {n}\n\n{f'Sentence {n} is about lamps. ' * 60}" for n in range(1, 5))
    with indexed([Document("guide.md", text, "Guide", {"year": 1990}), *DOCUMENTS], recipe="flat") as index:
        yield index


async def test_an_outline_and_the_passages_around_one(sections):
    async with Client(make_server(sections)) as client:
        head, _, *lines = text_of(await client.call_tool("open", {"doc_id": "guide.md"})).splitlines()
        assert head == f'[guide.md] Guide {{"year": 1990}}, {len(lines)} passages'
        assert [line.split(". ")[0] for line in lines] == [str(number) for number in range(1, len(lines) + 1)]
        assert "Part 4" in lines[-1]
        assert all(len(line) <= 120 for line in lines)
        found = await client.call_tool("search", {"query": "Sentence 3", "k": 1, "filter": "year=1990"})
        [(_, passage, text)] = hits_of(found)
        around = await client.call_tool("neighbors", {"doc_id": "guide.md", "passage": passage, "before": 2})
        head, *shown = re.split(r"\n\n(?=\d+\. )", text_of(around))
        numbers = [int(each.split(". ")[0]) for each in shown]
        assert head == f"[guide.md] passages {numbers[0]} to {numbers[-1]} of {len(lines)}"
        [middle] = [n for n, each in zip(numbers, shown, strict=True) if text in each]
        assert numbers == list(range(max(1, middle - 2), min(len(lines), middle + 1) + 1))
        same = await client.call_tool("neighbors", {"passage": passage, "before": 2})
        assert text_of(same) == text_of(around)
        first = await client.call_tool("neighbors", {"doc_id": "guide.md", "passage": 1, "after": 0})
        assert text_of(first).startswith(f"[guide.md] passages 1 to 1 of {len(lines)}\n\n1. ")


async def test_passages_that_an_agent_may_not_see_are_not_shown(tmp_path):
    indexed(DOCUMENTS, tmp_path / "ix", recipe="flat").close()
    with Index(tmp_path / "ix", allow="year<1940") as allowed:
        async with Client(make_server(allowed)) as client:
            for name, more in (("open", {}), ("neighbors", {"passage": 1})):
                assert not (await client.call_tool(name, {"doc_id": "m-1", **more})).is_error
                result = await client.call_tool(name, {"doc_id": "m-3", **more})
                assert result.is_error
                assert "There is no document 'm-3'" in text_of(result)


async def test_explain_gives_reasons(call, index):
    result = await call("explain", {"query": "Where did Brackwater Press stand?", "k": 2})
    assert text_of(result) == index.explain("Where did Brackwater Press stand?", 2)
    best = index.search("Where did Brackwater Press stand?", 1)[0].doc_ids[0]
    for name in ("m-1", "m-2"):
        reasons = text_of(await call("explain", {"query": "Where did Brackwater Press stand?", "k": 1, "id": name}))
        assert ("It is hit 1 of 1." in reasons) == (name == best)
        assert "\nwords: " in reasons
    wrong = await call("explain", {"query": "Where?", "doc_id": "m-0"})
    assert wrong.is_error
    assert "There is no document 'm-0' among those that are searched." in text_of(wrong)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("search", {}, "query is missing. The arguments are query, k, filter, as_of, max_tokens."),
        ("search", {"query": "x", "size": 3}, "there is no argument size. The arguments are"),
        ("search", {"query": "x", "k": 0}, "k must be at least 1."),
        ("search", {"query": "x", "k": 51}, "k must be at most 50."),
        ("search", {"query": "x", "k": "many", "filter": 3}, "k must be a whole number"),
        ("search", {"query": "   "}, "The query is empty."),
        ("search", {"query": "x", "filter": "year"}, "Cannot read the filter at character 5"),
        ("search", {"query": "x", "filter": {"year": {"near": 3}}}, "Unknown filter operator 'near'"),
        ("ask", {"question": "x", "via": "guess"}, "via: Input should be 'single', 'ircot' or 'self-ask'."),
        ("ask", {"question": "x", "via": "ircot"}, "via='ircot' needs a language model, and there is none here"),
        ("neighbors", {"doc_id": "m-1", "passage": 7}, "'m-1' has no passage '7': it has the numbers 1 to 1"),
        ("neighbors", {"passage": 7}, "No result has the id '7'. For the number of a passage give its document's"),
        ("open", {"doc_id": "m-9"}, "There is no document 'm-9'."),
        ("delete", {}, "There is no tool 'delete'; there are search, ask, explain, fetch, open, neighbors."),
    ],
)
async def test_mistakes_are_tool_errors_in_our_words(call, name, given, message):
    result = await call(name, given)
    assert result.is_error
    assert message in text_of(result)
    assert "Traceback" not in text_of(result)
    assert "pydantic" not in text_of(result)


THINK = {"reasoning": "Ada Holm founded Brackwater Press.", "search": "Where was Ada Holm mayor?"}
DONE = {"reasoning": "Ada Holm was mayor of Lindle.", "search": "DONE"}
READ = {"answer": "Lindle [1]", "citations": [1], "sufficient": True}
ASKED = {"question": "Where was the founder of Brackwater Press mayor?", "k": 3, "via": "ircot"}


def playing(*answers, latency=0.0):
    return ScriptedModel(
        [json.dumps(answer) if isinstance(answer, dict) else answer for answer in answers], latency=latency
    )


async def test_ask_reasons_and_cites(index):
    model, told = playing(THINK, DONE, READ), []

    async def on_progress(number, total, message):
        told.append((number, message, len(model.log)))

    async with Client(make_server(index, model)) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("ask", ASKED, progress_callback=on_progress)
    assert "no language model" not in tools[1].description
    assert not result.is_error
    answer, sources, sufficiency = text_of(result).split("\n\n")
    source = re.fullmatch(r"Lindle \[(m-\d)\]", answer)[1]
    assert re.fullmatch(rf"Sources:\n\[{source}\] \w.*", sources)
    assert sufficiency == "Outcome: answered. The evidence is sufficient: yes."
    # Every step is told as soon as it is there: the searches before the next call to the model.
    assert [(number, calls) for number, _, calls in told] == [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2)]
    assert told[1][1] == THINK["reasoning"]
    assert told[2][1] == "Searching: Where was Ada Holm mayor?"
    assert told[3][1] == "Found 3 results, all of them found before."


@pytest.mark.parametrize(
    ("via", "answers"),
    [
        ("single", [READ]),
        ("self-ask", ["Follow up: Who founded it?", "Ada Holm", "So the final answer is: Lindle", READ]),
    ],
)
async def test_ask_by_other_strategies(index, via, answers):
    model = playing(*answers)
    async with Client(make_server(index, model)) as client:
        result = await client.call_tool("ask", {**ASKED, "via": via})
    assert text_of(result).startswith("Lindle [m-")
    assert len(model.log) == len(answers)


async def test_ask_says_when_the_evidence_does_not_suffice_or_the_model_fails(index):
    async with Client(make_server(index, playing({"answer": "insufficient evidence", "sufficient": False}))) as client:
        result = await client.call_tool("ask", {**ASKED, "via": "single"})
    assert not result.is_error
    assert text_of(result).endswith("Outcome: unanswered. The evidence is sufficient: no (stopped by done).")
    assert "Read, but not cited:\n[m-" in text_of(result)
    async with Client(make_server(index, playing(ModelError("out of order")))) as client:
        result = await client.call_tool("ask", ASKED)
    assert "model_failed: out of order" in text_of(result)
    assert text_of(result).split("Read, but not cited:\n")[1].count("\n[m-") == 2


async def test_ask_shows_its_steps_when_it_is_asked_to(index):
    async with Client(make_server(index, playing(THINK, DONE, READ))) as client:
        result = await client.call_tool("ask", {**ASKED, "show_steps": True})
    steps = text_of(result).split("Steps:\n")[1].splitlines()
    assert steps[1:3] == ["2. Ada Holm founded Brackwater Press.", "3. Searching: Where was Ada Holm mayor?"]
    assert len(steps) == 5


async def test_flavor_steps_and_timeout_of_one_question(index):
    model = playing("Ada Holm founded it.", READ)
    async with Client(make_server(index, model)) as client:
        result = await client.call_tool("ask", {**ASKED, "flavor": "hipporag", "max_steps": 1})
        assert len(model.log) == 2
        assert text_of(result).startswith("Lindle [m-")
        wrong = await client.call_tool("ask", {**ASKED, "flavor": "two_call"})
        assert "flavor is one of original, hipporag, indexrag" in text_of(wrong)
        wrong = await client.call_tool("ask", {**ASKED, "via": "single", "flavor": "hipporag"})
        assert text_of(wrong) == "A flavor and examples are for ircot and self-ask only."
    slow = playing(THINK, DONE, READ, latency=5.0)
    async with Client(make_server(index, slow, ReasoningLimits(timeout=60))) as client:
        result = await client.call_tool("ask", {**ASKED, "timeout": 0.2})
    assert "stopped by timeout" in text_of(result)
    assert text_of(result).split("Read, but not cited:\n")[1].count("\n[m-") == 2


async def test_fetch_gives_a_document_in_parts(call):
    whole = await call("fetch", {"doc_id": "m-2"})
    text = "Brackwater Press stood in Lindle. It burnt down."
    head = '[m-2] Brackwater Press {"year": 1930}\n\n'
    assert text_of(whole) == head + text
    first = await call("fetch", {"doc_id": "m-2", "length": 10})
    assert text_of(first) == f"{head}{text[:10]}\n\n(Goes on: start=10, {len(text) - 10} characters more.)"
    assert text_of(await call("fetch", {"doc_id": "m-2", "start": 10})) == head + text[10:]
    missing = await call("fetch", {"doc_id": "m2"})
    assert (missing.is_error, text_of(missing)) == (True, "There is no document 'm2'. Similar ids: m-2.")


async def test_a_fetched_document_repeats_nothing_where_passages_overlap(tmp_path):
    text = " ".join(f"Sentence number {number} tells of the island." for number in range(120))
    with indexed([Document("long", text)], recipe="flat", chunker=SentenceChunker(40, overlap_tokens=16)) as index:
        async with Client(make_server(index)) as client:
            fetched = await client.call_tool("fetch", {"doc_id": "long"})
    assert " ".join(text_of(fetched).split()) == f"[long] {text}"


async def test_a_fetched_document_loses_nothing_of_the_users_own_passages():
    given = {
        "number": ("Visitors in 2023: 100", "100 people work there."),
        "word": ("I know this", "is true"),
        "answers": ("Is it open? No.", "No.", "No. It is not."),
        "named": (Passage("It rained. It stopped.", "n1"), Passage("It stopped. It rained.", "n2")),
    }
    with indexed([Document(name, chunks=chunks) for name, chunks in given.items()], recipe="flat") as index:
        async with Client(make_server(index)) as client:
            for name, chunks in given.items():
                text = "\n\n".join(getattr(chunk, "text", chunk) for chunk in chunks)
                assert text_of(await client.call_tool("fetch", {"doc_id": name})) == f"[{name}]\n\n{text}"


async def test_half_a_character_does_not_end_the_connection(index):
    said = {"answer": "Lin\ud83ddle [1]", "citations": [1], "sufficient": True}
    model = playing({**THINK, "reasoning": "A \udc00 thought."}, DONE, said, READ)
    told = []

    async def on_progress(number, total, message):
        told.append(message)

    async with Client(make_server(index, model)) as client:
        result = await client.call_tool("ask", {**ASKED, "show_steps": True}, progress_callback=on_progress)
        assert text_of(result).startswith("Lin\ufffddle [m-")
        again = await client.call_tool("ask", {**ASKED, "via": "single"})
        assert text_of(again).startswith("Lindle [m-")
    assert "A \ufffd thought." in told


async def test_one_question_keeps_to_its_limits(index):
    model = playing(THINK, READ, THINK, READ)
    async with Client(make_server(index, model, ReasoningLimits(max_calls=2))) as client:
        for calls in (2, 4):
            result = await client.call_tool("ask", ASKED)
            assert text_of(result).startswith("Lindle [m-")
            assert len(model.log) == calls


async def test_a_client_that_stops_waiting_stops_the_model(index):
    model = playing(THINK, DONE, READ, latency=0.2)
    async with Client(make_server(index, model)) as client:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.call_tool("ask", ASKED), 0.1)
        await asyncio.sleep(0.5)
    assert len(model.log) == 1


async def test_the_unforeseen_is_logged_and_not_shown(call, index, monkeypatch, caplog):
    async def broken(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(index, "asearch", broken)
    result = await call("search", {"query": "x"})
    assert result.is_error
    assert text_of(result) == "The server failed at this call; its log says why."
    assert "secret detail" in caplog.text


async def test_what_others_add_is_found_by_the_next_call(tmp_path):
    with Index(tmp_path / "ix", recipe="flat") as index, Index(tmp_path / "ix") as other:
        index.build(DOCUMENTS)
        async with Client(make_server(index)) as client:
            other.add([Document("m-4", "Zorn Quillfeather plays the theremin.")])
            result = await client.call_tool("search", {"query": "Who plays the theremin?", "k": 1})
    assert [documents for documents, _, _ in hits_of(result)] == ["m-4"]


def test_there_must_be_an_index(tmp_path):
    with Index(tmp_path / "none") as index, pytest.raises(IndexMissingError, match="There is no index"):
        make_server(index)


@pytest.mark.parametrize("missing", ["mcp", "mcp_types"])
def test_without_the_sdk_one_error_says_what_to_install(missing):
    code = f"import sys; sys.modules[{missing!r}] = None\nimport sire_core.serve.mcp_server"
    done = run_python(code, check=False)
    assert done.stderr.strip().splitlines()[-1] == (
        'ImportError: The MCP server needs the MCP SDK, version 2: pip install "sire-rag[mcp]"'
    )


@pytest.mark.parametrize("max_tokens", [20, 60, 400])
async def test_a_budget_holds_for_all_that_is_read(call, index, max_tokens):
    result = await call("search", {"query": "Who founded Brackwater Press?", "max_tokens": max_tokens})
    assert count_tokens(text_of(result)) <= max_tokens
    texts = {unit.id: unit.index_text for unit in index.snapshot().view.units(range(index.stats()["units"]))}
    quotes = [(passage, line) for _, passage, text in hits_of(result) for line in text.splitlines()]
    assert quotes
    assert all(line in texts[passage] for passage, line in quotes if passage)
