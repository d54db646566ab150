"""Short titles, topics of the map, and kinds of names."""

import re
from itertools import combinations

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.explore import browse
from sire_core.explore.corpus_map import CorpusMap, topic_labels
from sire_core.explore.name_kinds import MARKS, NAME_KINDS, kind_of_name
from sire_core.explore.picture import Link, Node, Picture, branches
from sire_core.explore.result_page import page_style, region
from sire_core.explore.short_titles import (
    compact_title,
    compact_titles,
    shared_affixes,
    short_title,
    without_affixes,
    without_repeats,
)
from sire_core.types import Entity, ExtractionRecord, Fact
from support.indexes import indexed

SITE = " \u2014 Borg - Archiver 1.2 documentation"


def test_what_half_of_the_titles_share_is_found_longest_first():
    titles = [f"{name}{SITE}" for name in ("prune", "create", "list", "delete")]
    assert shared_affixes([*titles, "Minutes", "Plan - draft"]) == (SITE, " - Archiver 1.2 documentation")
    assert shared_affixes([*titles, *map(str, range(5))]) == ()
    assert shared_affixes(titles[:3]) == ()
    assert shared_affixes([f"Wiki | {name}" for name in "abcd"]) == ("Wiki | ",)


def test_titles_lose_it_with_and_without_headings_and_never_all():
    assert without_affixes(f"prune{SITE}", [SITE]) == "prune"
    assert without_affixes(f"prune{SITE} > Notes > More", [SITE]) == "prune > Notes > More"
    assert without_affixes("Wiki | a", ["Wiki | "]) == "a"
    assert without_affixes(SITE, [SITE]) == SITE
    assert without_affixes("", [SITE]) == ""


def test_hits_and_pictures_have_short_titles_where_a_folder_is_a_site():
    names = ("prune", "create", "list", "delete")
    web = [Document(f"web/{name}.html", f"The command {name} of borg.", f"{name}{SITE}") for name in names]
    index = indexed([*web, *(Document(f"notes/{n}", f"Note {n}.", f"Note {n}") for n in range(9))], recipe="flat")
    result = index.show("command prune", k=1)
    assert result.hits[0].title == "prune"
    assert result.picture.nodes[1].label == "prune"
    assert index.search("command prune", k=1)[0].unit.title == f"prune{SITE}"


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("git-am(1) > git-am(1) Manual Page > NAME", "git-am(1) > NAME"),
        ("Git > Git hooks > pre-commit", "Git hooks > pre-commit"),
        ("Caching Guide > Caching guide: > Disks", "Caching Guide > Disks"),
        ("Caching Guide > Disks > Caching Guide", "Caching Guide > Disks"),
        ("ntpd - Network Time Protocol daemon > ntpd > Options", "ntpd - Network Time Protocol daemon > Options"),
        ("Git > GitHub", "Git > GitHub"),
        ("Node.js > Node", "Node.js > Node"),
        ("Logging in Tomcat > Logging", "Logging in Tomcat > Logging"),
        ("Learning: 4.2 I'm hearing voices > 4.2 I\u2019m hearing voices", "Learning: 4.2 I'm hearing voices"),
        ("", ""),
    ],
)
def test_headings_that_repeat_the_title_are_said_once(title, shown):
    assert without_repeats(title, {"Manual Page"}) == shown


@pytest.fixture(scope="module")
def manual():
    """Manual pages as HTML has them: a title, and a first heading that adds the same words to each."""
    commands = ("add", "am", "bisect", "blame", "branch")
    index = Index(recipe="flat")
    index.build(
        Document(f"man/{name}", f"# git-{name}(1) Manual Page\n\n## NAME\n\ngit-{name} works.", f"git-{name}(1)")
        for name in commands
    )
    return index


def test_what_the_first_headings_of_a_manual_share_is_shown_nowhere(manual):
    snapshot = manual.snapshot()
    assert short_title(snapshot, "git-am(1) > git-am(1) Manual Page > OPTIONS") == "git-am(1) > OPTIONS"
    assert short_title(snapshot, "git-am(1) > git-am(1) in short") == "git-am(1) in short"
    assert browse.documents(snapshot).rows[1].label == "git-am(1)"
    [hit] = manual.show("git-am works", k=1).hits
    assert (hit.title, hit.text) == ("git-am(1) > NAME", "git-am works.")


def test_a_title_in_little_room_loses_its_book_and_the_headings_in_the_middle():
    book = "Reference of the Server (10.0) - "
    index = Index(recipe="flat")
    pages = [
        Document(f"ref/{name}", f"Of {name}.", f"{book}The {name} Connector") for name in ("AJP", "UDP", "SSH", "FTP")
    ]
    index.build([*pages, *(Document(f"ref/{n}", f"Note {n}.", f"Note {n}") for n in range(9))])
    snapshot = index.snapshot()
    assert short_title(snapshot, pages[0].title) == pages[0].title
    assert compact_title(snapshot, pages[0].title, 99) == pages[0].title
    assert compact_title(snapshot, pages[0].title, 30) == "The AJP Connector"
    assert compact_title(snapshot, f"{pages[0].title} > Attributes > Limits", 30) == "The AJP Connector > Limits"
    long = "Submitting Patches to the Project > Describe your changes well in the message"
    assert compact_title(snapshot, long, 40) == "Submitting Patches ... > Describe your ..."
    assert compact_title(snapshot, "logresolve - Resolve addresses to host names", 30) == "logresolve"


def test_titles_that_become_equal_in_little_room_keep_the_words_that_differ():
    titles = [f"Virtual machine lock manager, {name} plugin > Driver configuration" for name in ("one", "other")]
    index = Index(recipe="flat")
    index.build(Document(f"{n}", f"Leases of disks, kind {n}.", title) for n, title in enumerate(titles))
    wanted = ["... one plugin > Driver configuration", "... other plugin > Driver configuration"]
    assert compact_titles(index.snapshot(), [*titles, titles[0], "Disks"], 40) == [*wanted, wanted[0], "Disks"]
    picture = index.show("leases of disks", k=2).picture
    assert {node.label for node in picture.nodes if node.rank} == set(wanted)


def test_texts_of_one_title_and_one_beginning_are_told_apart():
    index = Index(recipe="flat")
    index.build(Document(str(n), f"{'The lamp burns all night. ' * 9}{n}", "Lamp") for n in range(3))
    snapshot = index.snapshot()
    labels = [row.label for row in browse.units(snapshot, "chunk").rows]
    assert len(set(labels)) == 3
    assert labels[1] == f"{labels[0]} (2)"


def test_labels_of_topics_have_no_numbers_of_sections_and_no_words_of_declarations():
    index = Index(recipe="flat")
    index.build(
        Document(f"{n}", "of the lamp", f"{'A' if n % 2 else n}.{n} {chr(97 + n)}x{chr(97 + n)}") for n in range(24)
    )
    labels = ", ".join(CorpusMap.of(index.snapshot()).labels)
    assert not re.search(r"\d", labels), labels
    texts = [
        f"Provides typedef enum {('Karn', 'Vale')[n // 20]} for {n}." if n < 20 else f"Of Vale {n}." for n in range(40)
    ]
    assert topic_labels(texts.__getitem__, np.repeat([0, 1], 20), prose=True) == ["Karn", "Vale"]


def test_labels_of_topics_have_no_function_words_of_the_language_of_their_documents():
    said = ("Der Leuchtturm und die Insel", "Die Mühle und der Bach")
    index = Index(recipe="flat")
    index.build(
        Document(
            f"{n}", f"{said[n % 2]} sind auf dem Bild, das er im Jahr {n} für sie gemalt hat.", f"{said[n % 2]} {n}"
        )
        for n in range(40)
    )
    labels = ", ".join(CorpusMap.of(index.snapshot()).labels)
    assert "Leuchtturm" in labels
    assert not {"der", "die", "und"} & set(re.findall(r"\w+", labels.lower())), labels


def test_topics_of_the_map_are_called_by_phrases_of_their_titles():
    subjects = ("Zone Transfers", "Rye Bread")
    titles = [f"Chapter {number}. {subject}" for subject in subjects for number in range(20)]
    assert topic_labels(titles.__getitem__, np.repeat([0, 1], 20)) == list(subjects)
    verbs = [f"{name}-{verb}.md" for verb in ("create", "delete") for name in ("pod", "node", "job", "role", "secret")]
    assert topic_labels(verbs.__getitem__, np.repeat([0, 1], 5)) == ["", ""]
    assert topic_labels([f"mod_{name}_file" for name in "abcdefgh"].__getitem__, np.repeat([0, 1], 4)) == ["", ""]


def test_labels_are_true_of_most_documents_of_a_topic_and_of_few_others():
    some = [*(f"Arabic {n}" for n in range(4)), *"Aztec Inuit Korean Maya Navajo Ojibwe Sami Tonga Tupi Zulu".split()]
    assert topic_labels((some + [f"Norse {n}" for n in range(14)]).__getitem__, np.repeat([0, 1], 14)) == ["", "Norse"]
    shared = "# External links\n\nThe Polynesian Press grants it to all.\n"
    texts = [f"{shared}Of {('Karn', 'Vale')[n // 20]}, unless {n} differs." for n in range(40)]
    assert topic_labels(texts.__getitem__, np.repeat([0, 1], 20), prose=True) == ["Karn", "Vale"]


def test_topics_are_the_same_after_documents_went_and_came_back(tmp_path):
    def topics(index):
        snapshot = index.snapshot()
        made = CorpusMap.of(snapshot)
        ids = [made.title(snapshot, point)[0] for point in range(len(made.documents))]
        return made.labels, dict(zip(ids, made.topics.tolist(), strict=True))

    documents = list(demo_documents())
    index = indexed(documents, tmp_path, recipe="flat")
    before = topics(index)
    index.delete([documents[3].id, documents[20].id])
    index.add([documents[20], documents[3]])
    assert topics(index) == before
    assert len(set(before[1].values())) > 1


def test_topics_without_words_in_their_titles_are_called_by_names_of_their_texts():
    names = ("Frank Churchill", "Fanny Price")
    texts = [f"It was said of {names[n // 20]} that evening, number {n}." for n in range(40)]
    assert topic_labels(texts.__getitem__, np.repeat([0, 1], 20), prose=True) == list(names)
    index = indexed((Document(f"{n}", text, f"{n:03}") for n, text in enumerate(texts)), recipe="flat")
    labels = CorpusMap.of(index.snapshot()).labels
    assert all(labels)
    assert any(name in label for name in names for label in labels)


def test_every_colour_of_the_map_has_a_name():
    index = Index(recipe="flat")
    rows = [("top.md", ""), ("last.md", ""), ("guide/a.md", "yes"), ("guide/b.md", "yes")]
    index.build(Document(name, f"The lamp of {name}.", "", {"state": state}) for name, state in rows)
    colours = CorpusMap.of(index.snapshot()).colours
    assert colours["folder"][0] == ("(top folder)", "guide")
    assert colours["state"][0] == ("(empty)", "yes")


def test_the_map_is_made_once_and_again_where_the_index_changed_or_its_file_is_damaged(tmp_path):
    def same(one, other):
        arrays = ("documents", "passages", "points", "topics")
        return one.labels == other.labels and all(np.array_equal(getattr(one, a), getattr(other, a)) for a in arrays)

    index = indexed(demo_documents(), tmp_path, recipe="flat")
    made = CorpusMap.of(Index(tmp_path).snapshot())
    [file] = tmp_path.rglob("map.npz")
    written = file.stat()
    again = CorpusMap.of(Index(tmp_path).snapshot())
    assert same(made, again)
    assert again.data() == made.data()
    assert file.stat() == written
    file.write_bytes(file.read_bytes()[:-9])
    assert same(made, CorpusMap.of(Index(tmp_path).snapshot()))
    assert file.stat().st_size == written.st_size
    part = CorpusMap.of(Index(tmp_path, allow="kind=person").snapshot())
    assert len(part.documents) < len(made.documents) == 41
    assert same(made, CorpusMap.of(Index(tmp_path).snapshot())), "each filter has a map of its own"
    index.add([Document("new", "The lamp of Karn.", "Lamp")])
    assert len(CorpusMap.of(Index(tmp_path).snapshot()).documents) == 42


FORMS = {
    "code": "--max-wait -v queue.claim config.yaml claimTimeout max_retry_count /etc/hosts a/b/c Foo::bar run() "
    "SIRE_DATA @decorator <pod-name> .env open(path,mode)",
    "number": "1893 2024-01-02 1990s v1.2.3 50% $5 10:30 3rd",
    "name": "iPhone eBay macOS GitHub U.S. e.g. HTTP/1.1 and/or Ph.D. Yahoo! C++ May Ann X-Forwarded-For",
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FORMS.items() for name in names.split()])
def test_the_form_of_a_name_says_what_it_is(kind, name):
    assert kind_of_name(name).kind == kind


@pytest.mark.parametrize(
    ("options", "kind", "known_by"),
    [
        ({"is_title": True}, "title", "it titles a document or section"),
        ({"texts": ["Set `Relay` first.", "A `Relay` waits."]}, "code", "most passages mark it as code"),
        ({"texts": ["A Relay waits.", "Relay.", "`Relay`"], "is_title": True}, "title", "it titles a document or section"),
        ({"types": ["Person", "Person", "Film"], "is_title": True}, "person", "the model that read the passages calls it Person"),
        ({"types": ["Film"]}, "name", "the model that read the passages calls it Film"),
        ({}, "name", ""),
    ],
)  # fmt: skip
def test_a_kind_says_how_it_is_known(options, kind, known_by):
    assert kind_of_name("Relay", **options) == (kind, known_by)


def test_a_long_name_takes_no_time():
    assert kind_of_name("a_" * 50_000).kind == kind_of_name("9, " * 50_000).kind == "name"


class TypedNames:
    """Stands for a model that extracts: it knows two names."""

    fingerprint = "typed-names"
    links_titles = False

    async def extract(self, chunks):
        entities = Entity("e1", "Ole Brandt", "Person"), Entity("e2", "Hen Rocks", "Location")
        for item in chunks:
            named = tuple(entity for entity in entities if entity.name in item.chunk.text)
            facts = (Fact("f1", item.chunk.text, tuple(entity.id for entity in named)),)
            yield [ExtractionRecord(item.chunk.hash, "typed-names", "1", entities=named, facts=facts)]


DOCUMENTS = [Document(name, "Ole Brandt lit the lamp of the Hen Rocks.") for name in "ab"]


@pytest.mark.parametrize(("extractor", "kinds"), [(TypedNames(), {"person", "place"}), (None, {"name"})])
def test_types_are_those_of_a_model_and_rules_have_none(tmp_path, extractor, kinds):
    index = indexed(DOCUMENTS, tmp_path, recipe="sire", extractor=extractor)
    snapshot = Index(tmp_path).snapshot()  # explorers open a folder without its extractor
    rows = browse.entities(snapshot).rows
    assert {"Ole Brandt", "Hen Rocks"} <= {row.label for row in rows}
    assert {row.name_kind for row in rows if row.label in ("Ole Brandt", "Hen Rocks")} == kinds
    shown = index.show("Who lit the lamp of the Hen Rocks?")
    assert {node.name_kind for node in shown.picture.nodes if node.kind == "entity"} <= kinds
    assert "is-place" in shown.html() or extractor is None
    index.close()


SIMULATED = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
"""What colour-blind people see (Machado, Oliveira and Fernandes 2009), on linear red, green and blue."""


def linear(colour):
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light, dark = sorted((linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_and_marks_of_every_kind_can_be_read(scheme):
    colours = [dict(re.findall(r"--(\w+):(#\w+)", block)) for block in re.findall(r"\.sire\{([^}]*)", page_style())][
        scheme
    ]
    ground = {"#fff": "#ffffff"}.get(colours["ground"], colours["ground"])
    for kind in NAME_KINDS:
        assert contrast(colours["ink"], colours[kind]) >= 4.5
        assert contrast(colours[f"{kind}line"], colours[kind]) >= 3
        assert contrast(colours[f"{kind}line"], ground) >= 4.5
    for matrix in (np.eye(3), *map(np.array, SIMULATED.values())):
        seen = [matrix @ linear(colours[f"{kind}line"]) for kind in ("title", "code", "number", "name")]
        assert min(float(np.abs(one - other).sum()) for one, other in combinations(seen, 2)) > 0.15


def test_every_kind_has_a_mark_of_its_own():
    assert len({MARKS[kind] for kind in NAME_KINDS}) == len(NAME_KINDS)


def test_a_narrow_window_lists_every_node_of_a_picture_once():
    nodes = [Node("q", "question", "Question"), Node("e", "entity", "Ole", name_kind="person"), Node("a", "chunk", "A")]
    nodes += [Node("b", "chunk", "B", rank=1), Node("x", "chunk", "X"), Node("y", "chunk", "Y")]
    links = [("q", "b", "shares lamp"), ("q", "e", "mentions"), ("e", "a", "in"), ("a", "b", "<next>")]
    links += [("x", "y", "loose"), ("y", "x", "loose")]
    picture = Picture("Paths", tuple(nodes), tuple(Link(*link) for link in links))
    (first, *loose) = branches(picture)
    way = [first]
    while way[-1].below:
        way += way[-1].below
    assert [branch.node.id for branch in way] == ["q", "e", "a", "b"], "each below the longest way to it"
    assert [link.label for link, _ in first.others] == ["shares lamp"]
    assert [branch.node.id for branch in loose] == ["x", "y"]
    shown = region(picture, "Paths", {"b": "#b"}, "p", moves=True)
    listed = shown[shown.index('<ul class="outline"') :]
    assert listed.count('class="node ') == len(nodes)
    assert '<small>&lt;next&gt;</small><div class="node chunk hit"><div><a href="#b">[1] B</a>' in listed
    assert '<ul class="legend" aria-label="Kinds of names">' in listed
