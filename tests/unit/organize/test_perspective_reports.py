import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.algorithms.encoding_tree import EncodingTree
from sire_core.algorithms.text import count_tokens
from sire_core.organize.entity_network import EntityNetwork, Statement
from sire_core.organize.extractive_reports import central_names, extract_report
from sire_core.organize.perspective_trees import carried_over, graph_of, labels_by_key
from sire_core.organize.report_nodes import ReportNode, report_nodes


def network(statements, size=6):
    """Statements as (vertices, passage); every pair of a statement is joined."""
    found = EntityNetwork(
        keys=[f"v{i}" for i in range(size)],
        ids=[f"id{i}" for i in range(size)],
        passages=[(f"c{i}",) for i in range(1 + max((p for _, p in statements), default=0))],
    )
    for vertices, place in statements:
        names = {v: f"V{v}" for v in vertices}
        found.statements.append(Statement(f"{' met '.join(names.values())} in {place}.", place, names, 1.0))
        for a in vertices:
            for b in vertices:
                if a < b:
                    found.join(a, b, 1.0)
    return found


BARBELL = network([((0, 1), 0), ((1, 2), 1), ((0, 2), 1), ((2, 3), 2), ((3, 4), 3), ((4, 5), 4), ((3, 5), 4)])


def test_nodes_hold_the_statements_that_join_their_parts():
    levels = [np.array([0, 0, 0, 1, 1, 1]), np.zeros(6, dtype=np.int64)]
    left, right, top = report_nodes(levels, 0, BARBELL)
    assert (left.statements, right.statements, top.statements) == ((0, 1, 2), (4, 5, 6), (3,))
    assert (left.alone, right.alone, top.alone) == ((0, 1, 2), (3, 4, 5), ())
    assert top.children == (0, 1)
    assert left.weights == {0: 2.0, 1: 2.0, 2: 2.0}
    assert top.weights == {0: 2.0, 1: 2.0, 2: 3.0, 3: 3.0, 4: 2.0, 5: 2.0}


def test_a_cluster_with_one_part_is_that_part():
    levels = [np.array([0, 0, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 1, 1])]
    nodes = report_nodes(levels, 0, BARBELL)
    assert [(node.level, sorted(node.weights), node.alone) for node in nodes] == [
        (1, [0, 1], (0, 1)),
        (1, [3, 4, 5], (3, 4, 5)),
        (2, [0, 1, 2], (2,)),
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=8, max_size=8), min_size=1, max_size=3))
def test_every_vertex_of_a_cluster_is_below_its_node_exactly_once(rows):
    nested = [np.unique(np.array(rows[i:]), axis=1, return_inverse=True)[1].ravel() for i in range(len(rows))]
    found = network([((i, (i + 1) % 8), i) for i in range(8)], size=8)
    nodes = report_nodes(nested, 0, found)

    def below(number):
        return [*nodes[number].alone, *(v for child in nodes[number].children for v in below(child))]

    for number, node in enumerate(nodes):
        assert sorted(below(number)) == sorted(node.weights)
        assert len(node.weights) > 1
    children = [child for node in nodes for child in node.children]
    assert len(children) == len(set(children))


def test_a_report_quotes_several_passages_and_names_what_is_central():
    node = ReportNode(0, 1, (), (0, 1, 2), (0, 1, 2), {0: 2.0, 1: 2.0, 2: 3.0})
    report = extract_report(node, node.statements, BARBELL, 30)
    assert report.title == "V2, V0, V1"
    assert report.text.splitlines()[0] == report.title
    assert set(report.passages) == {0, 1}
    assert all(BARBELL.statements[number].text in report.text for number in report.statements)


def test_what_one_passage_says_gets_no_report():
    node = ReportNode(0, 1, (), (4, 5), (5,), {4: 1.0, 5: 1.0})
    assert extract_report(node, (5, 6), BARBELL, 60) is None
    assert extract_report(node, (), BARBELL, 60) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80))
def test_the_sentences_stay_within_their_length(most):
    node = ReportNode(0, 1, (), tuple(range(6)), tuple(range(7)), dict.fromkeys(range(6), 1.0))
    report = extract_report(node, node.statements, BARBELL, most)
    if report is not None:
        sentences = report.text.splitlines()[1:]
        assert sum(map(count_tokens, sentences)) <= most
        assert len(sentences) == len(set(sentences)) == len(report.statements)


def test_names_are_spelt_as_in_the_quoted_passages():
    quoted = [Statement("", 0, {0: "Vale", 1: "Tide"}, 1.0), Statement("", 1, {0: "Mira Vale"}, 1.0)]
    assert central_names({0: 5.0, 1: 1.0, 2: 9.0}, quoted) == "Vale, Tide"


def tree(*levels):
    return EncodingTree(len(levels[0]), tuple(np.array(level) for level in levels))


def test_unchanged_entities_keep_their_trees():
    trees = (tree([0, 0, 0, 1, 1, 1]), tree([0, 0, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1]))
    stored = labels_by_key(trees, BARBELL)
    again = carried_over(stored, BARBELL, graph_of(BARBELL))
    assert again == tuple(one.contracted() for one in trees)


def test_new_entities_join_their_neighbours_or_form_a_component_and_old_ones_go():
    stored = labels_by_key((tree([0, 0, 0, 1, 1, 1]),), BARBELL)
    stored["gone"] = [[7]]
    grown = network(
        [((0, 1), 0), ((1, 2), 1), ((3, 4), 3), ((4, 5), 4), ((5, 6), 5), ((6, 7), 5), ((8, 9), 6)], size=10
    )
    (found,) = carried_over(stored, grown, graph_of(grown))
    assert found.labels[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
