"""`sire` on documents as users have them: menus, addresses of links, section paths, many passages of one page."""

from __future__ import annotations

from sire_core import Document, Index
from sire_core.algorithms.links import without_link_targets

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
    with Index(recipe="sire") as index:
        index.build([page(name) for name in CONTENT])
        everywhere = {hit.doc_ids[0]: hit for hit in index.search(question, 4)}
        assert next(iter(everywhere)) == "boiler"
        assert "shares no word" in everywhere["ferry"].path[-1].note
        index.delete(["boiler", "harbour"])
        left = index.search(question, 1)[0]
        assert "forum" in left.path[-1].note


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
        assert index.stats()["chunks"] == 3  # as many as without the addresses
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
