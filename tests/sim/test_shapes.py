"""What shapes and topologies promise: size, connection, trees where trees are due."""

from collections import Counter
from random import Random
from typing import get_args

import pytest

from palio.protocol.peers import LinkKind
from palio.sim.scenario import Shape, Topology
from palio.sim.shapes import UndirectedGraph, draw
from palio.sim.topologies import lay_out, spanning_tree

SHAPES = get_args(Shape)
SIZES = (1, 2, 3, 4, 7, 12, 33, 100)
TREES = ("line", "star", "tree", "hierarchy")


def reached(size: int, pairs, start: int = 0) -> set[int]:
    neighbours = {node: [] for node in range(size)}
    for one, other in pairs:
        neighbours[one].append(other)
        neighbours[other].append(one)
    found = {start}
    waiting = [start]
    while waiting:
        for node in neighbours[waiting.pop()]:
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def drawn(shape: Shape, size: int, seed: int = 0) -> UndirectedGraph:
    return draw(shape, size, Random(seed))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_a_shape_has_its_size_and_is_connected(shape, size):
    for seed in range(5):
        graph = drawn(shape, size, seed)
        assert graph.size == (1 if shape == "single" else size)
        pairs = [(one, other) for one, other, _ in graph.edges]
        assert len(reached(graph.size, pairs)) == graph.size
        assert len(set(pairs)) == len(pairs)
        assert all(one < other for one, other in pairs)
        assert all(cost > 0 for _, _, cost in graph.edges)
        if shape in TREES:
            assert len(pairs) == size - 1


def test_shapes_are_what_they_are_called():
    def degrees(graph: UndirectedGraph) -> Counter:
        return Counter(Counter(end for one, other, _ in graph.edges for end in (one, other)).values())

    assert degrees(drawn("line", 10)) == {1: 2, 2: 8}
    assert degrees(drawn("star", 10)) == {1: 9, 9: 1}
    assert degrees(drawn("ring", 10)) == {2: 10}
    assert degrees(drawn("hypercube", 16)) == {4: 16}
    assert degrees(drawn("grid", 16)) == {2: 4, 3: 8, 4: 4}
    assert degrees(drawn("hierarchy", 13)) == {3: 1, 4: 3, 1: 9}
    assert len(drawn("graph", 50).edges) > 60
    assert max(degrees(drawn("scale-free", 200))) >= 15


def test_wide_area_graphs_are_cheap_within_domains_and_expensive_between_them():
    graph = drawn("transit-stub", 100)
    costs = sorted(cost for _, _, cost in graph.edges)
    cheap = [cost for cost in costs if cost <= 3]
    assert len(cheap) > 0.7 * len(costs)
    assert all(cost >= 8 for cost in costs[len(cheap) :])
    assert costs[-1] > 20


def test_the_seed_decides():
    assert drawn("graph", 20, 1) == drawn("graph", 20, 1) != drawn("graph", 20, 2)


@pytest.mark.parametrize("topology", get_args(Topology))
@pytest.mark.parametrize("shape", SHAPES)
def test_a_topology_connects_everyone_by_links_of_its_kinds(shape, topology):
    for size in SIZES:
        graph = drawn(shape, size)
        layout = lay_out(graph, topology, Random(size))
        assert layout.size == graph.size
        assert len(reached(layout.size, [(link.one, link.other) for link in layout.links])) == layout.size
        assert all(link.latency > 0 for link in layout.links)
        kinds = {(link.kind, link.other_kind) for link in layout.links}
        peers, levels, graphs = (
            (LinkKind.PEER, LinkKind.PEER),
            (LinkKind.MASTER, LinkKind.BELOW),
            (LinkKind.GRAPH, LinkKind.GRAPH),
        )
        match topology:
            case "acyclic":
                assert kinds <= {peers}
                assert len(layout.links) == layout.size - 1
            case "hierarchical":
                assert kinds <= {levels}
                lower = [link.one for link in layout.links]
                assert len(set(lower)) == len(lower) == layout.size - 1, "one master each, but for one broker"
            case "graph":
                assert kinds <= {graphs}
                assert len(layout.links) == len(graph.edges)
            case "hybrid":
                assert kinds <= {peers, levels, graphs}
                check_clusters(layout)


def check_clusters(layout):
    """Without the graph's links there are trees, each with at most one broker that has links in the graph."""
    inner = [(link.one, link.other) for link in layout.links if link.kind is not LinkKind.GRAPH]
    gateways = {end for link in layout.links if link.kind is LinkKind.GRAPH for end in (link.one, link.other)}
    masters = {link.one for link in layout.links if link.kind is LinkKind.MASTER}
    assert not masters & gateways
    seen: set[int] = set()
    for node in range(layout.size):
        if node not in seen:
            cluster = reached(layout.size, inner, node)
            seen |= cluster
            assert len(cluster & gateways) <= 1
            assert sum(one in cluster for one, _ in inner) == len(cluster) - 1


def test_hybrid_networks_have_cycles_and_both_kinds_of_clusters():
    kinds = Counter()
    for seed in range(20):
        layout = lay_out(drawn("tree", 20, seed), "hybrid", Random(seed))
        assert len(layout.links) >= layout.size
        kinds.update(link.kind for link in layout.links)
    assert len(kinds) == 3


def test_a_spanning_tree_is_one_of_shortest_paths():
    graph = UndirectedGraph.of(4, [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 3.0), (2, 3, 1.0)])
    spanned = spanning_tree(graph, [0])
    assert spanned.above == [None, 0, 1, 2]
    assert spanned.distances == [0.0, 1.0, 2.0, 3.0]
    assert spanning_tree(graph, [0, 3]).roots == [0, 0, 3, 3]


def test_near_brokers_are_found_in_the_order_of_distance():
    assert drawn("line", 10).near(4, 5)[:5] == [4, 3, 5, 2, 6]
    assert sorted(drawn("ring", 10).near(0, 10)) == list(range(10))
