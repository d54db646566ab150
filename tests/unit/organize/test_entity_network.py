from sire_core.recipes.smart.network import NetworkTable, read_network
from sire_core.recipes.smart.statements import EntityMention, PassageTexts, mentioned_rows, read_passage, stated_rows
from sire_core.types import Entity, ExtractionRecord, Fact, Triple, Unit, UnitKind

ENTITIES = ("A", "B", "C", "D")


def passage(name, title="", text=""):
    return Unit(name, UnitKind.CHUNK, text, (name,), title=title)


def mention(where, name, *, title=False):
    return where, EntityMention(name, name, f"id {name}", title)


def record(*facts, names=ENTITIES, description=""):
    entities = tuple(Entity(name, name, description=description) for name in names)
    return ExtractionRecord("h", "m", "p", entities=entities, facts=facts)


def network(passages, mentions, records, unnamed=(), **settings):
    mentions = {unit.id: sorted(n for where, n in mentions if where == unit.id) for unit in passages}
    said = {unit.id: read_passage(records.get(unit.id), mentions[unit.id], unit.title) for unit in passages}
    rows = {unit.id: mentioned_rows(mentions[unit.id], unnamed) for unit in passages}
    also = {unit.id: stated_rows(said[unit.id], mentions[unit.id], unit) for unit in passages}
    texts = [PassageTexts.of(mentions[unit.id], said[unit.id]) for unit in passages]
    return read_network(
        NetworkTable().updated(passages, rows, also),
        [unit.chunk_ids for unit in passages],
        lambda numbers: {number: PassageTexts.from_note(texts[number].to_note()) for number in numbers},
        **settings,
    )


def weights(found):
    names = [name.decode().removeprefix("id ").lower() for name in found.ids.tolist()]
    rows = zip(found.graph.edges.tolist(), found.graph.weights.tolist(), strict=True)
    return {tuple(sorted(names[v] for v in pair)): weight for pair, weight in rows}


def test_relations_add_their_strengths_and_stand_in_for_standing_together():
    facts = (
        Fact("f1", "A met B and C.", ("A", "B", "C"), triples=(Triple("A", "met", "B", 7.0),)),
        Fact("f2", "B left A.", ("A", "B"), triples=(Triple("B", "left", "A", 2.0),)),
    )
    found = network([passage("p")], [mention("p", name) for name in "ABC"], {"p": record(*facts)})
    assert weights(found) == {("a", "b"): 9.0}
    assert found.statements.weights.tolist() == [7.0, 2.0]


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
