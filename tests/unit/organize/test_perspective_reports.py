import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.algorithms.grouping import id_hashes
from sire_core.algorithms.text import count_tokens
from sire_core.recipes.smart.encoding_tree import EncodingTree, UndirectedGraph, canonical_labels, decoding_information
from sire_core.recipes.smart.network import NetworkStatement, NetworkTable, read_network
from sire_core.recipes.smart.perspectives import StoredTrees, carried_over
from sire_core.recipes.smart.report_nodes import ReportNode, report_nodes
from sire_core.recipes.smart.reports import central_names, extract_report
from sire_core.recipes.smart.statements import (
    EntityMention,
    LocalStatement,
    PassageStatements,
    PassageTexts,
    mentioned_rows,
    stated_rows,
)
from sire_core.recipes.smart.views import EvidenceView
from sire_core.types import Unit, UnitKind


def network(statements, size=6):
    """Statements as (vertices, passage); every pair of a statement is joined, and vertices are named in order."""
    places = 1 + max((place for _, place in statements), default=0)
    # A first passage that names all vertices fixes their numbers.
    units = [Unit(f"c{i}", UnitKind.CHUNK, "", (f"c{i}",)) for i in range(places + 1)]
    everyone = tuple(range(size))
    mentions = {units[0].id: [naming(v) for v in everyone]}
    said = {units[0].id: PassageStatements()}
    for place in range(places):
        vertices = sorted({v for found, where in statements if where == place for v in found})
        mentions[units[place + 1].id] = [naming(v) for v in vertices]
        local = [tuple(map(vertices.index, found)) for found, where in statements if where == place]
        texts = [" met ".join(f"V{vertices[p]}" for p in found) + f" in {place}." for found in local]
        said[units[place + 1].id] = PassageStatements(
            [(a, b, 1.0, 0) for found in local for a in found for b in found if vertices[a] < vertices[b]],
            [LocalStatement(text, found, 1.0) for text, found in zip(texts, local, strict=True)],
        )
    words = [PassageTexts.of(mentions[unit.id], said[unit.id]) for unit in units]
    table = NetworkTable().updated(
        units,
        {unit.id: mentioned_rows(mentions[unit.id], ()) for unit in units},
        {unit.id: stated_rows(said[unit.id], mentions[unit.id], unit) for unit in units},
    )
    return read_network(table, [unit.chunk_ids for unit in units], lambda numbers: {n: words[n] for n in numbers})


def naming(vertex):
    return EntityMention(f"V{vertex}", f"V{vertex}", f"id{vertex:02}")


BARBELL = network([((0, 1), 0), ((1, 2), 1), ((0, 2), 1), ((2, 3), 2), ((3, 4), 3), ((4, 5), 4), ((3, 5), 4)])

APART = network([((0, 1, 2), 0), ((3, 4, 5), 1), ((6, 7), 2)], size=8)


def nodes_of(levels, found, view=None):
    return report_nodes(levels, 0, found, view or EvidenceView(found.graph))


def test_nodes_of_what_is_alike_hold_the_statements_that_name_it():
    """0 and 4 are alike: what is said of either counts, and most what names something that both are related to."""
    shared = network([((0, 3), 0), ((3, 4), 1), ((4, 5), 2), ((1, 2), 3)])
    alike = EvidenceView(UndirectedGraph.from_edges(6, np.array([(0, 4), (1, 2)])), joined=False)
    found = nodes_of([np.array([0, 1, 1, 2, 0, 3])], shared, alike)
    first, second = found.select(range(2), found.children(), shared)
    assert (first.statements, second.statements) == ((0, 1, 2), (3,))
    assert (first.weights, first.around) == ({0: 1.0, 4: 1.0}, {3: 2.0})
    report = extract_report(first, first.statements, shared, 12)
    assert report.title == "V3, V0, V4"
    assert report.statements == (0, 1)


def test_nodes_hold_the_statements_that_join_their_parts():
    levels = [np.array([0, 0, 0, 1, 1, 1]), np.zeros(6, dtype=np.int64)]
    found = nodes_of(levels, BARBELL)
    left, right, top = found.select(range(3), found.children(), BARBELL)
    assert (left.statements, right.statements, top.statements) == ((0, 1, 2), (4, 5, 6), (3,))
    assert found.lowest.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.parents.tolist() == [2, 2, -1]
    assert top.children == (0, 1)
    assert left.weights == {0: 2.0, 1: 2.0, 2: 2.0}
    assert top.weights == {0: 2.0, 1: 2.0, 2: 3.0, 3: 3.0, 4: 2.0, 5: 2.0}


def test_levels_above_what_statements_join_have_none():
    found = nodes_of([np.array([0, 0, 0, 1, 1, 1, 2, 2]), np.zeros(8, dtype=np.int64)], APART)
    assert found.stated.tolist() == [1, 1, 1, 0]
    assert found.statements.tolist() == [0, 1, 2]


def test_a_cluster_with_one_part_is_that_part():
    levels = [np.array([0, 0, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 1, 1])]
    found = nodes_of(levels, BARBELL)
    nodes = found.select(range(3), found.children(), BARBELL)
    assert [(node.level, sorted(node.weights)) for node in nodes] == [(1, [0, 1]), (1, [3, 4, 5]), (2, [0, 1, 2])]
    assert found.lowest.tolist() == [0, 0, 2, 1, 1, 1]
    assert nodes[2].children == (0,)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=8, max_size=8), min_size=1, max_size=3))
def test_every_vertex_of_a_cluster_is_below_its_node_exactly_once(rows):
    nested = [
        canonical_labels(np.unique(np.array(rows[i:]), axis=1, return_inverse=True)[1].ravel())
        for i in range(len(rows))
    ]
    found = network([((i, (i + 1) % 8), i) for i in range(8)], size=8)
    table = nodes_of(nested, found)
    nodes = table.select(range(len(table)), table.children(), found)

    def below(number):
        alone = np.flatnonzero(table.lowest == number).tolist()
        return [*alone, *(v for child in nodes[number].children for v in below(child))]

    for number, node in enumerate(nodes):
        assert sorted(below(number)) == list(node.weights)
        assert len(node.weights) > 1
        parts = [set(nodes[child].weights) for child in node.children]
        for statement in range(len(found.statements)):
            named = set(found.statements.named(statement)) & set(node.weights)
            apart = len(named) > 1 and not any(named <= part for part in parts)
            assert (statement in node.statements) == apart
    children = [child for node in nodes for child in node.children]
    assert len(children) == len(set(children))


def test_a_report_quotes_several_passages_and_names_what_is_central():
    node = ReportNode(0, 1, (), (0, 1, 2), {0: 2.0, 1: 2.0, 2: 3.0})
    report = extract_report(node, node.statements, BARBELL, 30)
    assert report.title == "V2, V1, V0"  # V1 and V0 weigh the same: who is named first
    assert report.text.splitlines()[0] == report.title
    assert set(report.passages) == {1, 2}
    assert all(said.text in report.text for said in BARBELL.read(report.statements).values())


def test_what_one_passage_says_gets_no_report():
    node = ReportNode(0, 1, (), (5,), {4: 1.0, 5: 1.0})
    assert extract_report(node, (5, 6), BARBELL, 60) is None
    assert extract_report(node, (), BARBELL, 60) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80))
def test_the_sentences_stay_within_their_length(most):
    node = ReportNode(0, 1, (), tuple(range(7)), dict.fromkeys(range(6), 1.0))
    report = extract_report(node, node.statements, BARBELL, most)
    if report is not None:
        sentences = report.text.splitlines()[1:]
        lengths = [count_tokens(sentence) for sentence in sentences]
        # Two passages have to be quoted, of however few words each.
        assert max(lengths) <= most
        assert len(report.passages) == 2 if sum(lengths) > most else len(report.passages) > 1
        assert len(sentences) == len(set(sentences))
        assert len(sentences) == len(report.statements) or most < 6


def test_names_are_spelt_as_in_the_quoted_passages():
    quoted = [NetworkStatement("", 0, {0: "Vale", 1: "Tide"}), NetworkStatement("", 1, {0: "Mira Vale"})]
    assert central_names({0: 5.0, 1: 1.0, 2: 9.0}, quoted) == "Vale, Tide"


def tree(*levels):
    return EncodingTree(len(levels[0]), tuple(np.array(level) for level in levels))


def test_unchanged_entities_keep_their_trees():
    trees = (tree([0, 0, 0, 1, 1, 1]), tree([0, 0, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1]))
    stored = StoredTrees.from_note(StoredTrees.of(trees, BARBELL).to_note())
    again = carried_over(stored, BARBELL, [EvidenceView(BARBELL.graph)] * 2)
    assert again == tuple(one.contracted() for one in trees)


def test_new_entities_join_their_neighbours_or_form_a_component_and_old_ones_go():
    labels = np.array([[[0, 0, 0, 1, 1, 1, 7]]])
    stored = StoredTrees(*(np.append(known, np.uint64(7)) for known in (BARBELL.keys, id_hashes(BARBELL.ids))), labels)
    grown = network(
        [((0, 1), 0), ((1, 2), 1), ((3, 4), 3), ((4, 5), 4), ((5, 6), 5), ((6, 7), 5), ((8, 9), 6)], size=10
    )
    (found,) = carried_over(stored, grown, [EvidenceView(grown.graph)])
    # The old cluster that two new ones lead to says more without them.
    assert found.labels[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    joined = EncodingTree(10, (np.array([0, 0, 0, 1, 1, 1, 1, 1, 2, 2]),))
    assert decoding_information(grown.graph, found) > decoding_information(grown.graph, joined)
    assert stored.missing(grown.keys) == 4
