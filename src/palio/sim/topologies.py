"""Topologies: how the links of a shape are used. A shape and a topology together are a `Layout`.

acyclic
    A spanning tree of the shape; all brokers are equals.
hierarchical
    The same tree, seen from its root: at each link the lower broker has the upper one as its master. That it
    is the same tree makes the two comparable.
graph
    All links of the shape, cycles and all.
hybrid
    Some brokers are gateways. Every other broker belongs to the cluster of the nearest gateway, and a cluster
    is a tree around its gateway, either of equals or with the gateway as the topmost master. Gateways of
    neighbouring clusters are linked, and these links are a graph.

The spanning tree is that of the shortest paths from a central broker: what an administrator would build.
"""

from __future__ import annotations

import heapq
from itertools import pairwise
from random import Random

import msgspec

from palio.protocol.peers import LinkKind
from palio.sim.scenario import Topology
from palio.sim.shapes import UndirectedGraph

# Seconds that a link of cost 1 takes on average: brokers of one town. Links differ, so that messages race.
_SECONDS_PER_COST = 0.01
_LATENCY_SPREAD = (0.5, 1.5)

_CENTRE_CANDIDATES = 12  # how many brokers are asked for their distance from all others to find a central one


class TopologyLink(msgspec.Struct, frozen=True):
    """A link between two brokers, by number. `kind` is what `other` is to `one`, `other_kind` the reverse."""

    one: int
    other: int
    kind: LinkKind
    other_kind: LinkKind
    cost: float
    latency: float


class Layout(msgspec.Struct, frozen=True):
    """Brokers by number, and their links."""

    size: int
    links: tuple[TopologyLink, ...]


class Paths:
    """The links between two brokers, where there is only one way."""

    def __init__(self, layout: Layout) -> None:
        self._neighbours: list[list[tuple[int, int]]] = [[] for _ in range(layout.size)]
        for number, link in enumerate(layout.links):
            if link.kind is not LinkKind.GRAPH:
                self._neighbours[link.one].append((link.other, number))
                self._neighbours[link.other].append((link.one, number))
        self._found: dict[int, dict[int, frozenset[int]]] = {}

    def between(self, one: int, other: int) -> frozenset[int] | None:
        """The numbers of the links; None if the way leads through a graph, where it can be any."""
        if one not in self._found:
            ways = self._found[one] = {one: frozenset[int]()}
            for node in (order := [one]):
                for neighbour, link in self._neighbours[node]:
                    if neighbour not in ways:
                        ways[neighbour] = ways[node] | {link}
                        order.append(neighbour)
        return self._found[one].get(other)


def lay_out(graph: UndirectedGraph, topology: Topology, chance: Random) -> Layout:
    """The links that a network of this topology has on that graph."""
    match topology:
        case "graph":
            found = [(one, other, LinkKind.GRAPH, LinkKind.GRAPH, cost) for one, other, cost in graph.edges]
        case "hybrid":
            found = _hybrid(graph, chance)
        case "acyclic" | "hierarchical":
            root = centre(graph)
            found = _trees(spanning_tree(graph, [root]), {root: topology == "hierarchical"})
    links = [TopologyLink(*one, one[4] * _SECONDS_PER_COST * chance.uniform(*_LATENCY_SPREAD)) for one in found]
    return Layout(graph.size, tuple(links))


_Found = tuple[int, int, LinkKind, LinkKind, float]


class Spanned(msgspec.Struct, frozen=True):
    """Trees that reach every node: for each node its root, the node above it (None for a root) and its way."""

    roots: list[int]
    above: list[int | None]
    costs: list[float]  # of the link to the node above
    distances: list[float]  # from the root


def spanning_tree(graph: UndirectedGraph, roots: list[int]) -> Spanned:
    """The shortest paths from the nearest root to every node; of equal ones the one by smaller numbers."""
    neighbours = graph.neighbours()
    spanned = Spanned([-1] * graph.size, [None] * graph.size, [0.0] * graph.size, [0.0] * graph.size)
    waiting: list[tuple[float, int, int, int, float]] = [(0.0, root, -1, root, 0.0) for root in roots]
    heapq.heapify(waiting)
    while waiting:
        distance, node, above, root, cost = heapq.heappop(waiting)
        if spanned.roots[node] >= 0:
            continue
        spanned.roots[node] = root
        spanned.above[node] = above if above >= 0 else None
        spanned.costs[node] = cost
        spanned.distances[node] = distance
        for neighbour, step in neighbours[node]:
            if spanned.roots[neighbour] < 0:
                heapq.heappush(waiting, (distance + step, neighbour, node, root, step))
    return spanned


def centre(graph: UndirectedGraph) -> int:
    """A node from which the others are not far: the best of those with the most links."""
    degrees = [0] * graph.size
    for one, other, _ in graph.edges:
        degrees[one] += 1
        degrees[other] += 1
    candidates = sorted(range(graph.size), key=lambda node: (-degrees[node], node))[:_CENTRE_CANDIDATES]
    return min(candidates, key=lambda node: (sum(spanning_tree(graph, [node]).distances), node))


def _trees(spanned: Spanned, hierarchical: dict[int, bool]) -> list[_Found]:
    """The links of trees, of which some are hierarchies, by their roots."""
    found: list[_Found] = []
    for node, above in enumerate(spanned.above):
        if above is not None:
            master = hierarchical[spanned.roots[node]]
            up, down = (LinkKind.MASTER, LinkKind.BELOW) if master else (LinkKind.PEER, LinkKind.PEER)
            found.append((node, above, up, down, spanned.costs[node]))
    return found


def _hybrid(graph: UndirectedGraph, chance: Random) -> list[_Found]:
    count = max(1, min(graph.size, round(graph.size**0.5) + chance.randint(0, 1)))
    gateways = sorted(chance.sample(range(graph.size), count))
    spanned = spanning_tree(graph, gateways)
    found = _trees(spanned, {gateway: chance.random() < 0.5 for gateway in gateways})
    joints: dict[tuple[int, int], float] = {}
    for one, other, cost in graph.edges:
        pair = (spanned.roots[one], spanned.roots[other])
        if pair[0] != pair[1]:
            key = (min(pair), max(pair))
            way = round(spanned.distances[one] + cost + spanned.distances[other], 3)
            joints[key] = min(way, joints.get(key, way))
    if count > 2 and len(joints) < count:
        # The clusters form a tree, as they do if the shape is one. A graph should have cycles to cope with.
        for one, other in (*pairwise(gateways), (gateways[0], gateways[-1])):
            joints.setdefault((one, other), round(chance.uniform(1.0, 4.0), 3))
    graph_links = [(*pair, LinkKind.GRAPH, LinkKind.GRAPH, cost) for pair, cost in sorted(joints.items())]
    return found + graph_links
