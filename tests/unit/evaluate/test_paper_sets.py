"""The papers' data sets in their official formats, in small files of our own."""

import json

import pytest

from sire_core import Document
from sire_core.data import demo_documents
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate import DataSet, EvalRow, load_dataset
from sire_core.evaluate.answer_eval import AnswerConfig, answer_questions, answer_scores
from sire_core.evaluate.answer_metrics import rouge_l, string_match, with_dr
from sire_core.evaluate.bootstrap import with_tper
from sire_core.evaluate.rows import Setup
from sire_core.evaluate.runner import evaluate
from sire_core.extend import Question
from sire_core.models.openai.client import OpenAIChat
from sire_core.models.sync import run_sync
from sire_core.reason import ReaderConfig
from sire_core.recipes import flat, smart
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.faults import always, no_faults
from support.indexes import indexed
from support.scripted_server import ScriptedServer

QUALITY = [
    {
        "set_unique_id": f"{name}_X",
        "article_id": name,
        "title": title,
        "article": text,
        "questions": [
            {
                "question": "Where does the crew land?",
                "question_unique_id": f"{name}_Q1",
                "options": ["On Mars.", "On the Moon.", "Nowhere.", "At home."],
                "gold_label": gold,
                "writer_label": gold,
                "difficult": gold - 1,
            }
        ],
    }
    for name, title, text, gold in (
        ("1", "The Red Port", "The crew lands on Mars. They stay.", 1),
        ("2", "The Grey Port", "The crew lands on the Moon. They leave.", 2),
    )
]
ASQA = {
    "train": {},
    "dev": {
        "-1": {
            "ambiguous_question": "Who painted The Long Tide?",
            "qa_pairs": [
                {
                    "question": "Who painted the first The Long Tide?",
                    "short_answers": ["Mira Vale", "M. Vale"],
                    "context": "The first Long Tide was painted by Mira Vale.",
                    "wikipage": "The Long Tide",
                },
                {
                    "question": "Who painted the second The Long Tide?",
                    "short_answers": ["Otto Kell"],
                    "context": "No context provided",
                    "wikipage": None,
                },
            ],
            "wikipages": [],
            "annotations": [
                {
                    "knowledge": [{"content": "Otto Kell painted another Long Tide in 1931.", "wikipage": "Otto Kell"}],
                    "long_answer": "Mira Vale painted the first, Otto Kell the second.",
                }
            ],
        }
    },
}
NEWS = [
    {"title": "Port opens", "url": "https://n/1", "source": "A", "category": "news", "body": "Port Amber opened."},
    {"title": "Port closes", "url": "https://n/2", "source": "B", "category": "news", "body": "Port Amber closed."},
]
NEWS_ASKED = [
    {
        "query": "Do A and B agree?",
        "answer": "No",
        "question_type": "comparison_query",
        "evidence_list": [
            {"title": "Port opens", "url": "https://n/1", "fact": "Port Amber opened."},
            {"title": "Port closes", "fact": "Port Amber closed."},
        ],
    },
    {"query": "What of C?", "answer": "Insufficient information.", "question_type": "null_query", "evidence_list": []},
]
IIRC = [
    {
        "pid": "p1",
        "title": "Mira Vale",
        "text": "Mira Vale studied in Port Amber.",
        "links": [{"target": "Port Amber", "indices": [21, 31]}],
        "questions": [
            {
                "qid": "q1",
                "question": "Who founded the city where she studied?",
                "answer": {"type": "span", "answer_spans": [{"text": "Otto Kell", "passage": "port amber"}]},
                "context": [{"passage": "main", "text": "x"}, {"passage": "Port Amber", "text": "y"}],
                "question_links": ["Port Amber"],
            },
            {
                "qid": "q2",
                "question": "How old was it?",
                "answer": {"type": "value", "answer_value": "12", "answer_unit": "years"},
                "context": [{"passage": "main", "text": "x"}],
            },
            {"qid": "q3", "question": "Why?", "answer": {"type": "none"}, "context": []},
        ],
    }
]
ARTICLES = {"port amber": "<p>Port Amber was <a href='x'>founded</a> by Otto Kell.</p><p>It is a harbor.</p>"}
PAGES = [
    {
        "idx": 7,
        "question": "Who founded the port?",
        "answer": "Otto Kell",
        "type": "bridge",
        "title_chunks": [
            ["Port Amber", "It is a harbor."],
            ["Port Amber", "Otto Kell founded it."],
            ["Elm", "A river."],
        ],
        "supports": [["Port Amber", "Otto Kell founded it."]],
    },
    {
        "question": "What is the Elm?",
        "answer": ["river"],
        "title_chunks": [["Elm", "A river."], ["Elm", "It is long."], ["Port Amber", "It is a harbor."]],
        "supports": [["Elm", "A river."]],
    },
]


def written(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(line) + "\n" for line in value) if path.suffix == ".dev" else json.dumps(value)
    path.write_text(lines, encoding="utf-8")
    return path


def built(dataset, recipe="flat"):
    return indexed(dataset.documents, recipe=recipe, embedder=HashEmbedder())


def answers(dataset, script, faults=no_faults, **config):
    with ScriptedServer(script, faults=faults) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="none")
        found = run_sync(answer_questions(built(dataset), dataset, AnswerConfig(model=model, **config)))
        return found, [entry.call for entry in server.log]


def test_quality_is_multiple_choice_over_the_article_alone(tmp_path):
    dataset = load_dataset(written(tmp_path / "QuALITY.v1.0.1.htmlstripped.dev", QUALITY))
    assert [document.id for document in dataset.documents] == ["1", "2"]
    assert [question.type for question in dataset.questions] == ["easy", "hard"]
    row = run_sync(evaluate(built(dataset), dataset))
    assert [result.passages for result in row.results] == [("1",), ("2",)]  # never the other article
    found, calls = answers(dataset, lambda call: "Option 1")
    assert [answered.text for answered in found] == ["On Mars.", "On Mars."]
    scores = answer_scores(found)
    assert (scores["accuracy"], scores["EM"], scores["EM by type"]) == (50.0, 50.0, {"easy": 100.0, "hard": 0.0})
    assert scores["Acc by type"] == {"easy": 100.0, "hard": 0.0}
    assert calls[0].fields["options"][1] == {"number": 2, "text": "On the Moon."}
    assert answers(dataset, lambda call: "I would say: on the moon.")[0][1].text == "On the Moon."


def test_articles_of_quality_are_cut_into_passages_of_whole_sentences(tmp_path):
    sentences = [f"On day {day} the crew of the red ship counts the stars above the port." for day in range(40)]
    article = QUALITY[0] | {"article": " ".join(sentences)}
    (document,) = load_dataset(written(tmp_path / "QuALITY.v1.0.1.dev", [article])).documents
    assert 4 < len(document.passages) < 12
    assert " ".join(passage.text for passage in document.passages) == " ".join(sentences)
    assert all(passage.text.endswith("port.") for passage in document.passages)


def test_closed_book_and_self_ask_are_rows_and_time_is_per_unit(tmp_path):
    dataset = load_dataset(written(tmp_path / "pages.json", PAGES))
    found, calls = answers(dataset, lambda call: "Otto Kell", via="closed-book")
    assert [(answered.calls, answered.retrievals, answered.text) for answered in found] == [(1, 0, "Otto Kell")] * 2
    assert all("passages" not in call.fields for call in calls)
    scores = answer_scores(found)
    assert scores["EM"] == 50.0
    assert scores["TPQ"] > 0

    # Gold passages and nothing else, without a search (IIER, table 1).
    found, calls = answers(dataset, lambda call: "Otto Kell", via="golden", reader=ReaderConfig("paper"))
    assert [(answered.calls, answered.retrievals, answered.documents) for answered in found] == [
        (1, 0, question.supporting) for question in dataset.questions
    ]
    assert [len(call.fields["passages"]) for call in calls] == [len(q.supporting) for q in dataset.questions]

    def follow(call):
        return json.dumps({"followups": []}) if call.schema and "followups" in str(call.schema) else "river"

    asked, calls = answers(dataset, follow, via="self-ask", flavor="two_call", reader=ReaderConfig("paper"))
    assert [(answered.calls, answered.retrievals) for answered in asked] == [(2, 1)] * 2
    # By hand: 2 s over 30 units against 1 s over 10 is two thirds (SiReRAG section 5.3).
    base = EvalRow(Setup("RAPTOR", pool=10, family="raptor"), "d", 1, (5,), None, (), answers={"TPQ": 1.0})
    own = EvalRow(Setup("SiReRAG", pool=30, family="sirerag"), "d", 1, (5,), None, (), answers={"TPQ": 2.0})
    assert [row.answers["TPER"] for row in with_tper([base, own])] == [1.0, 0.667]
    assert with_tper([own]) == [own]


@pytest.mark.parametrize("via", ["single", "closed-book"])
def test_brief_answers_are_asked_for_with_passages_and_without(tmp_path, via):
    dataset = load_dataset(written(tmp_path / "pages.json", PAGES))
    found, calls = answers(dataset, lambda call: "Otto Kell", via=via, reader=ReaderConfig("brief"))
    assert [answered.text for answered in found] == ["Otto Kell"] * 2
    assert all("less than six words" in call.instructions and call.schema is None for call in calls)
    assert all(("passages" in call.fields) == (via == "single") for call in calls)
    with pytest.raises(ConfigurationError, match="brief, long, not 'short'"):
        ReaderConfig("short")


def test_citations_of_reports_are_a_column():
    def said(call):
        return json.dumps({"answer": "Maren Holt", "citations": [1, 4], "sufficient": True})

    question = Question("q", "Who designed Corrow Lighthouse?", ("Maren Holt",), ("corrow-lighthouse",))
    dataset = DataSet("demo", tuple(demo_documents()), (question,))
    for recipe, expected in ((smart(), 50.0), (flat(), None)):
        with indexed(dataset.documents, recipe=recipe, embedder=HashEmbedder()) as index:
            config = AnswerConfig("single", k=4, model=ScriptedModel(said))
            found = run_sync(answer_questions(index, dataset, config))
        assert answer_scores(found).get("findings") == expected


def test_tf_idf_weighs_rare_words_and_lengths():
    documents = [
        Document("long", "river " + "mill " * 9),
        Document("short", "river mill"),
        Document("rare", "amber mill"),
        Document("none", "bridge"),
    ]
    with indexed(documents, recipe=flat(ranker="tfidf"), embedder=HashEmbedder(), chunker=None) as index:
        hits = index.search("Amber, mill?", 4)
        assert [hit.doc_ids[0] for hit in hits] == ["rare", "long", "short", "none"]
        assert hits[0].score == pytest.approx(1.0)
        assert "TF-IDF 1.000" in hits[0].path[0].note
        assert [hit.doc_ids[0] for hit in index.search("river", 1)] == ["short"]


@pytest.mark.parametrize("ranker", ["dense", "bm25", "hybrid"])
def test_an_instruction_goes_to_every_ranker(tmp_path, ranker):
    dataset = load_dataset(written(tmp_path / "pages.json", PAGES))
    found = {}
    for instruction in ("", "Otto Kell"):
        index = indexed(dataset.documents, recipe=flat(ranker=ranker, instruction=instruction), embedder=HashEmbedder())
        found[instruction] = [hit.unit.text for hit in index.search("river", 2)]
    assert found[""][0] == "A river."
    assert "Otto Kell founded it." in found["Otto Kell"]
    assert "Otto Kell founded it." not in found[""][:1]


def test_asqa_has_long_answers_and_their_scores(tmp_path):
    dataset = load_dataset(written(tmp_path / "ASQA.json", ASQA))
    (question,) = dataset.questions
    assert question.answers == ("Mira Vale", "M. Vale", "Otto Kell")
    assert len(question.supporting) == len(dataset.documents) == 2

    def script(call):
        if "paragraph" in call.instructions:
            return "Mira Vale painted the first one."
        return "Mira Vale" if "first" in call.fields["question"] else "unknown"

    found, calls = answers(dataset, script)
    scores = answer_scores(found)
    assert len(calls) == 3
    assert (scores["STR-EM"], scores["D-F1"]) == (50.0, 50.0)
    # By hand: "mira vale painted first" is common to 5 and 8 words.
    assert scores["ROUGE-L"] == pytest.approx(100 * 2 * 4 / (5 + 7), abs=0.05)
    assert scores["DR"] == pytest.approx((scores["ROUGE-L"] * 50) ** 0.5, abs=0.1)


def test_a_reading_that_the_model_fails_on_counts_as_nothing_and_is_counted(tmp_path):
    dataset = load_dataset(written(tmp_path / "ASQA.json", ASQA))

    def script(call):
        if "paragraph" in call.instructions:
            return "Mira Vale painted the first one."
        return "Mira Vale"

    def is_of_the_second(call):
        return "paragraph" not in call.instructions and "first" not in call.fields["question"]

    scores = answer_scores(answers(dataset, script, always("refusal", is_of_the_second))[0])
    assert (scores["STR-EM"], scores["D-F1"], scores["unread"]) == (50.0, 50.0, 1)


def test_metrics_of_long_answers_by_hand():
    assert string_match("It was M. Vale.", [["Mira Vale", "M. Vale"], ["Otto Kell"]]) == 0.5
    assert rouge_l("a b c d", "b x d") == pytest.approx(2 * 2 / (3 + 3))  # "a" is an article and no word
    assert with_dr({"ROUGE-L": 0.25, "D-F1": 0.36})["DR"] == pytest.approx(0.3)


def test_multihop_rag_without_its_null_queries(tmp_path):
    written(tmp_path / "corpus.json", NEWS)
    written(tmp_path / "MultiHopRAG.json", NEWS_ASKED)
    dataset = load_dataset(tmp_path)
    (question,) = dataset.questions
    assert question.supporting == ("https://n/1", "https://n/2")
    assert (question.type, question.hops, question.answers) == ("comparison", 2, ("No",))
    assert dataset.documents[0].metadata["source"] == "A"


def test_iirc_takes_whole_pages_and_leaves_unanswerable_questions_out(tmp_path):
    written(tmp_path / "dev.json", IIRC)
    written(tmp_path / "context_articles.json", ARTICLES)
    dataset = load_dataset(tmp_path)
    assert [question.id for question in dataset.questions] == ["q1", "q2"]
    assert dataset.questions[0].supporting == ("mira vale", "port amber")
    assert [question.answers for question in dataset.questions] == [("Otto Kell",), ("12", "12 years")]
    assert dataset.documents[1].text.startswith("Port Amber was founded by Otto Kell.")
    assert "<" not in dataset.documents[1].text


def test_pools_of_pages_have_structural_edges(tmp_path):
    dataset = load_dataset(written(tmp_path / "pages.json", PAGES))
    assert {document.id: len(document.passages) for document in dataset.documents} == {"Port Amber": 2, "Elm": 2}
    assert [question.supporting for question in dataset.questions] == [("Port Amber",), ("Elm",)]
    assert dataset.questions[0].metadata["evidence"] == {"Port Amber": ["Otto Kell founded it."]}
    assert built(dataset, "iier").stats()["interactions"]["structural"] == 2
    row = run_sync(evaluate(built(dataset, "iier"), dataset))
    assert row.recall_passages(2) is not None


@pytest.mark.parametrize(
    "value", [[{"title_chunks": [["a"]], "question": "q"}], [{**PAGES[0], "supports": [["Z", "z"]]}]]
)
def test_what_breaks_its_format_is_an_error(tmp_path, value):
    with pytest.raises(CorpusError, match=r"pages\.json|pool"):
        load_dataset(written(tmp_path / "pages.json", value))


PORT = {"title": "Port Amber", "text": "Port Amber was founded by Otto Kell.", "is_supporting": True}
TIDE = {"title": "The Long Tide", "text": "Mira Vale painted The Long Tide.", "is_supporting": False}
PLAIN = [{"title": passage["title"], "text": passage["text"]} for passage in (PORT, TIDE)]


@pytest.mark.parametrize(
    "entry",
    [
        {
            "answers": ["Otto Kell", "Kell"],
            "positive_ctxs": [PLAIN[0]],
            "negative_ctxs": [],
            "hard_negative_ctxs": PLAIN[1:],
        },
        {"reference": ["Otto Kell", "Kell"], "contexts": [TIDE, PORT]},
        {"possible_answers": '["Otto Kell", "Kell"]', "paragraphs": [TIDE, PORT]},
    ],
    ids=["DPR", "Natural Questions of HippoRAG", "PopQA of HippoRAG"],
)
def test_passages_that_questions_mark_are_pooled(tmp_path, entry):
    file = tmp_path / "nq.json"
    asked = ("Who founded Port Amber?", "Whose port is Amber?")
    file.write_text(json.dumps([{**entry, "question": question} for question in asked]), encoding="utf-8")
    dataset = load_dataset(file)
    titles = {document.id: document.title for document in dataset.documents}
    assert sorted(titles.values()) == ["Port Amber", "The Long Tide"]
    assert [question.answers for question in dataset.questions] == [("Otto Kell", "Kell")] * 2
    assert [[titles[name] for name in question.supporting] for question in dataset.questions] == [["Port Amber"]] * 2
