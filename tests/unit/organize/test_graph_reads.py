"""What a change of the corpus reads of a knowledge graph."""

from sire_core import Document, Index
from sire_core.knowledge.names import CLAIMS
from sire_core.storage.rows import StepTables
from sire_core.testing.doubles import HashEmbedder

PAGES = [
    Document(f"p{i}", f"Mill {i} was built in 1931 by Orla Venn. It stands near Tobin Marsh.", title=f"Mill {i}")
    for i in range(30)
]
NEW = [Document("new", "Kiln Lane was paved in 1931 by Orla Venn.", title="Kiln Lane")]
SETTINGS = {"hub_floor": 5, "max_df": 0.0}


def graph(index):
    files = index._reader.files()
    edges = files.store.edges(files.manifest().find(None).owners)
    return [(edge.kind, edge.source, edge.target, edge.metadata) for edge in edges]


def test_rows_of_entities_above_the_limit_and_of_skipped_types_are_not_read(monkeypatch):
    asked = set()
    rows_of_keys = StepTables.rows_of_keys

    def noted(self, name, keys):
        asked.update(keys)
        return rows_of_keys(self, name, keys)

    from sire_core.recipes import sire

    with Index(recipe=sire(**SETTINGS), embedder=HashEmbedder()) as grown:
        grown.build(PAGES)
        monkeypatch.setattr(StepTables, "rows_of_keys", noted)
        grown.add(NEW)
        assert "kiln lane" in asked
        assert not asked & {"orla venn", "1931"}
        grown.update(
            [Document("new", "Orla Venn was a painter.", title="Orla Venn")]
        )  # a title, which the limit spares
        assert "orla venn" in asked
        grown.delete(["new", *(page.id for page in PAGES[5:])])
        with Index(recipe=sire(**SETTINGS), embedder=HashEmbedder()) as fresh:
            fresh.build(PAGES[:5])
            assert graph(grown) == graph(fresh)


def test_what_passages_call_entities_is_read_once(monkeypatch):
    asked = set()
    rows_of_keys = StepTables.rows_of_keys

    def noted(self, name, keys):
        asked.update(keys)
        return rows_of_keys(self, name, keys)

    pages = [
        *PAGES,
        Document("a", "The Marsh Trading Company (MTC) sold mills.", title="Marsh Trading Company"),
        Document("b", "MTC was sold in 1940.", title="MTC"),
    ]
    with Index(recipe="sire", embedder=HashEmbedder()) as grown, Index(recipe="sire", embedder=HashEmbedder()) as fresh:
        grown.build(pages[:-1])
        monkeypatch.setattr(StepTables, "rows_of_keys", noted)
        grown.add(NEW)
        assert CLAIMS in asked, "by the first change behind a build"
        asked.clear()
        grown.add(pages[-1:])  # now both names are names
        grown.add([Document("c", "The Tobin Marsh Office (TMO) keeps a list of mills. TMO was paved.")])
        grown.delete(["a"])
        assert CLAIMS not in asked
        fresh.build(grown.documents())
        assert graph(grown) == graph(fresh)
