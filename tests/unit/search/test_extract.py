"""Sentences of hits that answer a question, chosen without a model."""

import tracemalloc
from dataclasses import replace

import pytest

from sire_core import Hit
from sire_core.data import demo_documents, demo_questions
from sire_core.extend import count_tokens
from sire_core.reason import extract_answer
from sire_core.search.extracts import extract_sentences, extract_with_note
from sire_core.search.unanswered import unanswered_note
from sire_core.text.snippets import stems
from sire_core.types import PathStep, Unit, UnitKind
from support.indexes import indexed

pytestmark = pytest.mark.filterwarnings("error")


def hit(name, text, title=""):
    return Hit(unit=Unit(name, UnitKind.CHUNK, text, (name,), title=title), score=1.0, doc_ids=(name,))


def part(name, text, title):
    """A section that is too long to be quoted whole."""
    return hit(name, f"{text}\n\nDust lies {'on the shelf of the hall and ' * 24} there.", title)


BRIDGE = hit("bridge", "# Arne\n\nThe Arne Bridge is painted green. It was opened in 1931. Boats pass below.", "Arne")
PAINT = hit("paint", "Green paint is sold in Lindle. The shop opens at nine.", "Paint")

REFUSED, DOUBTED = "The documents do not seem to answer this.", "The documents may not answer this."
NO_SHARED = f"{REFUSED} No hit shares a word with the question."
NOTHING = "The question has no word to search for; these are only the nearest passages."


def test_sentences_come_in_the_order_of_the_hits_and_are_quoted_without_marks():
    chosen = extract_sentences(
        "When was the Arne Bridge opened, how is it painted, and where is paint sold?", [BRIDGE, PAINT]
    )
    assert [(one.hit, one.text) for one in chosen] == [
        (1, "The Arne Bridge is painted green. It was opened in 1931. Boats pass below."),
        (2, "Green paint is sold in Lindle."),
    ]


def test_hits_that_only_share_a_word_with_the_question_are_not_quoted():
    question = "What is the capital of France?"
    more = [hit(f"p{n}", f"The option -C{n} capitalises {'all ' * n}words; capital letters stay.") for n in range(5)]
    assert extract_sentences("What happens to capital letters?", more)
    assert extract_sentences(question, more) == []
    assert unanswered_note(question, more) == f"{REFUSED} No hit mentions 'France'."


def test_what_stands_under_a_heading_that_is_asked_for_is_quoted_with_what_mentions_it():
    mentions = hit("qa", "Uploads are checked. An orphaned package has no maintainer.", "Uploads")
    text = "If you leave a package, say that it is orphaned. Names are checked there."
    manual = hit("manual", text, "Manual > Orphaning a package")
    assert text in [one.text for one in extract_sentences("How do I orphan a package?", [mentions, manual])]


def test_a_name_that_only_a_passage_that_is_not_quoted_has_is_named():
    quoted = [
        hit(f"q{n}", f"Traffic between the lock and gate {n} is encrypted with a key.", f"Gate {n}") for n in range(2)
    ]
    far = [hit("far", "Salt is sold in Tonga.", "Salt")]
    question = "How is traffic between the lock and a gate encrypted in Tonga?"
    assert extract_answer(question, [*quoted, *far]).note == "No quoted passage mentions 'Tonga'."
    assert not unanswered_note(question, [*quoted, *far])


def test_words_that_say_nothing_by_themselves_are_not_missed():
    people = hit("people", "Ann calibrated the probes. Phone 4471.", "People")
    assert not unanswered_note("What is the phone number of the person who calibrated the probes?", [people])
    assert "4471" in extract_sentences("What is the phone number of the calibrated probes?", [people])[-1].text


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("Wer hat die Brücke in Arne gestrichen?", f"{REFUSED} No hit mentions 'Brücke' or 'gestrichen'."),
        ("Is it painted by --paint?", f"{REFUSED} No hit mentions '--paint'."),
        ("What opens arne.bridge?", "No hit mentions 'opens' or 'arne.bridge'."),
        ("Is Ann to blame for Arne Bridge, and how is it got rid of?", ""),
        ("Why isn't Arne Bridge painted? Hasn't Dr. or Ms Ann opened it? I'm here.", "No hit mentions 'opened'."),
    ],
)
def test_what_no_hit_mentions_is_named_as_the_question_spells_it(question, note):
    assert unanswered_note(question, [hit("a", "It was painted green by Ann.", "Arne Bridge")]) == note


def test_a_time_is_preferred_where_one_is_asked_for():
    text = "The lock of version 2 is held for a client. The lock is held for a client: default: 900. It is held in 3 steps."
    hits = [hit(f"lock{n}", part, "Lock") for n, part in enumerate(text.split(". "))]
    first, *_ = extract_sentences("How many seconds is the lock held for a client?", hits)
    assert first.text == "The lock is held for a client: default: 900"


def test_a_number_is_preferred_where_one_is_asked_for():
    hits = [hit(f"m{n}", f"The mill was built {how}.", f"Mill {n}") for n, how in enumerate(("by monks", "in 1202"))]
    assert extract_sentences("When was the mill built?", hits)[0].text.endswith("1202.")
    assert extract_sentences("What was the mill built for?", hits)[0].text.endswith("monks.")


def test_an_answer_cites_what_it_quotes_and_claims_nothing():
    answer = extract_answer("When was the Arne Bridge opened?", [BRIDGE, PAINT])
    assert "It was opened in 1931. [1]" in answer.text
    assert (answer.stop, answer.sufficient, answer.hits) == ("extracted", False, (BRIDGE, PAINT))
    assert answer.citations[0] == 1


def test_hits_that_have_nothing_in_common_with_the_question_give_nothing():
    answer = extract_answer("Who composed the opera?", [PAINT])
    assert (answer.text, answer.citations, answer.stop) == ("", (), "extracted")
    assert extract_answer("Who?", []).stop == "empty_index"


def test_hits_of_a_question_over_three_passages_say_which_sentence_leads_on():
    with indexed(demo_documents(), recipe="sire") as index:
        hits = index.search("Who was the mother of the captain of the Northern Wren?", 6)
    assert "SS Northern Wren" in [hit.unit.title for hit in hits[:2]]
    by_title = {hit.unit.title: [step.note for step in hit.path] for hit in hits}
    assert any("commanded by Aldous Brack" in note for note in by_title["Aldous Brack"])
    assert any("second of four sons of the botanist" in note for note in by_title["Hedda Sorrel"])


def test_the_sentence_that_leads_on_is_quoted():
    with indexed(demo_documents(), recipe="sire") as index:
        questions = list(demo_questions())
        found = [extract_answer(q.question, index.search(q.question, 10)).text for q in questions]
    assert "It was directed by Petra Quillon" in found[0]
    assert "bought its first locomotive from the Kestrel Foundry" in found[2]
    assert "was commanded by Aldous Brack" in found[1]


def test_a_hit_that_a_quoted_sentence_leads_to_is_quoted_by_what_means_the_same():
    with indexed(demo_documents(), recipe="sire") as index:
        question = list(demo_questions())[1].question  # asks for a mother; the passage speaks of sons
        assert "four sons of the botanist Hedda Sorrel" in extract_answer(question, index.search(question, 10)).text


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("When was the Arne Bridge opened?", ""),
        ("Paint", ""),
        ("xyzzy qwfp", f"{REFUSED} No hit shares a word with the question."),
        ("Ada", f"{REFUSED} No hit shares a word with the question."),
        ("lemons on a painted meringue?", f"{REFUSED} No hit mentions 'lemons' or 'meringue'."),
        ("Which lemons are painted?", f"{REFUSED} No hit mentions 'lemons'."),
        ("paint \udcc5\udcbdofie", f"{REFUSED} No hit mentions '\\udcc5\\udcbdofie'."),
        ("How do I paint the bridge right away instead of waiting?", ""),
        ("What do we know of the Arnee Bridge?", f"{REFUSED} No hit mentions 'Arnee'."),
        ("When did Anna Weiss open the Arne Bridge, and how is it painted?", "No hit mentions 'Anna' or 'Weiss'."),
        ("Is the Arne BRIDGE PAINTING green?", "No hit mentions 'PAINTING'."),
        ("Which boats are sold?", "No hit has more than one word of the question; these are only the nearest."),
        ("Is the green Arne Bridge painted every year?", ""),
        ("\u6771\u4eac\u306f\u3069\u3053", ""),
        ("where is it?", "The question has no word to search for; these are only the nearest passages."),
    ],
)
def test_hits_that_share_hardly_a_word_with_the_question_are_only_the_nearest(question, note):
    assert unanswered_note(question, [BRIDGE, PAINT]) == note


LETTERS = "How can I make the letters on my monitor bigger?"
METRICS = (
    "The monitor collects figures of every node and keeps them for a day. A node that does not answer is asked again. "
    "Use a key of capital letters for each figure. A larger store takes the figures of a month, and queries of it wait."
)
SCREEN = "Are letters hard to read? Choose another scale: the text of all windows on the screen becomes larger."
QUEUE = "The monitor of Heron keeps its letters in a queue of seven days."
SNAPSHOTS = (
    "Files that were removed by mistake can be restored from the nightly snapshot for thirty days. Open the folder, "
    "choose an earlier version and copy it back."
)


@pytest.mark.parametrize(
    ("question", "text", "is_answered"),
    [
        (LETTERS, METRICS, False),
        (LETTERS, f"{METRICS}\n\nWith `big`, letters on a monitor are drawn bigger.", True),
        ("How can old people read small letters on the screen?", SCREEN, True),
        ("What does Heron do with letters from abroad?", QUEUE, True),
        ("I deleted the folder of a colleague by mistake. Who brings back photos?", SNAPSHOTS, True),
        ("I lost the folder of a colleague by mistake. Who pays for photographs?", SNAPSHOTS, False),
    ],
)
def test_everyday_words_in_a_text_about_something_else_are_no_answer(question, text, is_answered):
    hits = [hit("a", text, "Notes"), hit("b", "Dust lies in the hall.", "Dust")]
    assert unanswered_note(question, hits).startswith((REFUSED, DOUBTED)) is not is_answered


@pytest.mark.parametrize(
    ("question", "is_quoted"),
    [
        ("The lorries are stuck because the bar will not go up. What is the first thing to do?", True),
        ("Which film of the director of the stuck lorries won the festival of Venice?", False),
    ],
)
def test_hits_with_less_of_a_question_than_answers_have_are_quoted_with_a_warning(question, is_quoted):
    barrier = "If the barrier does not open and lorries are waiting, first pull the red lever below the panel."
    hits = [hit("a", barrier, "Gate 2"), hit("b", "Dust lies in the hall.", "Dust")]
    quotes, note = extract_with_note(question, hits)
    assert ([quote.text for quote in quotes] == [barrier]) is is_quoted
    assert note.startswith(DOUBTED if is_quoted else REFUSED)


def test_without_hits_there_is_nothing_to_warn_of():
    assert unanswered_note("xyzzy", []) == ""


SETTINGS = """The pool has settings.

#### `pool_late`

Default: Disabled.

Late means after the task has run.

#### `pool_late_on_failure`

Default: Enabled. This setting only applies if tasks are late.

- SuspendTime: Nodes are idle for so many seconds. The default value is 30 seconds.
- SuspendRate: Nodes a minute. The default value is 60.

```
pool_late = 1
default_rate = 2
```
"""


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What is the default of pool_late?", "pool_late: Default: Disabled. Late means after the task has run."),
        (
            "What is the default of pool_late_on_failure?",
            "pool_late_on_failure: Default: Enabled. This setting only applies if tasks are late.",
        ),
        (
            "What is the default of SuspendTime?",
            "SuspendTime: Nodes are idle for so many seconds. The default value is 30 seconds.",
        ),
        ("What is the default of SuspendRate?", "SuspendRate: Nodes a minute. The default value is 60."),
    ],
)
def test_what_is_quoted_is_said_of_the_setting_that_is_asked_for(question, quoted):
    found = [one.quoted for one in extract_sentences(question, [hit("settings", SETTINGS, "Manual > Settings")])]
    assert quoted in found
    others = {"Disabled", "Enabled", "30 seconds", "is 60"} - {
        word for word in ("Disabled", "Enabled", "30 seconds", "is 60") if word in quoted
    }
    assert not [text for text in found if any(word in text for word in others)]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (
            "Start the lock anew with\n\n```\nlock:\n  again: yes\n```\n\nIt is loud.",
            "Start the lock anew with\n    lock:\n      again: yes",
        ),
        (
            "Start the lock anew with\n\n```\nlock:\n  again: yes\n```\n\nThe lock of the mill starts. It locks the yard and the mill.",
            "Start the lock anew with\n    lock:\n      again: yes\nThe lock of the mill starts. It locks the yard and the mill.",
        ),
        (
            "The lock is started from these places:\n\n- The cellar of the mill.\n- The roof\n- The yard",
            "The lock is started from these places: The cellar of the mill. The roof; The yard",
        ),
        (
            f"The lock is started by:\n\n- A rope of the mill\n- {'A long lever ' * 45}",
            "The lock is started by: A rope of the mill ...",
        ),
        (
            "## 3.50\n\nThis version starts the lock of the mill by itself.",
            "3.50: This version starts the lock of the mill by",
        ),
        (
            "Keys are `a` and `b`. Put these keys in to start the lock.",
            "Keys are a and b. Put these keys in to start the lock.",
        ),
    ],
)
def test_what_is_quoted_is_whole_or_says_that_it_goes_on(text, quoted):
    hits = [hit("lock", text, "Mill > Lock"), hit("lock", "Dust lies in the hall of the bell.", "Mill > Bell")]
    found = extract_sentences("How is the lock of the mill started?", hits, 80)
    assert any(one.quoted.startswith(quoted) for one in found), found


def test_a_sentence_that_denies_what_another_says_is_quoted_beside_it():
    text = "Most actions that alter an image can be undone. A few actions alter an image but cannot be undone."
    quotes = extract_sentences("Which actions alter an image but cannot be undone?", [hit("undo", text, "Undoing")])
    assert [one.text for one in quotes] == [text]


def test_a_short_line_with_what_is_asked_for_comes_with_what_it_is_said_of():
    entries = "\n\n".join(
        f"### 1.{n} {name}\n\n= <integer>\n\n> Default: {n + 4}\n\nSet the {name} of the mill in {unit}."
        for n, (name, unit) in enumerate((("lock timeout", "seconds"), ("belt width", "inches")), 1)
    )
    hits = [hit("options", entries, "Mill > Options"), hit("options", "Dust lies in the hall.", "Mill > Hall")]
    quoted = [one.quoted for one in extract_sentences("What is the default lock timeout of the mill?", hits)]
    assert quoted[0] == "1.1 lock timeout: = <integer> Default: 5 Set the lock timeout of the mill in seconds."


def test_keywords_are_not_quoted():
    text = "## Mask\n\n## Keywords\n\nremove, mask, raster\n\n## Use\n\nThe flag -r removes a raster mask."
    hits = [hit("mask", text, "Raster > Mask"), hit("mask", "Dust lies in the hall.", "Raster > Hall")]
    quoted = " ".join(one.quoted for one in extract_sentences("How do I remove a raster mask?", hits))
    assert "The flag -r removes a raster mask." in quoted
    assert "remove, mask" not in quoted


def test_code_is_quoted_where_it_is_asked_for():
    def found(question):
        return [one.text for one in extract_sentences(question, [hit("settings", SETTINGS, "Manual > Settings")])]

    assert "    pool_late = 1\n    default_rate = 2" in "\n".join(found("Which option sets default_rate?"))


def test_of_an_endless_sentence_the_part_that_has_words_of_the_question_is_quoted():
    text = f"{'A gate was shut, ' * 60}Ann opened the lock{', and a gate was shut' * 60}."
    (found,) = extract_sentences("Who opened the lock?", [hit("a", text, "Lock")])
    assert "Ann opened the lock" in found.text
    assert len(found.text) < 620


def test_a_sentence_that_ends_below_is_quoted_with_its_end():
    text = "The number of keys to keep is counted so that the formula for them is\n\nkeys = lifetime / rotation + 2\n\nEnd."
    both = extract_sentences("Which formula gives the number of keys to keep?", [part("a", text, "Keys > Number")])
    assert " ".join(one.quoted for one in both).endswith("the formula for them is keys = lifetime / rotation + 2 End.")


def test_a_name_that_goes_on_with_a_capital_is_mentioned():
    postgres = hit("db", "PostgreSQL keeps slow queries in a log.", "Databases")
    assert not unanswered_note("Where does Postgres keep slow queries?", [postgres])
    assert "'Tonga'" in unanswered_note("Where does Tonga keep slow queries?", [hit("t", "Tongann queries are slow.")])


@pytest.mark.parametrize(
    ("question", "text", "note"),
    [
        ("How long does a delivery wait?", "The setting delivery_<address> says when to wait.", ""),
        ("What is the delivery limit of Arne?", "Set arne_delivery_limit.", ""),
        ("How long is the moat?", "Ann shut the gate of the moat.", ""),
        ("How long is the long moat?", "Ann shut the gate of the moat.", "No hit mentions 'long'."),
        ("Wer hat das Rathaus gebaut?", "Rathaus und Markt sind alt.", "No hit mentions 'gebaut'."),
        ("Wer zahlt bei Haftpflicht?", "Die Haftpflichtversicherung zahlt alle Schäden, und das ist nicht neu.", ""),
        (
            "Wer zahlt die Haft?",
            "Die Schafthose zahlt niemand, und das ist nicht neu.",
            f"{REFUSED} No hit mentions 'Haft'.",
        ),
        ("Was ist mit der Haftpflicht?", "Die Privathaftpflichtversicherung zahlt, und das ist nicht neu.", ""),
        ("Wo wurde es denn?", "Der Verein wurde 1902 im Dorf gegründet, und er ist nicht klein.", NOTHING),
        ("Salonu'nun ücreti nedir?", "Çınar Salonu ve diğer salonların ücreti bu yıl çok yüksek.", ""),
        ("Где живёт Кузнецова?", "Кузнецов живёт в комнате двенадцать, и это не очень далеко.", ""),
        ("هل توجد حضانة لأطفال الموظّفين؟", "الإجازة السنوية هي ثلاثون يوما في كل سنة.", NO_SHARED),
        ("별관에는 무엇이 있습니까?", "별관은 1998년에 지었고 지하에는 체육관이 있다.", ""),
        ("食堂几点开门？", "停车场每小时五元，每天最高四十元。", NO_SHARED),
        ("市営プールの利用料金はいくらですか。", "図書館の本は二週間借りることができます。", NO_SHARED),
        ("ใครวาดภาพโมนาลิซา", "ห้องสมุดเปิดทุกวันและยืมหนังสือได้ห้าเล่ม", NO_SHARED),
        ("Qui a peint le pont de la gare ?", "Le pont de la gare est vert.", "No hit mentions 'peint'."),
        (
            "Wer baute Orr?",
            "Das Tor von Orr ist nicht alt, und es wird nur am Abend zu sein.",
            "No hit mentions 'baute'.",
        ),
    ],
)
def test_words_that_name_nothing_and_words_of_identifiers_are_not_missed(question, text, note):
    assert unanswered_note(question, [hit("a", text)]) == note


def test_hits_are_numbered_in_the_order_in_which_they_are_quoted():
    hits = [
        hit("mill", "The mill has a wheel.", "Mill"),
        hit("gate", "The gate of Orr is shut by Bo.", "Gate"),
        hit("lock", "The lock of Orr is opened by Ann at nine.", "Lock"),
    ]
    answer = extract_answer("Who opened the lock of Orr?", hits)
    assert answer.citations == tuple(range(1, len(answer.citations) + 1))
    assert answer.text.startswith("The lock of Orr is opened by Ann at nine. [1]")
    names = [one.doc_ids[0] for one in answer.hits]
    assert names[0] == "lock"
    assert sorted(names) == ["gate", "lock", "mill"]


def test_a_sentence_below_the_name_of_a_setting_stands_under_that_name():
    probes = "### Probes\n\nprobes=#\n\nSends probes to a peer. The default value is 3.\n\n"
    settings = f"{probes}time=#\n\nWaits so long. The default value is 30 seconds."
    found = extract_sentences("What is the default value of probes?", [part("conf", settings, "conf")])
    assert "time=#: The default value is 30 seconds." in [one.quoted for one in found]


def test_a_sentence_below_a_sign_stands_behind_it():
    states = "## States\n\n`~`\n\nThe node is powered off now.\n\n`#`\n\nThe node is powered up now."
    found = extract_sentences("When is the node powered off?", [part("nodes", states, "Nodes > States")])
    assert found[0].quoted.startswith("`~`: The node is powered off now.")


def test_the_value_that_is_asked_for_is_quoted_from_the_list_of_a_setting():
    text = "\n\n".join(
        f"## {name}\n\n- Units: seconds\n- Default: {value}\n- Minimum: 1\n\nTime for which a {thing} is kept open."
        for name, value, thing in (("gate_wait", 60, "gate of the lock"), ("boat_wait", 90, "berth for a boat"))
    )
    for question in ("How long is a gate kept open?", "For which time is a gate kept open by default?"):
        texts = [one.quoted for one in extract_sentences(question, [hit("manual", text)])]
        assert "gate_wait: Default: 60; Minimum: 1; Time for which a gate of the lock is kept open." in texts


def test_a_value_is_quoted_with_the_name_of_what_has_it():
    settings = [("gate.wait", "gate of the lock", 60), ("boat.wait", "berth for a boat", 90)]
    wait = "number of seconds for which a {} is kept open."
    items = "\n".join(
        f"- {name}: A {wait.format(thing)} Default: `{value}` (at most 100)." for name, thing, value in settings
    )
    terms = "\n\n".join(f"{name}\n\n{wait.format(thing)}\n\nDefault: {value}" for name, thing, value in settings)
    for text, value in ((items, "Default: 60 (at most 100)."), (terms, "Default: 60")):
        quotes = extract_sentences(
            "How long is a gate kept open by default?", [part("a", f"## Options\n\n{text}", "Lock")]
        )
        [quoted] = [one.quoted for one in quotes if value in one.quoted]
        assert "gate.wait" in quoted
        assert all("boat.wait" in one.quoted for one in quotes if "90" in one.quoted)


def test_the_row_of_an_identifier_is_quoted_below_a_row_with_the_words_of_the_question():
    rows = "".join(f"| nf_{name} | {name}-{number} |\n" for number, name in enumerate(("amanda", "ftp", "h323", "irc")))
    text = f"| | |\n|---|---|\n| Name of the kernel module | Name that iptables knows |\n{rows}"
    quotes = extract_sentences(
        "Under what name does iptables know the kernel module nf_h323?", [part("a", text, "Helpers")]
    )
    assert any("nf_h323: h323-2" in one.quoted for one in quotes)


def test_words_that_only_far_hits_have_are_named():
    near = [hit(f"near{number}", "The bridge of Arne is painted green.", "Arne") for number in range(10)]
    far = hit("far", "A vandal scratched the railing.", "Railing")
    question = "Who scratched the railing of the green bridge?"
    assert unanswered_note(question, [*near, far]) == "No hit among the first ten mentions 'scratched' or 'railing'."
    assert unanswered_note(question, [far, *near]) == ""


def test_a_note_that_names_no_word_is_left_out():
    hits = [
        hit("tower", "東京タワーは東京にある塔です。", "東京タワー"),
        hit("castle", "大阪城は大阪にある。", "大阪城"),
    ]
    assert unanswered_note("東京タワーの高さと設計者の名前は何ですか", hits) == ""
    assert unanswered_note("京都の寺の屋根は青いですか", hits).startswith(REFUSED)
    assert "mentions ." not in unanswered_note("京都の寺の屋根は青いですか", hits)


def test_words_of_any_length_are_compared_and_long_ones_are_not_remembered():
    stems("warm")
    tracemalloc.start()
    try:
        for number in range(20):
            assert stems(f"The mill {'x' * 100_000}.{number} stands.") >= {"mill", "stand"}
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_the_note_of_an_answer_says_where_the_documents_do_not_seem_to_answer():
    assert extract_answer("Who mends sundials in Peru?", [BRIDGE, PAINT]).note.startswith(REFUSED)
    assert not extract_answer("When was the Arne Bridge opened?", [BRIDGE, PAINT]).note


def test_of_rows_that_share_nothing_with_the_question_the_one_of_a_quoted_name_is_quoted():
    names = ("Oda", "Teo", "Lech", "Ulf", "Marit")
    phones = "".join(f"| {name} Nilsen | {n}4{n} | Quay |\n" for n, name in enumerate(names))
    weeks = "".join(f"| {n} | {name} Nilsen | {names[(n + 2) % 5]} Nilsen |\n" for n, name in enumerate(names * 2))
    hits = [
        hit("minutes", "Minutes of the April meeting: Ulf Nilsen.", "Meetings"),
        hit("rota", f"| Week | On call | Stand-in |\n|---|---|---|\n{weeks}", "Rota"),
        hit("phones", f"| Name | Mobile | House |\n|---|---|---|\n{phones}", "Phones"),
    ]
    question = "Which mobile number has the colleague who wrote the minutes of the April meeting?"
    texts = [one.text for one in extract_sentences(question, hits)]
    assert texts == ["Minutes of the April meeting: Ulf Nilsen.", "Ulf Nilsen: Mobile 343; House Quay"]


@pytest.mark.parametrize("end", ["is:", "is **this:**", "is\uff1a"])
def test_a_short_command_behind_a_colon_is_quoted_with_its_sentence(end):
    code = "```\ndd if=/dev/zero of=/run/g count=1\n```"
    text = f"# Gates\n\nA good way to shut all gates {end}\n\n{code}\n\nBoats wait below the gates."
    quotes = extract_sentences("What is a good way to shut all gates?", [part("gates", text, "Locks > Gates")])
    assert quotes[0].text.split("\n") == [
        f"A good way to shut all gates {end.replace('*', '')}",
        "    dd if=/dev/zero of=/run/g count=1",
    ]


def test_quotes_have_at_most_their_tokens():
    hits = [
        hit(f"d{n}", f"The lock of Orr {'and the gate ' * n}opens at {n} o'clock.", "Orr > Lock") for n in range(40)
    ]
    quotes = extract_sentences("When does the lock of Orr open?", hits)
    assert 100 < count_tokens("\n".join(one.quoted for one in quotes)) <= 280


TARIFFS = "| Tariff | Deductible |\n|---|---|\n| Basic | 300 euros |\n| Classic | 500 euros |\n| Comfort | 250 euros |"


@pytest.mark.parametrize(("name", "euros"), [("Basic", 300), ("Classic", 500), ("Comfort", 250)])
def test_the_row_that_a_question_names_is_quoted_and_not_the_one_that_another_document_names(name, euros):
    terms = "The customer bears a deductible of 150 euros. In the variant Comfort there is none."
    hits = [hit("terms", terms), hit("tariffs", TARIFFS), hit("club", "Fees are due in March.")]
    texts = [one.text for one in extract_sentences(f"What is the deductible of {name}?", hits)]
    assert f"{name}: Deductible {euros} euros" in texts
    assert not any(other in text for text in texts for other in {"Basic:", "Classic:", "Comfort:"} - {f"{name}:"})
    assert "Fees are due in March." not in texts  # it has nothing of the question


NO_ANSWERS = (
    ". 6 1.9 Migration of the locks . . . . 7",
    "Copyright 2008 by the lock makers.",
    "[May 02 15:31:25] The lock was opened.",
    "See locks-and-keys.",
    "See how the lock was opened for more.",
    "Section 3.12, \u201cOpening the lock\u201d",
)
MILL = "A mill was built there of stone, and has been for sale since then."
LIMITS = [f"The travel limit is {euros} euros per night." for euros in (100, 140)]
OJIBWE = "Maang is the loon. Ojiig, the fisher, is the Big Dipper. Mooz is the moose of autumn."
SAMI = "The bow of Favdna is the Big Dipper. Sarvva is the elk that he hunts all the winter long."
RESTRICT = "Denies service to some. Packets are dropped. Monitoring is always active with limited. It keeps a list."
ORR = "A key opens the lock of Orr. It is old. The lock of Orr has a second key."
PEOPLE = {"Ann Lee": "lathe", "Bo Marsh": "drill press", "Cy Dunn": "kiln", "Di Frost": "loom", "Ed Hale": "router"}
MACHINES = "| machine | room | keeper |\n|---|---|---|\n" + "".join(
    f"| {machine} | {100 + place} | {name} |\n" for place, (name, machine) in enumerate(PEOPLE.items())
)
PHONES = "| name | extension |\n|---|---|\n" + "".join(f"| {name} | {4400 + n} |\n" for n, name in enumerate(PEOPLE))
TEXTS = {
    **{text: ("Who opened the lock?", [hit("a", f"{text}\n\nAnn opened the lock.", "Lock")], ["Ann opened the lock."]) for text in NO_ANSWERS},
    "what fits much less": (
        "When was the lock of Orr built?",
        [hit("lock", "It has a gate.\n\nThe lock of Orr was built in 1931.\n\nBoats pass it.", "Orr"), *(hit(f"o{n}", MILL, "Mill") for n in range(4))],
        ["The lock of Orr was built in 1931."],
    ),
    "every sentence that answers": ("What is the travel limit per night?", [hit(text, text, f"Policy of 202{n}") for n, text in enumerate(LIMITS)], LIMITS),
    "headings and fragments": (
        "What has the signed zone?",
        [hit("zones", "}; // the zone is signed\n\n## Signed zone\n\nThe signed zone has a key.\n\n(at the end of a signed zone) any more.", "Zones")],
        ["The signed zone has a key."],
    ),
    "letters that look like marks, and footnotes": (
        "Which chief has the Makali`i as eyes, and when do the Ka`a rise?",
        [hit("sky", "The Makali`i are the eyes of `Kane`s chief.[4] The Ka`a rise at dusk; see argv[1].")],
        ["The Makali`i are the eyes of Kanes chief. The Ka`a rise at dusk; see argv[1]."],
    ),
    "one fact of two documents": (
        "What is the Big Dipper to the Ojibwe and to the Sami?",
        [part("ojibwe", OJIBWE, "Ojibwe > Sky"), part("sami", SAMI, "Sami > Stars"),
         part("birds", "The dipper is a bird of rivers. It is big. Constellations are not told of here.", "Birds > Dipper")],
        [OJIBWE, SAMI],
    ),
    "captions and what says nothing new": (
        "How much is the payment of the loan a month?",
        [part("loan", "The loan is paid back monthly.\n\nThe loan is paid back.\n\nPayment of the loan is $115 a month.", "8. Loans > 8.1. Payment"),
         part("figures", "Figure 8.9. The loan after the second payment.", "Guide > Figures")],
        ["The loan is paid back monthly.", "Payment of the loan is $115 a month."],
    ),
    "sentences of one paragraph": ("Which key does the lock of Orr have?", [part("orr", f"{ORR} It opens one of these:", "Locks > Orr")], [ORR]),
    **{text: ("Which mountain is in Cape Town?", [hit("cape", text, "Cape > Sights")], [text])
       for text in ("Table Mountain is in Cape Town.", "Table 2 shows a mountain in Cape Town.")},
    "greetings and headers of a mail": (
        "When does the lock of Orr open, dear Ann?",
        [hit("mail", "From: ann@example.org\nSubject: Lock of Orr\n\nDear all,\n\nThe lock of Orr opens at nine.\n\nBest regards\nAnn")],
        ["The lock of Orr opens at nine."],
    ),
    **{f"the rows of {name}": (
        f"What is the extension of the keeper of the {machine}?", [hit("machines", MACHINES), hit("phones", PHONES)],
        [f"{machine}: room {100 + n}; keeper {name}", f"{name}: extension {4400 + n}"],
    ) for n, (name, machine) in enumerate(PEOPLE.items())},
    "the sentence about a name that another one gives, without a word of the question but one": (
        "Which fuse does the preamplifier of invoice CV-2291 have?",
        [part("mail", "The invoice CV-2291 is for two preamplifiers of the type Lark 40, which need 48 volts.", "Mail"),
         part("log", "The Lark 40 has a slow fuse of 315 mA.\n\nThe fuse of the lamp is old.", "Repairs")],
        ["The invoice CV-2291 is for two preamplifiers of the type Lark 40, which need 48 volts.",
         "The Lark 40 has a slow fuse of 315 mA."],
    ),
    "the row of the name that is asked for, not one with a time": (
        "How fast does Brandt come when otter breaks?",
        [hit("contract", "# Scope\n\nBrandt repairs kestrel, badger and otter on site.\n\n# Times\n\nClass | Servers | Response\n"
             "--- | --- | ---\nGold | kestrel | 4 hours, also on Sundays\nSilver | badger, otter | next working day\n")],
        ["Brandt repairs kestrel, badger and otter on site.", "Silver: Servers badger, otter; Response next working day"],
    ),
    "a row with an empty cell, its columns named": (
        "What is the default of interval?",
        [part("mark", "#### interval\n\n| type | default | max | directive |\n| --- | --- | --- | --- |\n| integer | 1200 |  | Period |\n", "Mark")],
        ["integer: default 1200; directive Period"],
    ),
    "the empty cell of a column that is asked for": (
        "What is the telephone number of Priya?",
        [hit("people", "| Name | Office | Telephone |\n|---|---|---|\n| Priya | Secretary |  |\n| Ann | Chair | 960152 |\n")],
        ["Priya: Office Secretary; Telephone (empty)"],
    ),
    "the sentence that a paragraph begins with, and the one between two": (
        "What does limited do to monitoring?",
        [part("restrict", f"`limited` {RESTRICT}\n\nClocks drift.", "Access > Restrict")],
        [f"limited {RESTRICT}"],
    ),
    "whole code, and no sentence that leads to what is not quoted": (
        "How do I let the lock of Orr authenticate boats?",
        [part("orr", "Boats authenticate at the lock of Orr with this:\n\n```\nboats {\n  key = orr\n}\n```", "Locks > Orr"),
         part("tide", f"The lock of Orr might show boats this:\n\n```\n{'tide = 1 ' * 60}\n```", "Locks > Tide")],
        ["Boats authenticate at the lock of Orr with this:\n    boats {\n      key = orr\n    }"],
    ),
    "the default of the setting that is asked for, which a heading follows": (
        "What is the default value of gate_wait?",
        [part("conf", "### gate_wait\n\nTime for which a gate stays open.\n\nDefault: `60`\n\nNotes:\n\n### boat_wait\n\nTime of a berth.", "Conf > Lock")],
        ["Time for which a gate stays open. Default: 60"],
    ),
    "what a colon leads to, and not what stands behind that": (
        "How are fresh zone files copied?",
        [part("zone", "Freeze the zone. That is done similarly:\n\n```\nrndc freeze\n```\n\n2. Copy the fresh zone files into the folder of zones.", "Zones > Import")],
        ["Copy the fresh zone files into the folder of zones."],
    ),
    "what a mail says, not what it cites, behind one name": (
        "On which shelf is the spare part?",
        [hit("mail", "From: Tomas\nTo: Ines\n\nTake the spare part from the shelf before Friday.\n\nTomas\n\n"
             "> on Sunday night the shelf with the spare part fell down")],
        ["Take the spare part from the shelf before Friday.", "on Sunday night the shelf with the spare part fell down"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_these_sentences_and_no_others_are_quoted(case):
    question, hits, texts = TEXTS[case]
    assert [one.text for one in extract_sentences(question, hits)] == texts


OPTIONS = "".join(
    f"{name}\n\nType: integer\n\nDefault: `{value}`\n\nThis controls how many of the {name} are kept.\n\n"
    for name, value in (("max_active_keys", 3), ("max_old_keys", 7))
)
BOOT = (
    "It is not possible to ask for UEFI. Rather, Hyper-V gives UEFI to guests of generation 2. They start faster.\n\n"
    "Secure boot is another matter. For secure boot the type of the system must be set. Otherwise the guest stops."
)
CHECKS = """Name | Type | Description
--- | --- | ---
check_interval | Duration | **Optional.** How often a host is checked while it is in a hard state. Defaults to `5m`.
retry_interval | Duration | **Optional.** How often a host is checked while it is in a soft state. Defaults to `1m`.
"""
QUOTES = {
    "fields of an option, not of its group": (
        "What is the default of max_active_keys?", part("a", f"## fernet_tokens\n\n{OPTIONS}", "A > fernet_tokens"),
        "max_active_keys Type: integer Default: 3 This controls how many of the max_active_keys are kept.",
    ),
    "each part of a question": (
        "How do I get UEFI for a Hyper-V guest, and what must be set for secure boot?", part("boot", BOOT, "Guests > Boot"),
        BOOT.replace("\n\n", " "),
    ),
    "a row behind its name": (
        "What is the default of retry_interval?", hit("host", CHECKS, "Objects > Host"),
        "retry_interval: Type Duration; Optional. How often a host is checked while it is in a soft state. Defaults to 1m.",
    ),
    "items behind what leads to them": (
        "Do handlers run when a state is soft?",
        hit("state", "Handlers run in one of these cases:\n\n* The state is soft\n* The state gets hard\n\nOthers do not.", "States > Handlers"),
        "Handlers run in one of these cases: The state is soft; The state gets hard",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", QUOTES)
def test_this_quotation_and_no_other_is_made(case):
    question, searched, quoted = QUOTES[case]
    assert [one.quoted for one in extract_sentences(question, [searched])] == [quoted]


BEGINNINGS = {
    "code behind what leads to it": (
        "How do I turn on the SMC cache?",
        part("smc", "## SMC\n\nIt is off. To turn on the SMC cache:\n\n```\n$ ovs set smc=true\n```\n\nIt needs memory.", "Bridges > SMC"),
        "To turn on the SMC cache:\n    $ ovs set smc=true",
    ),
    "cells behind their heads": (
        "Does Hyper-V have policing?",
        part("qos", "| Feature | Linux | Hyper-V |\n| --- | --- | --- |\n| Policing | YES | NO |\n| Mirroring | NO | NO |", "Releases > Features"),
        "Policing: Linux YES; Hyper-V NO",
    ),
    "the sentence that leads to code": (
        "How can the loop be turned off?",
        hit("loop", "The loop is turned off by running:\n\n```\n%await off\n```\n\nThis allows synchronous queries.", "Async > Shells"),
        "The loop is turned off by running:\n    %await off",
    ),
    "a list that goes on": (
        "Does the server send files by sendfile?",
        part("send", "The server sends files by sendfile. However, it does not in these cases:\n\n* TLS is on\n* Quotas are on\n\nEnd.", "Server > Files"),
        "The server sends files by sendfile. However, it does not in these cases:",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BEGINNINGS)
def test_the_first_quotation_begins_with_what_answers(case):
    question, searched, beginning = BEGINNINGS[case]
    first, *_ = extract_sentences(question, [searched])
    assert first.quoted.startswith(beginning)


ROSTER = """| From | To | On call | Telephone |
| --- | --- | --- | --- |
| 2024-02-12 | 2024-02-18 | Annika Lindqvist | 0166 |
| 2024-02-19 | 2024-02-25 | Signe Dahl | 0172 |
| 2024-02-26 | 2024-03-03 | Jonas Ek | 0141 |"""


@pytest.mark.parametrize(
    "question",
    [
        "Who was on call on 21 February?",
        "Whom would one have reached by telephone in the night when the cable was dug through?",
    ],
)
def test_of_a_roster_the_row_is_quoted_whose_days_include_the_one_asked_for(question):
    """The day may be told by the question, or by a sentence of another passage."""
    outage = "On Wednesday, 21 February, at night the mains failed. The cause was a cable that was dug through."
    quotes = extract_sentences(question, [hit("outage", outage, "Outage"), hit("roster", ROSTER, "On call")])
    rows = [quote.text for quote in quotes if quote.hit == 2]
    assert rows == ["2024-02-19: To 2024-02-25; On call Signe Dahl; Telephone 0172"]


def test_a_row_with_the_name_that_led_to_its_table_is_quoted():
    """Though neither the row nor the head of the table has a word of the question."""
    plan = "| Day | Brings the key | Makes the tea |\n| --- | --- | --- |\n| 2024-11-20 | Dafydd Rees | Callum Frith |"
    paid = "| Name | Due | Paid |\n| --- | --- | --- |\n| Dafydd Rees | 60 | 60 |\n| Callum Frith | 120 | 75 |"
    step = PathStep("entity", ("plan", "e", "paid"), "", plan.splitlines()[-1], "Callum Frith")
    led = replace(hit("paid", paid, "Subscriptions"), path=(step,))
    question = "How much does the singer who makes the tea on 20 November still owe us?"
    quotes = extract_sentences(question, [hit("plan", plan, "Rehearsals"), led])
    assert [quote.text for quote in quotes] == [
        "2024-11-20: Brings the key Dafydd Rees; Makes the tea Callum Frith",
        "Callum Frith: Due 120; Paid 75",
    ]


LISTS = """Mailing lists on petrel

reef-survey     owner: Elin Voss      members: 212
sailors-forum   owner: Tomas Brekke   members: 1480
it-all          owner: Ravi Menon     members: 9"""
STAFF = """| Name | Role | Extension | Deputy |
| --- | --- | --- | --- |
| Ravi Menon | network engineer | 152 | Tomas Brekke |
| Tomas Brekke | systems engineer | 163 | Elin Voss |
| Elin Voss | modelling | 210 | Mette Rolf |"""


@pytest.mark.parametrize(
    ("question", "listed", "person"),
    [
        ("What is the extension of the owner of reef-survey?", "reef-survey", "Elin Voss"),
        ("What extension has the owner of sailors-forum?", "sailors-forum", "Tomas Brekke"),
        ("Which extension does the owner of it-all have?", "it-all", "Ravi Menon"),
    ],
)
def test_a_line_set_in_columns_by_spaces_leads_to_the_row_that_begins_with_its_name(question, listed, person):
    """Others of the table have the name in another cell; `it-all` is no two function words."""
    quotes = extract_sentences(question, [hit("lists", LISTS, "Lists"), hit("staff", STAFF, "Staff")])
    assert [quote.text.splitlines()[-1].partition(":")[0] for quote in quotes] == [listed, person]


@pytest.mark.parametrize(
    ("option", "is_there"),
    [("serve-expired-ttl", True), ("cache-stale-ttl", False), ("serve-stale-max", False), ("stale-data", True)],
)
def test_a_name_joined_by_hyphens_that_no_hit_has_as_a_whole_is_warned_of(option, is_there):
    text = "`serve-expired-ttl` limits how long expired data is served, `stale-max` how much. The cache has a ttl."
    note = unanswered_note(f"What is the default of the option {option} of the cache?", [hit("a", text, "Serving")])
    assert note == ("" if is_there else f"No hit mentions '{option}'.")


def test_an_item_inside_another_is_quoted_with_it():
    text = (
        "* The first failure is answered after two seconds by the daemon that waits.\n* For IPv6 it blocks the entire "
        "/48 block, which may not be wanted.\n  * `PENALTY_MASK` in the sources sets this.\n\n# Load\n\nOther clients "
        "go on as before, whatever happened to the one that failed."
    )
    quote, *_ = extract_sentences("What does PENALTY_MASK affect?", [hit("a", text, "Failures")])
    assert "For IPv6 it blocks the entire /48 block" in quote.text
    assert quote.text.endswith("PENALTY_MASK in the sources sets this.")
    assert "daemon" not in quote.text


def test_the_row_that_begins_with_a_word_of_a_quote_comes_before_one_with_a_name_elsewhere():
    mail = "The cause of the outage on 12 March was plover, whose disk was full. Elin Voss has restarted the model."
    machines = "| Host | Purpose | Owner |\n| --- | --- | --- |\n| gannet | tide | Elin Voss |\n| plover | names | Ravi Menon |"
    others = [hit(f"o{n}", f"Ticket {n} is about plover and its memory.", f"Ticket {n}") for n in range(5)]
    question = "Who is the owner of what caused the outage on 12 March?"
    quotes = extract_sentences(question, [hit("mail", mail, "Outage"), hit("machines", machines, "Machines"), *others])
    rows = [quote.text for quote in quotes if quote.hit == 2]
    assert rows[0].startswith("plover: Purpose names; Owner Ravi Menon")
    assert "gannet" not in rows[0]


def test_doubted_quotes_take_half_the_tokens():
    barrier = (
        "If the barrier number {n} does not open and lorries are waiting in row {n}, first pull the red lever {n}."
    )
    hits = [hit(f"b{n}", "\n\n".join(barrier.format(n=9 * n + m) for m in range(9)), f"Gate {n}") for n in range(9)]
    doubted = "The lorries are stuck because the bar will not go up. What is the first thing to do?"
    for question, most in ((doubted, 140), ("Which lever is first pulled if lorries are waiting?", 280)):
        quotes = extract_sentences(question, hits)
        assert most / 2 < count_tokens("\n".join(quote.quoted for quote in quotes)) <= most


def test_the_name_of_a_program_that_titles_its_pages_is_no_setting():
    text = (
        "## Lock path (`--lock-path`)\n\nThe lock path is where pgMill keeps its locks.\n\n## Timeout (`--mill-timeout`)"
        "\n\nThe mill-timeout option must be greater than the db-timeout option."
    )
    question = "Which option of pgMill must mill-timeout be greater than?"
    quotes = extract_sentences(question, [part("options", text, "pgMill Reference > Options")])
    assert "The mill-timeout option must be greater than the db-timeout option." in [quote.text for quote in quotes]
