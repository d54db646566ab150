"""`sire` on documents as users have them: menus, addresses of links, section paths, many passages of one page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.recipes import sire
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.question import QuestionWords
from sire_core.search.extracts import extract_sentences
from sire_core.text.words import without_link_targets
from support.command import run
from support.indexes import indexed

MENU = "- Volcano boiler pressure guide\n- Volcano boiler pressure news\n- Volcano boiler pressure forum"
CONTENT = {
    "boiler": "The Volcano was built in Varn Harbour. Its boiler holds a pressure of nine bar when the valve is shut.",
    "harbour": "Varn Harbour has two piers. Ships land at the northern one when the wind comes from the sea.",
    "lamp": "The lamp of the lighthouse burns oil. A keeper fills it every evening before the ferry leaves.",
    "ferry": "The ferry crosses the bay in one hour. Tickets are sold on board, and dogs travel for free.",
}


def page(name: str, menu: str = MENU) -> Document:
    return Document(name, f"# {name.title()} page\n\n{menu}\n\n## Story\n\n{CONTENT[name]}")


def test_a_menu_of_every_page_is_not_searched_and_is_again_when_two_pages_have_it() -> None:
    question = "volcano boiler pressure forum"
    with indexed([page(name) for name in CONTENT], recipe="sire") as index:
        everywhere = {hit.doc_ids[0]: hit for hit in index.search(question, 4)}
        assert next(iter(everywhere)) == "boiler"
        assert "shares no word" in everywhere["ferry"].path[-1].note
        index.delete(["boiler", "harbour"])
        left = index.search(question, 1)[0]
        assert "forum" in left.path[-1].note


def test_a_menu_is_listed_with_its_document_and_searched_where_a_setting_says_so(tmp_path: Path) -> None:
    indexed([page(name) for name in CONTENT], tmp_path / "index", recipe="sire").close()
    shown = run("documents", tmp_path / "index", "ferry", "--json")
    assert json.loads(shown.stdout)["not_searched"] == [*MENU.split("\n"), "## Story"]
    said = run("documents", tmp_path / "index", "ferry")
    lines = [*MENU.split("\n"), "## Story"]
    assert f"Not searched, because other documents repeat it ({len(lines)} lines" in said.stderr
    assert all(line in said.stderr for line in lines[:3])
    assert lines[3] not in said.stderr
    assert f"and {len(lines) - 3} more" in said.stderr
    with indexed([page(name) for name in CONTENT], recipe=sire(boilerplate=True)) as whole:
        hits = {hit.doc_ids[0]: hit for hit in whole.search("volcano boiler pressure forum", 4)}
    assert "forum" in hits["ferry"].path[-1].note


def test_facts_that_several_pages_state_alike_are_searched_and_their_menu_is_not() -> None:
    menu = "\n".join(f"- Volcano {word} pages" for word in ("boiler", "pressure", "news", "forum", "museum"))

    def module(n: int) -> Document:
        author = "Orla Venn" if n < 3 else f"Writer {n}"
        table = f"| type | default |\n| --- | --- |\n| {'binary' if n < 3 else f'number {n}'} | off |"
        text = f"Module {n} reads log {n}.\n\n| Author: | {author} |\n\nIt has one option.\n\n## speed{n}\n\n{table}"
        return Document(f"m{n}", f"# Module {n}\n\n{menu if n % 2 else ''}\n\n{text}\n\nIt is set in file {n}.")

    with indexed([module(n) for n in range(12)], recipe="sire") as index:
        for question, words in (("Which author is Orla Venn?", "author, orla, venn"), ("binary", "binary")):
            hits = index.search(question, 3)
            assert {hit.doc_ids[0] for hit in hits} == {"m0", "m1", "m2"}
            assert all(words in hit.path[-1].note for hit in hits)
        strangers = index.search("volcano museum forum", 12)
        assert all("shares no word" in hit.path[-1].note and abs(hit.score) < 1000 for hit in strangers)


def test_a_title_that_other_pages_repeat_is_not_called_unsearched(tmp_path: Path) -> None:
    pages = [
        Document(f"d{n}", f"# borg compact\n\n## Use {n}\n\nIt frees {n} segments.", "borg compact") for n in range(4)
    ]
    with Index(tmp_path / "index", recipe="sire") as index:
        index.build([*pages, Document("menu", "# Commands\n\n## borg compact\n\nA list.", "Commands")])
        assert "d1" in {hit.doc_ids[0] for hit in index.search("borg compact", 5)}
    assert json.loads(run("documents", tmp_path / "index", "d1", "--json").stdout)["not_searched"] == []


def test_a_sentence_that_many_manuals_share_is_found_and_one_that_all_pages_end_with_is_not() -> None:
    shared = "The volume stays readable while another machine holds the lock of the group."
    footer = "All volcano pages of this site are written by volunteers of the harbour museum."

    def manual(n: int) -> Document:
        return Document(f"d{n}", f"Command {n} has option {n}.\n\n{shared if n < 12 else 'Nothing else.'}\n\n{footer}")

    with indexed([manual(n) for n in range(24)], recipe="sire") as index:
        found = index.search("Which volume stays readable while another machine holds the lock?", 3)
        assert all(shared in hit.unit.text for hit in found)
        notes = [hit.path[-1].note for hit in index.search("volcano volunteers museum", 24)]
        assert all("shares no word" in note for note in notes)


def test_the_path_of_a_file_speaks_for_its_passages() -> None:
    filler = "Dust lies on the shelf of the hall. " * 60
    text = (
        f"## Start\n\nThe pump starts with the green button.\n\n{filler}\n\n## Stop\n\nIt stops by itself.\n\n{filler}"
    )
    folders = ("brass", "copper", "silver")
    documents = [Document(name, text, metadata={"source": f"plants/{name}/manual.md"}) for name in folders]
    with Index(recipe="sire") as index:
        index.build([*documents, Document("metals", f"Brass, copper and silver are metals. {filler}")])
        for name in folders:
            assert index.search(f"How does the pump of {name} start?", 1)[0].doc_ids == (name,)


@pytest.mark.parametrize(
    ("question", "option"),
    [
        ("what does worker prefetch multiplier do", "worker_prefetch_multiplier"),
        ("share history", "SHARE_HISTORY"),
        ("worker_prefetch_multiplier", "worker_prefetch_multiplier"),
    ],
)
def test_an_identifier_is_found_by_its_words(question: str, option: str) -> None:
    options = ["worker_prefetch_multiplier", "SHARE_HISTORY", "GitHub", "task_2"]
    pages = [Document(name, f"## {name}\n\nSet by the administrator; see the other pages.") for name in options]
    others = [
        Document(f"{n}", f"# Guide {n}\n\nPage {n} is about a worker. Nothing else is said here.") for n in range(9)
    ]
    with indexed([*pages, *others], recipe="sire") as index:
        assert index.search(question, 1)[0].doc_ids == (option,)
        assert "shares no word" in index.search("hub", 1)[0].path[-1].note, "a name of one word stays one"


def test_a_step_lifts_the_passage_that_it_leads_to_and_the_path_says_so() -> None:
    filler = "Dust lies on the shelf of the hall. " * 60
    manual = f"## Slow answers\n\nWhere a mill answers slowly, raise `--gear-idle-seconds`.\n\n{filler}"
    flags = f"## Others\n\n{filler}\n\n## Times\n\n`--gear-idle-seconds` is 45 by default."
    others = [Document(f"note {n}", f"Wheel {n} has a default.\n\n{filler} {filler}") for n in range(6)]
    with indexed([Document("manual", manual), Document("flags", flags), *others], recipe="sire") as index:
        hits = index.search("A mill answers slowly: what is the default of the option that helps?", 3)
    assert hits[0].doc_ids == ("manual",)
    [flag] = [hit for hit in hits if hit.doc_ids == ("flags",)]
    assert any("gear-idle-seconds" in step.note for step in flag.path[:-1])


@pytest.mark.parametrize("name", ["ignore_bounces_after", "--keep-days", "mailer.retry.delay", "purge_queue()"])
def test_an_identifier_of_a_mail_leads_to_the_passage_that_describes_it(name: str) -> None:
    filler = [
        f"## {topic.title()}\n\n"
        + " ".join(f"The {topic} of list {n} is kept where the {topic} is." for n in range(25))
        for topic in "archive digest banner footer roster topic charset template header alias".split()
    ]
    about = f"## Various\n\nRecipients stay listed. `{name}`: after so many attempts they are removed. Default: 20."
    manual = Document("manual", "\n\n".join(["# Manual", *filler[:6], about, *filler[6:]]))
    mail = Document(
        "mail", f"From: Ann\n\nThe parish newsletter was stuck for a week. We changed `{name}`, and it went out."
    )
    with indexed([manual, mail], recipe="sire") as index:
        first, second = index.search("The parish newsletter was stuck: what does the setting that was changed do?", 2)
    assert first.doc_ids == ("mail",)
    assert about.partition(". ")[2] in second.unit.text
    assert second.path[0].step == "entity"


@pytest.mark.parametrize("name", ["PlantSight", "A-117"])
def test_what_a_note_beside_a_manual_names_leads_to_the_sheet_that_says_whose_it_is(name: str) -> None:
    topics = "archive digest banner footer roster topic charset template header alias".split()
    sections = [
        f"## {topic.title()}\n\n" + f"A person is told of every full {topic} of the disk. " * 60 for topic in topics
    ]
    note = Document("note", f"# Full disk of the recorder\n\nStop the recorder. Then tell whoever {name} belongs to.")
    rows = "".join(
        f"| {product} | {owner} |\n" for product, owner in (("Kestrel", "Ilse"), (name, "Piet"), ("Lark", "Ann"))
    )
    sheet = Document("sheet", f"| Product | Keeper |\n| --- | --- |\n{rows}")
    with Index(recipe="sire") as index:
        index.build([Document("manual", "\n\n".join(["# Manual", *sections])), note, sheet])
        hits = index.search("Who is the person that must be told of a full disk of the recorder?", 2)
    assert [one.doc_ids[0] for one in hits] == ["note", "sheet"]
    assert hits[1].score > 0.9 * hits[0].score


def test_a_sentence_of_a_passage_stays_searched_where_two_documents_have_it() -> None:
    with Index(recipe="sire") as index:
        index.build([page("boiler", ""), Document("copy", page("boiler", "").text + " More."), page("lamp", "")])
        found = [hit.doc_ids[0] for hit in index.search("Which pressure does the boiler hold?", 2)]
    assert set(found) == {"boiler", "copy"}


def test_addresses_of_links_are_no_words_and_take_no_room() -> None:
    address = "https://example.org/brass/lantern/polish/" + "very/long/path/" * 12
    links = " ".join(f"See [note {n}]({address}{n}) on the pier." for n in range(60))
    with Index(recipe="sire") as index:
        index.build([Document("links", links), Document("other", "A brass lantern needs polish twice a year.")])
        assert index.search("Which polish does a brass lantern need?", 1)[0].doc_ids == ("other",)
        assert index.stats()["passages"] == 3  # as many as without the addresses
    assert without_link_targets('[a](b) ![c](d_(e) "f") [[g]](h) (i) [j] (k)') == "[a] ![c] [[g]] (i) [j] (k)"


def test_a_section_path_names_nothing() -> None:
    chapters = [
        Document(
            f"guide#{n}",
            f"{text} This chapter belongs to the guide.",
            metadata={"Header 1": "Beacon", "Header 2": "Options", "source": "guide.md"},
        )
        for n, text in enumerate(CONTENT.values())
    ]
    with Index(recipe="sire", chunker=None) as index:
        index.build([*chapters, Document("note", "Beacon is started with the option --fast.", title="Starting")])
        hits = index.search("How is Beacon started fast?", 5)
        assert hits[0].doc_ids == ("note",)
        assert not [step.note for hit in hits for step in hit.path if "Options" in step.note and "names" in step.note]


def test_one_page_does_not_fill_the_context() -> None:
    long = "\n\n".join(
        f"## Part {n}\n\nThe pump and the filter of hall {n} are old. {'Dust lies there. ' * 80}" for n in range(8)
    )
    with Index(recipe="sire") as index:
        index.build(
            [Document("halls", long), Document("shop", f"A new filter costs nine crowns. {'Rain falls. ' * 60}")]
        )
        found = [hit.doc_ids[0] for hit in index.search("What does a new filter for the old pump cost?", 3)]
    assert "shop" in found


def test_copies_of_a_document_hide_nothing_and_rank_behind_the_first() -> None:
    text = "## Options\n\n-t  Extract recipients from headers.\n-q  Print the mail queue.\n\n" + " ".join(
        CONTENT.values()
    )
    names = ("sendmail", "mailq", "newaliases")
    with Index(recipe="sire") as index:
        index.build([*(Document(name, text, title=name) for name in names), *(page(name) for name in CONTENT)])
        first, *others = (hit for hit in index.search("extract recipients from headers", 7) if hit.doc_ids[0] in names)
    assert "extract, recipients, headers" in first.path[-1].note
    assert len(others) == 2
    assert all(first.score - hit.score > 0.5 for hit in others)


def test_a_line_of_code_that_several_pages_show_is_searched() -> None:
    line = "smtp_tls_security_level = encrypt"
    shown = [Document(name, f"# {name.title()} page\n\n{CONTENT[name]}\n\n```\n{line}\n```") for name in CONTENT]
    with indexed(shown, recipe="sire") as index:
        note = index.search("smtp_tls_security_level", 1)[0].path[-1].note
        assert "smtp_tls_security_level" in note or "shares the words" in note
        assert "shares no word" not in note


BREW = (
    "Roast the barley",
    "Crush the roasted malt",
    "Boil the crushed malt",
    "Cool the boiled wort",
    "Bottle the beer",
)


def test_of_a_table_that_names_many_the_row_is_told_that_is_asked_for() -> None:
    people = ("Oda Brandvik", "Teo Marchetti", "Lech Wojda", "Fenella Crake")
    areas = ("Log collectors", "Failover", "Certificates", "Booking site")
    rows = "\n".join(f"| {area} | {person} |" for area, person in zip(areas, people, strict=True))
    phones = "\n".join(f"| {person} | {4141 + number} |" for number, person in enumerate(people))
    documents = [
        Document("areas", f"# Areas\n\n| Area | Responsible |\n| --- | --- |\n{rows}"),
        Document("phones", f"# Phones\n\n| Name | Extension |\n| --- | --- |\n{phones}"),
        *(Document(f"note {n}", f"# Note {n}\n\nOda Brandvik ordered {n} chairs for room {n}.") for n in range(4)),
        *(Document(f"page {n}", f"# Page {n}\n\nModule {n} reads its messages from queue {n}.") for n in range(40)),
    ]
    with indexed(documents, recipe="sire") as index:
        question = "What is the extension of the person who looks after the log collectors?"
        hits = index.search(question, 3)
        [step] = [step for hit in hits if hit.doc_ids == ("phones",) for step in hit.path if step.step == "entity"]
        assert step.note == "'Areas' names Oda Brandvik: Log collectors: Oda Brandvik"
        assert "4141" in " ".join(quote.text for quote in extract_sentences(question, hits))


def test_a_table_of_contents_ranks_behind_what_it_lists_and_leads_nowhere() -> None:
    """Its entries have all words of the question, and name the pages."""
    pages = [
        Document(f"s{n}", f"# {head}\n\nStep {n} takes {n} hours at the mill.", head) for n, head in enumerate(BREW)
    ]
    listed = "\n".join(f"- {head}" for head in BREW)
    guide = Document("guide", f"# Brewing\n\n{listed}\n\n## Safety\n\nWear gloves near the copper.", "Brewing")
    question = "How many hours does it take to crush the roasted malt and to boil the crushed malt?"
    with indexed([guide, *pages, *map(written, pages)], recipe="sire") as index:
        hits = index.search(question, 20)
    ranks = [hit.doc_ids[0] for hit in hits if hit.doc_ids != ("guide",) or "Roast" in hit.unit.text]
    assert ranks.index("guide") > max(ranks.index("s1"), ranks.index("s2"))
    contents = next(hit.unit.id for hit in hits if hit.doc_ids == ("guide",) and "Roast" in hit.unit.text)
    assert not any(contents in step.ids for hit in hits for step in hit.path if step.step == "entity")


def test_an_overview_that_lists_pages_leads_to_none_of_them() -> None:
    pages = [Document(f"s{n}", f"# {head}\n\nIt takes {n} hours at the mill.", head) for n, head in enumerate(BREW)]
    listed = "\n".join(f"- {head}" for head in BREW)
    prose = (
        "The brewery by the sluice works at night, and its steps are told one by one, from the barley to the cellar."
    )
    overview = Document("overview", f"# Brewing\n\n{prose} {prose.replace('sluice', 'bridge')}\n\n{listed}", "Brewing")
    with indexed([overview, *pages, *map(written, pages)], recipe="sire") as index:
        first, *others = index.search("Which steps are told of the brewery by the sluice?", 9)
    assert first.doc_ids == ("overview",)
    assert not any(first.unit.id in step.ids for hit in others for step in hit.path if step.step == "entity")


DUST = "Dust lies on the shelf of the hall. " * 60
WHEELS = [Document(f"w{n}", f"# Wheel {n}\n\n{DUST}\n\n## Use {n}\n\nWheel {n} turns.") for n in range(9)]


def test_pages_with_one_outline_are_not_linked_by_its_headings() -> None:
    skies = {"Xhosa": "The Digging Stars tell them when to plant.", "Zulu": "They plant when the Seven Sisters rise."}
    pages = [Document(name, f"# {name}\n\n{DUST}\n\n## Starlore\n\n{text} {DUST}") for name, text in skies.items()]
    with indexed([*pages, *WHEELS], recipe="sire") as index:
        hits = index.search("Which stars do the Xhosa plant by?", 4)
    assert sorted(hit.doc_ids[0] for hit in hits) == ["Xhosa", "Xhosa", "Xhosa", "Zulu"]
    assert not [step for hit in hits for step in hit.path if "Starlore" in step.note]


def test_a_page_that_another_names_comes_behind_it() -> None:
    gate = Document("gate", f"# Mill gate\n\n{DUST}\n\n## Orders\n\nThe gate of the mill is shut by the Varn Guild.")
    guild = Document("guild", f"# Varn Guild\n\nBrewers and a keeper founded the society.\n\n## Links\n\n{DUST}")
    with indexed([gate, guild, *WHEELS], recipe="sire") as index:
        hits = index.search("Which society of brewers shuts the gate of the mill, and who founded it?", 2)
    assert [hit.doc_ids[0] for hit in hits] == ["gate", "guild"]


def written(page: Document) -> Document:
    """A longer document that mentions a page in its text, so that the page is no entry of it."""
    return Document(f"log {page.id}", f"# Log {page.id}\n\n## Day\n\nWe did: {page.title}.\n\n## Night\n\nWe slept.")


APART = "A row has a number. A number stands for a part. Every part has a page. "
TALE = ("It was frightened.", "It hid under furniture.", "Animals do.")


def meanings(question: str, *texts: str) -> list[float]:
    """Nearness of texts to a question in meaning, in their order."""
    with Index(recipe="flat", chunker="sentences") as index:
        index.build([Document(f"text {number}", text) for number, text in enumerate(texts)])
        evidence = EvidenceIndex.of(index.snapshot().view)
        return QuestionWords(question, evidence).meaning(np.arange(len(texts))).tolist()


def test_sentences_that_mean_the_question_count_whatever_stands_around_them() -> None:
    together, spread = APART * 5 + " ".join(TALE), "".join(f"{APART}{sentence} " for sentence in TALE)
    near, far, other = meanings("Where does a scared cat go?", together, spread, APART * 6)
    assert near > far + 0.05
    assert far > other


def test_what_a_title_says_counts_for_every_sentence_below_it() -> None:
    text = f"# Cats\n\n{TALE[0]}"
    titled, bare = meanings("Why do kittens cry?", text, text.replace("Cats", "Part 9"))
    assert titled > bare


def test_sentences_of_other_languages_and_without_words_mean_nothing() -> None:
    german = "Die Katze versteckt sich unter dem Tisch, weil sie Angst vor dem großen Hund hat."
    assert meanings("Where does a scared cat go?", *[f"The cat sat. {n}" for n in range(3)], german, "?!")[3:] == [0, 0]
    assert meanings("Where does a scared cat go?", german, f"{german} Sie kommt erst am Abend.") == [0, 0]


def test_meanings_are_those_of_a_new_index_after_changes() -> None:
    documents = [Document(name, f"# {name}\n\n{text}") for name, text in CONTENT.items()]
    with Index(recipe="sire") as changed, Index(recipe="sire") as built:
        changed.build(documents[:2])
        changed.search("harbour", 1)
        changed.add(documents[2:])
        built.build(documents)
        rows = [EvidenceIndex.of(index.snapshot().view) for index in (changed, built)]
    by_passage = [[row.meanings[row.meant.of(n)].tolist() for n in np.argsort(row.chunks)] for row in rows]
    assert sorted(by_passage[0]) == sorted(by_passage[1])
    assert any(map(any, by_passage[0][0]))
