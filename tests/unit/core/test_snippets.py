"""`Hit.snippet`: the part of a passage that shows why it answers."""

import time

import pytest

from sire_core import Document, Hit, Index
from sire_core.text.days import is_day
from sire_core.text.languages import language
from sire_core.text.snippets import read_sentences, readable_sentences, snippet, stems
from sire_core.types import PathStep, Unit, UnitKind
from support.command import run

TEXT = (
    "## Paths\n\nEach path of the gateway has a type. The gateway refuses others.\n\n## Sockets\n\n"
    "Support for **websockets** is given by the [gateway](gateway.md). Close idle ones after `3600` seconds.\n\n"
    "| name | value |\n|------|-------|\n| depth | 3 |"
)


def test_the_sentence_that_shares_most_is_shown_without_marks():
    found = snippet(TEXT, "Does the gateway know websocket connections?", 95)
    assert (
        found == "... Sockets: Support for websockets is given by the gateway. Close idle ones after 3600 seconds. ..."
    )
    assert snippet(TEXT, "What is unrelated here?", 60).startswith("Paths: Each path of the gateway")


def test_it_keeps_to_its_length_and_is_linear():
    long = "word " * 200_000 + "needle " + "word " * 10
    begin = time.process_time()
    found = snippet(long, "Where is the needle?", 80)
    assert time.process_time() - begin < 5
    assert "needle" in found
    assert len(found) <= 80 + 8
    assert snippet("", "anything") == snippet("## ---\n\n| |", "anything") == ""


def test_the_command_shows_it_and_the_sentence_between_hits(tmp_path):
    pages = [
        Document(
            "film", f"It was shot in winter. {'Snow fell. ' * 40} It was directed by Petra Quillon.", title="Salt"
        ),
        Document("person", "She was born in Varn Harbour.", title="Petra Quillon"),
    ]
    with Index(tmp_path, recipe="sire") as index:
        index.build(pages)
        hits = index.search("Where was the director of Salt born?", 2)
    [film] = [hit for hit in hits if hit.doc_ids == ("film",)]
    assert "directed by Petra Quillon" in film.snippet("Who directed Salt?")
    shown = run("query", tmp_path, "Where was the director of Salt born?").stdout
    assert "directed by Petra Quillon" in " ".join(shown.split())
    source = hits.index(film) + 1
    assert f"[{source}] -> [{3 - source}]: It was directed by Petra Quillon." in " ".join(shown.split())


def test_sentences_keep_their_section_numbers_and_rows_their_cells():
    text = (
        "### 3.2. Limits\n\n1. The queue holds 50 items. See Section 4. Nothing more.\n2. Older ones are dropped.\n\n"
        "| flag | default |\n| --- | :---: |\n| `--depth` | **3** |\n\n```yaml\nmode: strict  # a [list]\n```\n"
        "> Wrapped prose\n> goes on, see [the guide][g] and snake_case_names."
    )
    assert readable_sentences(text) == [
        "3.2. Limits:",
        "The queue holds 50 items.",
        "See Section 4. Nothing more.",
        "Older ones are dropped.",
        "flag, default",
        "--depth: 3",
        "mode: strict # a [list]",
        "Wrapped prose goes on, see the guide and snake_case_names.",
    ]


MARKS = {
    "Add an `<Engine>` or `**kwargs` and `__init__` to *your* file; use argocd-* or '*'.": (
        "Add an <Engine> or **kwargs and __init__ to your file; use argocd-* or '*'."
    ),
    "Post to /zones/<id>/records <b>now</b><br/>, **Steam**has **all *of* it** ***here***.": (
        "Post to /zones/<id>/records now , Steamhas all of it here."
    ),
    "Names with \u2018_\u2019 (and those with \u2018_\u2019) stay; _so_ do these.": (
        "Names with \u2018_\u2019 (and those with \u2018_\u2019) stay; so do these."
    ),
    "[![A `cat`](cat.png)](http://a.example/cat) sleeps on [`mats`](m.md).": "A cat sleeps on mats.",
    "| Syntax: | `a \\| b` | <br>none |": "Syntax: a | b; none",
    "2 * 3 * 4 and snake_case_name and _private, __all__ of it": "2 * 3 * 4 and snake_case_name and _private, all of it",
}


@pytest.mark.parametrize("text", MARKS)
def test_marks_go_and_words_stay(text):
    assert readable_sentences(text) == [MARKS[text]]


@pytest.mark.parametrize(
    "command", ["\n        $ sudo bell ring <bell>", "    $ sudo bell ring <bell>", "\n        bell ring"]
)
def test_commands_without_a_fence_are_code(command):
    lead, code, after = read_sentences(f"* To ring by hand, run this:\n{command}\n\nIt is loud.")
    assert (code.kind, code.text) == ("code", command.strip())
    assert (lead.kind, after.kind) == ("item", "prose")


def test_items_and_rows_are_told_apart():
    text = "Limits of it\n\n- fifty items\n- two users\n\n| name | most | least |\n|---|---|---|\n| queue | 5 | 1 |\n\nThat is all."
    assert snippet(text, "limits") == (
        "Limits of it; fifty items; two users; name, most, least; queue: 5; 1; That is all."
    )


def test_terms_lead_to_their_definitions_and_code_stays_as_it_is():
    assert snippet("TMOUT\n\nSeconds of a pause.\n\nOther words.", "tmout") == "TMOUT: Seconds of a pause. Other words."
    code = '```\ncurl -d \'\n{ "a": 1 }\n```'
    assert snippet(code, "curl") == 'curl -d \' { "a": 1 }'


def test_of_a_long_table_its_head_and_the_row_that_answers_or_was_led_to_are_shown():
    rows = "".join(f"| Firm {n} | 555-00{n} | Person {n} |\n" for n in range(10, 50))
    text = f"| Company | Phone | Manager |\n|---|---|---|\n{rows}| Brandvig | 555-9914 | Hedda Lorn |\n|  |  |  |\n\nThat is all."
    row = "Company, Phone, Manager ... Brandvig: 555-9914; Hedda Lorn"
    assert snippet(text, "Which phone number has Brandvig?").startswith(row)
    unit = Unit("a", UnitKind.CHUNK, text, ("a",))
    step = PathStep("entity", ("b", "e", "a"), sentence="They are kept by Brandvig.")
    linked = Hit(unit, 1.0, path=(step,))
    assert linked.snippet("Who keeps the pumps?").startswith(row)
    assert "Brandvig" not in Hit(unit, 1.0).snippet("Who keeps the pumps?")


def test_two_sentences_that_answer_are_shown_when_they_are_far_apart():
    text = f"The pump starts at dawn. {'Nothing else is known of it. ' * 30}The pump stops at ten degrees."
    shown = snippet(text, "When does the pump start and stop?", 100)
    assert shown.startswith("The pump starts at dawn.")
    assert "... The pump stops at ten degrees." in shown
    assert len(shown) <= 108


def test_what_stands_in_angles_is_left_out_only_where_it_is_an_element():
    text = (
        "Run `spoolctl flush <queue-name> --older <b>` and read a Map<string, Job> at "
        "http://<host>/badges/<name>.svg.<br/>See <b>bold</b> [`__init__`](a.md) and <https://a.example/x>."
    )
    assert readable_sentences(text) == [
        "Run spoolctl flush <queue-name> --older <b> and read a Map<string, Job> at http://<host>/badges/<name>.svg.",
        "See bold __init__ and https://a.example/x.",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "The setting limit_<time> waits <time> seconds and mails <address>.",
        "Mark <mark> by <code> and <var>, or <kbd>, <sub>, <i>, <b>, <q>, <span>, <a> and <small>.",
        "Copy <source> into <table> within <time in seconds>.",
    ],
)
def test_placeholders_that_are_named_like_elements_stay(sentence):
    assert readable_sentences(sentence) == [sentence]
    assert readable_sentences(f"{sentence}\n\nIt is <time>noon</time> and <b>all</b>.")[0] == sentence
    assert readable_sentences(f"| Text | More |\n|---|---|\n| {sentence} | x |")[1] == f"{sentence}: x"


def test_tags_that_another_block_closes_and_tags_with_attributes_are_left_out():
    text = '<section>\nAnn <span class="x">opened it.<p>\n\nBo shut <a href="b">it.\n\nIt is <i>late</i>.\n</section>'
    assert readable_sentences(text) == ["Ann opened it.", "Bo shut it.", "It is late ."]


@pytest.mark.parametrize("part", ["<time> ", "</time>", "<b><i>", "<time "])
def test_many_tags_are_read_in_time_that_grows_with_their_number(part):
    begin = time.process_time()
    assert len(readable_sentences(f"Words {part * 20_000}")) <= 1
    assert time.process_time() - begin < 3


@pytest.mark.parametrize(
    ("text", "code", "days"),
    [
        ("the tea on 20 November", "en", "11-20"),
        ("by 2 april", "en", "04-02"),
        ("February 21st, 2024", "en", "02-21 2024-02-21"),
        ("Wed, 14 Feb 2024 10:00", "en", "02-14 2024-02-14"),
        ("the night from 20 to 22 April 2024", "en", "04-20 04-21 04-22 2024-04-20 2024-04-21 2024-04-22"),
        ("8 | 2024-02-28 | 2024-03-01", "en", "02-28 02-29 03-01 2024-02-28 2024-02-29 2024-03-01"),
        ("bought 2020-09-02, battery 2024-03-14", "en", "03-14 09-02 2020-09-02 2024-03-14"),
        ("may 5 users; 31 February; March 2024; 10.11.12.13; 2024-13-01", "en", ""),
        ("vom 3. bis 4. Mai, am 19.2.2024", "de", "02-19 05-03 05-04 2024-02-19"),
        ("le 1er f\u00e9vrier 2024", "fr", "02-01 2024-02-01"),
        ("19 \u0444\u0435\u0432\u0440\u0430\u043b\u044f 2024", "ru", "02-19 2024-02-19"),
        ("2024\u5e742\u670819\u65e5", "ja", "02-19 2024-02-19"),
    ],
)
def test_days_are_compared_in_one_form(text, code, days):
    assert sorted(filter(is_day, stems(text, language(code)))) == days.split()
