"""What documents are called in the explorer, and the map of them."""

import re

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.explore import browse
from sire_core.explore.corpus_map import CorpusMap, topic_labels
from sire_core.explore.short_titles import (
    compact_title,
    compact_titles,
    shared_affixes,
    short_title,
    without_affixes,
    without_repeats,
)

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
    index = Index(recipe="flat")
    index.build([*web, *(Document(f"notes/{n}", f"Note {n}.", f"Note {n}") for n in range(9))])
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
    index = Index(tmp_path, recipe="flat")
    index.build(documents)
    before = topics(index)
    index.delete([documents[3].id, documents[20].id])
    index.add([documents[20], documents[3]])
    assert topics(index) == before
    assert len(set(before[1].values())) > 1


def test_topics_without_words_in_their_titles_are_called_by_names_of_their_texts():
    names = ("Frank Churchill", "Fanny Price")
    texts = [f"It was said of {names[n // 20]} that evening, number {n}." for n in range(40)]
    assert topic_labels(texts.__getitem__, np.repeat([0, 1], 20), prose=True) == list(names)
    index = Index(recipe="flat")
    index.build(Document(f"{n}", text, f"{n:03}") for n, text in enumerate(texts))
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

    index = Index(tmp_path, recipe="flat")
    index.build(demo_documents())
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
