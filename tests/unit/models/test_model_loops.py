"""Models between event loops and threads."""

import asyncio
import gc
import json
import logging
import signal
import textwrap
import threading
import time
import traceback
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.errors import SireError, UnusableAnswerError
from sire_core.extraction.answer_schemas import ExtractionAnswer
from sire_core.models.answer_parsing import loop_at, salvaged
from sire_core.models.base import CheckedModel
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.sync import run_sync
from sire_core.protocols import Completion, Prompt
from support.command import run_python
from support.scripted_server import ScriptedServer

ENTITY = '{"id":"n1","name":"Petra Quillon","type":"Person","aliases":[],"description":""}'
FACT = '{"text":"Petra Quillon was born in Varn Harbour.","entities":["n1"]},'
OTHER = '{"text":"She painted The Salt Lantern {for the museum}.","entities":["n1"]},'
HEAD = f'{{"entities":[{ENTITY}],"facts":['


class Loops(CheckedModel):
    """Gives its answers in turn; those that are not the last one were cut off at the limit."""

    fingerprint = "loops"

    def __init__(self, *texts):
        self.texts, self.rooms, self.asked = list(texts), [], []

    async def send(self, request):
        self.rooms.append(request.max_tokens)
        self.asked.append(request.prompt.instructions)
        text = self.texts.pop(0)
        return Completion(text, input_tokens=10, output_tokens=90, finish="length" if self.texts else "stop")


async def ask(model):
    return await model.complete(Prompt("Extract."), schema=ExtractionAnswer, max_tokens=500)


async def test_what_was_said_before_the_first_repetition_is_the_answer_and_nothing_is_asked_again(caplog):
    model = Loops(HEAD + OTHER + FACT * 40 + FACT[:30], "never asked for")
    with caplog.at_level(logging.WARNING, "sire_core"):
        done = await ask(model)
    assert [fact.text for fact in done.parsed.facts] == [json.loads(OTHER[:-1])["text"], json.loads(FACT[:-1])["text"]]
    assert [entity.name for entity in done.parsed.entities] == ["Petra Quillon"]
    assert len(model.rooms) == 1
    assert json.loads(done.text)["facts"]  # what is stored is whole JSON
    assert "repeated itself" in caplog.text


@pytest.mark.parametrize(
    "fact", [FACT, '{"text":"Petra Quillon was born in Varn Harbour."},', '"Petra Quillon was born.",']
)
@pytest.mark.parametrize("first", ["", OTHER, '"Once.",'])
async def test_the_repeated_fact_is_kept_whatever_stands_before_it(fact, first):
    if fact.startswith('"'):
        fact = f'{{"text":{fact[:-1]}}},'
    done = await ask(Loops(HEAD + first + fact * 30, ""))
    texts = [found.text for found in done.parsed.facts]
    assert json.loads(fact[:-1])["text"] in texts
    assert len(texts) <= 3
    assert len(done.parsed.entities) == 1


async def test_a_loop_before_anything_useful_is_asked_for_once_more_without_more_room():
    names = "".join(f'{{"id":"n{i}","name":"Petra Quillon"}},' for i in range(10, 90))
    model = Loops('{"entities":[' + names, '{"entities":[],"facts":[]}')
    done = await ask(model)
    assert done.parsed.facts == []
    assert model.rooms == [500, 500]
    assert "repeated itself" in model.asked[1]
    with pytest.raises(UnusableAnswerError):
        await ask(Loops('{"entities":[' + names, '{"entities":[' + names, ""))


async def test_an_answer_that_was_only_too_long_still_gets_more_room():
    facts = "".join(
        f'{{"text":"Fact {word} is told of {word[::-1]}."}},' for word in ("abcde", "fghij", "klmno", "pqrst")
    )
    model = Loops(HEAD + facts, '{"entities":[],"facts":[]}')
    await ask(model)
    assert model.rooms == [500, 1000]


@pytest.mark.parametrize("said", ["She sailed from Osby. ", 'She said \\"no\\" [twice]. ', "a \\\\ b c d "])
async def test_a_string_that_runs_in_a_circle_is_closed_where_it_was_said_once(said):
    model = Loops(HEAD + '{"text":"Petra Quillon lived there. ' + said * 60 + said[:7], "never asked for")
    done = await ask(model)
    (fact,) = done.parsed.facts
    assert fact.text.startswith("Petra Quillon lived there.")
    assert 0 < fact.text.count(json.loads(f'"{said[:-3]}"')) <= 2
    assert len(model.rooms) == 1


async def test_what_two_cut_answers_finished_is_the_answer_and_the_longer_one_counts(caplog):
    short = HEAD + OTHER + '{"text":"She lived in'
    long = HEAD + OTHER + FACT + '{"text":"And then she'
    for texts in ((short, long), (long, short)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "sire_core"):
            done = await ask(Loops(*texts, ""))
        assert [fact.text for fact in done.parsed.facts] == [json.loads(found[:-1])["text"] for found in (OTHER, FACT)]
        assert json.loads(done.text)["facts"]
        assert (done.finish, done.input_tokens, done.output_tokens) == ("stop", 20, 180)
        assert "cut off at its length limit" in caplog.text


async def test_two_cut_answers_that_finished_nothing_of_use_are_an_error():
    for text in (HEAD + '{"text":"She lived in', '{"entities":[', "no JSON at all"):
        with pytest.raises(UnusableAnswerError, match="length limit"):
            await ask(Loops(text, text, ""))


@settings(max_examples=60, deadline=None)
@given(st.text('{}[]",:ab1\\ ', max_size=60), st.text('{}[]",:ab1\\ ', max_size=40), st.integers(0, 12))
def test_whatever_is_repeated_the_rest_is_a_beginning_of_the_answer(start, round_, times):
    text = start + round_ * times
    found = loop_at(text)
    assert found is None or (0 <= found[0] <= len(text) - 3 * found[1] and found[1] > 0)
    try:
        value = salvaged(text)
    except ValueError:
        return
    assert all(letter in text for letter in json.dumps(value) if letter not in '"]} ')


def is_beginning(part, whole):
    if isinstance(part, dict):
        return list(part) == list(whole)[: len(part)] and all(is_beginning(part[name], whole[name]) for name in part)
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(is_beginning, part, whole))
    return part == whole


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4), st.data())
def test_what_is_left_of_a_cut_answer_is_its_beginning_with_whole_strings_and_numbers(value, data):
    text = json.dumps(value)
    assert is_beginning(salvaged(text[: data.draw(st.integers(1, len(text)))]), value)


def test_a_megabyte_takes_no_longer_than_its_length():
    for text in ("[" * 1_000_000, '{"a":' * 200_000, '"' * 1_000_000, "[1]," * 250_000, "ab" * 500_000):
        begun = time.process_time()
        with suppress(ValueError):
            salvaged(text)
        assert time.process_time() - begun < 2


async def test_a_stream_that_runs_in_a_circle_is_ended_and_the_server_may_stop_writing():
    said = "The museum stands in Osby by the river Lene. "
    with ScriptedServer(lambda call: "Ada Brink founded it. " + said * 4000, gap=0.0002) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="none")
        try:
            parts = [part async for part in model.stream(Prompt("Where?"))]
        finally:
            await model.aclose()
    assert 600 < len("".join(parts[:-1])) < 4000  # of 180,000
    assert parts[-1].text == f"Ada Brink founded it. {said}".strip()
    assert parts[-1].finish == "stop"


async def test_a_list_of_like_items_is_no_circle():
    items = [
        f"{number}. {word} is a town on the river Lene.\n" for number, word in enumerate(["Osby", "Varn", "Holt"] * 5)
    ]
    with ScriptedServer(lambda call: "".join(items), gap=0.0) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="none")
        try:
            parts = [part async for part in model.stream(Prompt("Where?"))]
        finally:
            await model.aclose()
    assert parts[-1].text.strip() == "".join(items).strip()
    assert parts[-1].finish == "stop"


async def double(x):
    await asyncio.sleep(0)
    return 2 * x


def run_script(script, **options):
    # On a busy machine asyncio's debug mode says how long a step took; that is no warning about us.
    quiet = "import logging\nlogging.getLogger('asyncio').addFilter(lambda record: 'took' not in record.msg)\n"
    return run_python(quiet + textwrap.dedent(script), flags=("-X", "dev", "-W", "error"), check=False, **options)


def test_exception_keeps_its_traceback_and_leaves_no_cycle():
    async def fail():
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone") as caught:
        run_sync(fail())
    assert "fail" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_fifty_threads_at_once_overlap_on_one_loop():
    inside = 0
    everyone = asyncio.Event()

    async def count(i):
        nonlocal inside
        inside += 1
        if inside == 50:
            everyone.set()
        await everyone.wait()
        return i

    results = [None] * 50

    def call(i):
        results[i] = run_sync(count(i))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results == list(range(50))


def test_reentry_raises_and_leaves_no_coroutine_behind(recwarn):
    async def outer():
        return run_sync(double(1))

    with pytest.raises(SireError, match="use the async method"):
        run_sync(outer())
    gc.collect()
    assert [w for w in recwarn if "never awaited" in str(w.message)] == []
    assert run_sync(double(5)) == 10


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_ctrl_c_cancels_waits_for_cleanup_and_raises():
    done = run_script("""
        import asyncio, os, signal
        from sire_core.models.sync import run_sync
        log = []
        async def slow():
            try:
                os.kill(os.getpid(), signal.SIGINT)  # the main thread waits for us
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.1)
                log.append("cleaned up")
        async def quick():
            return "alive"
        run_sync(quick())
        try:
            run_sync(slow())
        except KeyboardInterrupt:
            log.append("interrupted")
        print(log, run_sync(quick()))
    """)
    assert done.stdout.strip() == "['cleaned up', 'interrupted'] alive", done.stderr
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_interrupts_at_any_moment_never_hang():
    """Hundreds of interrupts, some before the loop has the call, some after it is done."""
    done = run_script("""
        import asyncio, signal
        from sire_core.models.sync import run_sync
        async def work(i):
            await asyncio.sleep(0)
            return i
        def interrupt(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        outcomes = {"done": 0, "interrupted": 0}
        for i in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + (i % 40) * 4e-6)
                try:
                    assert run_sync(work(i)) == i
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                outcomes["done"] += 1
            except KeyboardInterrupt:
                outcomes["interrupted"] += 1
        print(sum(outcomes.values()), outcomes["interrupted"] > 10, run_sync(work(7)))
    """)
    assert done.stdout.strip() == "400 True 7", done.stderr
