"""Spans of searches, reasonings and model calls, as the OpenTelemetry SDK records them."""

import json

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK is missing")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from sire_core import Index, telemetry
from sire_core.data import demo_documents
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.reason import collect, ircot
from sire_core.testing.doubles import HashEmbedder, default_script
from support.command import run_python
from support.faults import always
from support.scripted_server import ScriptedServer

QUESTION = "Where was the director of the film The Salt Lantern born?"
FOLLOW_UP = "Where was Petra Quillon born?"
SAID = [
    {"reasoning": "Petra Quillon directed it.", "search": FOLLOW_UP},
    {"reasoning": "Enough.", "search": "DONE"},
    {"answer": "Varn Harbour [1]", "citations": [1], "sufficient": True},
]


@pytest.fixture
def spans():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry.enable(provider)
    yield lambda: sorted(exporter.get_finished_spans(), key=lambda span: span.start_time)
    telemetry.disable()
    provider.shutdown()


@pytest.fixture(scope="module")
def index():
    with Index(recipe="flat", embedder=HashEmbedder(), chunker=None) as made:
        made.build(demo_documents())
        yield made


def test_a_search_is_a_retrieval(index, spans):
    index.search(QUESTION, 3, filter={"kind": "person"})
    (span,) = spans()
    assert (span.name, span.kind) == ("retrieval flat", SpanKind.INTERNAL)
    assert span.attributes["gen_ai.operation.name"] == "retrieval"
    assert (span.attributes["sire.recipe"], span.attributes["sire.k"], span.attributes["sire.hits"]) == ("flat", 3, 3)
    assert "person" in span.attributes["sire.filter"]
    # What was asked may be personal.
    assert QUESTION not in str(dict(span.attributes))


def test_content_only_when_it_is_wanted(index, spans):
    telemetry._state["content"] = True
    hits = index.search(QUESTION, 2)
    (span,) = spans()
    assert span.attributes["gen_ai.retrieval.query.text"] == QUESTION
    recorded = json.loads(span.attributes["gen_ai.retrieval.documents"])
    assert [found["id"] for found in recorded] == [hit.unit.id for hit in hits]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reasoning_holds_its_searches_and_calls(index, spans, stream):
    with ScriptedServer(lambda call: json.dumps(SAID[call.number - 1])) as server:
        model = OpenAIChat("scripted", base_url=server.base_url, api_key="none")
        async for step in ircot(index, QUESTION, model=model, stream=stream):
            last = step
        await model.aclose()
    assert last.text == "Varn Harbour [1]"
    top, *below = spans()
    assert [span.name for span in below] == [
        "retrieval flat",
        "chat scripted",
        "retrieval flat",
        *["chat scripted"] * 2,
    ]
    assert {span.parent.span_id for span in below} == {top.context.span_id}
    assert (top.name, top.attributes["sire.stop"], top.attributes["sire.searches"]) == ("invoke_agent ircot", "done", 2)
    chats = [span for span in below if span.name.startswith("chat")]
    assert all(span.kind is SpanKind.CLIENT for span in chats)
    assert all(span.attributes["gen_ai.request.model"] == "scripted" for span in chats)
    tokens = sum(span.attributes["gen_ai.usage.input_tokens"] for span in chats)
    assert tokens == top.attributes["gen_ai.usage.input_tokens"] == last.usage.input_tokens > 0


async def test_embeddings_stand_below_their_search(spans):
    with ScriptedServer(default_script) as server:
        embedder = OpenAIEmbedder("scripted-embedder", base_url=server.base_url, api_key="none")
        with Index(recipe="flat", embedder=embedder, chunker=None) as index:
            await index.abuild(demo_documents()[:4])
            await index.asearch(QUESTION, 2)
        await embedder.aclose()
    *_, search, embedding = spans()
    assert (search.name, embedding.name) == ("retrieval flat", "embeddings scripted-embedder")
    assert embedding.parent.span_id == search.context.span_id


async def test_what_fails_is_an_error(index, spans):
    with ScriptedServer(default_script, faults=always("server_error")) as server:
        model = OpenAIChat("scripted", base_url=server.base_url, api_key="none", max_retries=0)
        trace = await collect(ircot(index, QUESTION, model=model))
        await model.aclose()
    assert trace.answer.stop == "model_failed"
    failed = [span for span in spans() if span.name.startswith("chat")]
    assert failed
    assert all(span.status.status_code is StatusCode.ERROR and span.attributes["error.type"] for span in failed)


def test_nothing_is_recorded_unless_it_is_enabled(index, spans):
    telemetry.disable()
    index.search(QUESTION, 3)
    assert spans() == []


def test_without_opentelemetry_everything_else_works():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from sire_core import Index, Document, telemetry\n"
        "index = Index(recipe='flat'); index.build([Document('a', 'Ada Holm founded it.')])\n"
        "assert index.search('Ada', 1)\n"
        "telemetry.enable()"
    )
    done = run_python(code, check=False)
    assert done.stderr.strip().splitlines()[-1] == (
        'ImportError: Tracing needs OpenTelemetry: pip install "sire-rag[otel]"'
    )
