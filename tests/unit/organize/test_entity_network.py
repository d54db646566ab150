import pytest

from sire_core.organize.entity_network import read_network
from sire_core.organize.knowledge_graph import MENTIONS
from sire_core.types import Edge, Entity, ExtractionRecord, Fact, Triple, Unit, UnitKind

ENTITIES = ("A", "B", "C", "D")


def passage(name, title="", text=""):
    return Unit(name, UnitKind.CHUNK, text, (name,), title=title)


def mention(where, name, *, title=False):
    metadata = {"names": [name], **({"title": True} if title else {})}
    return Edge(MENTIONS, where, f"id {name}", 1.0, metadata)


def record(*facts, names=ENTITIES, description=""):
    entities = tuple(Entity(name, name, description=description) for name in names)
    return ExtractionRecord("h", "m", "p", entities=entities, facts=facts)


def network(passages, edges, records, **settings):
    return read_network(passages, edges, records, **settings)


def weights(found):
    return {tuple(found.keys[v] for v in pair): weight for pair, weight in found.pairs.items()}


def test_relations_add_their_strengths_and_stand_in_for_standing_together():
    facts = (
        Fact("f1", "A met B and C.", ("A", "B", "C"), triples=(Triple("A", "met", "B", 7.0),)),
        Fact("f2", "B left A.", ("A", "B"), triples=(Triple("B", "left", "A", 2.0),)),
    )
    found = network([passage("p")], [mention("p", name) for name in "ABC"], {"p": record(*facts)})
    assert weights(found) == {("a", "b"): 9.0}
    assert [statement.weight for statement in found.statements] == [7.0, 2.0]


def test_a_statement_without_relation_joins_its_entities_pairwise():
    found = network(
        [passage("p")], [mention("p", n) for n in "ABC"], {"p": record(Fact("f", "A, B, C.", ("A", "B", "C")))}
    )
    assert weights(found) == {("a", "b"): 1.0, ("a", "c"): 1.0, ("b", "c"): 1.0}


def test_an_entity_that_no_statement_joins_is_joined_with_the_title():
    edges = [mention("p", "D", title=True), mention("p", "A"), mention("p", "B"), mention("p", "C")]
    facts = (Fact("f1", "A met B.", ("A", "B")), Fact("f2", "C sank.", ("C",)))
    found = network([passage("p", title="D")], edges, {"p": record(*facts)})
    assert weights(found) == {("a", "b"): 1.0, ("c", "d"): 1.0}


def test_binary_weights_count_every_pair_once():
    facts = tuple(Fact(str(i), "A met B.", ("A", "B"), triples=(Triple("A", "met", "B", 5.0),)) for i in range(3))
    edges = [mention("p", "A"), mention("p", "B")]
    assert weights(network([passage("p")], edges, {"p": record(*facts)}))[("a", "b")] == 15.0
    assert weights(network([passage("p")], edges, {"p": record(*facts)}, edge_weight="binary"))[("a", "b")] == 1.0


def test_names_are_those_of_the_passage_and_literals_and_loops_are_left_out():
    triples = (Triple("A", "is", "tall", 3.0), Triple("A", "met", "A", 3.0), Triple("A", "met", "Z", 3.0))
    facts = (Fact("f", "A met B.", ("A", "B", "Z"), triples=triples),)
    found = network([passage("p")], [mention("p", "A"), mention("p", "B")], {"p": record(*facts)})
    assert weights(found) == {("a", "b"): 1.0}
    assert dict(found.statements[0].names) == {0: "A", 1: "B"}


def test_keys_stay_when_ids_change_and_are_never_shared():
    first = [mention("p", "A"), mention("q", "A")]
    other = [Edge(MENTIONS, "q", "another A", 1.0, {"names": ["A"]})]
    found = network([passage("p"), passage("q")], [*first, *other], {})
    assert len(set(found.keys)) == found.size == 2
    assert found.keys[0] == "a"


def test_entities_that_no_passage_spells_out_and_edges_of_others_are_no_vertices():
    edges = [Edge(MENTIONS, "p", "id", 1.0, {"names": []}), Edge(MENTIONS, "a report", "id", 1.0, {"names": ["A"]})]
    assert network([passage("p")], edges, {}).size == 0


def test_descriptions_come_with_the_passage_that_gives_them():
    edges = [mention("p", "A"), mention("q", "A")]
    records = {"p": record(names=("A",)), "q": record(names=("A",), description="a miller")}
    assert network([passage("p"), passage("q")], edges, records).about == {0: ("a miller", 1)}


@pytest.mark.parametrize("title", ["", "The Long Tide"])
def test_a_statement_carries_its_title_unless_it_names_it(title):
    facts = (Fact("f1", "A met B.", ("A", "B")), Fact("f2", "The Long Tide is by A and B.", ("A", "B")))
    found = network([passage("p", title=title)], [mention("p", "A"), mention("p", "B")], {"p": record(*facts)})
    assert [s.text for s in found.statements] == [
        f"{title}: A met B." if title else "A met B.",
        "The Long Tide is by A and B.",
    ]
