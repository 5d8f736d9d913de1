"""Shapes: which brokers are linked with which, and at what cost. Always connected, without loops or doubles.

Brokers are numbers from 0. What costs are: 1 for a link of the regular shapes, drawn around 1 for the random
ones, and in wide-area graphs what the path through the net of networks costs.

A *transit-stub* graph imitates the Internet (Zegura, Calvert and Bhattacharjee, 1996; their generator is
called GT-ITM). A few transit domains, far from each other, each of a few routers; to each router some stub
domains are attached, each a small network. Brokers are at the stub nodes only. The first broker of a stub
domain is its gateway, and a link between two gateways costs what the path costs: out of one domain, through
the transit routers, into the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from random import Random

import msgspec

from palio.sim.scenario import Shape

Edge = tuple[int, int, float]

_BRANCHES = 3  # of a node in a hierarchy
_MORE_EDGES = 0.75  # a random graph has this many edges per node beyond a tree's
_ATTACHMENTS = 2  # of a newcomer in a scale-free graph

# Costs in a wide-area graph grow with the distance by about a factor of three from one level to the next.
_WITHIN_STUB = (1.0, 3.0)
_INTO_TRANSIT = (4.0, 8.0)
_WITHIN_TRANSIT = (10.0, 20.0)
_BETWEEN_TRANSIT = (30.0, 60.0)
_STUB_SIZE = 8  # as in the graphs of 100 nodes that the literature uses
_STUBS_PER_ROUTER = 3
_ROUTERS_PER_DOMAIN = 4


class UndirectedGraph(msgspec.Struct, frozen=True):
    """Nodes 0 to `size` - 1 and undirected edges, each once, the smaller node first, in order."""

    size: int
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, size: int, edges: Iterable[Edge]) -> UndirectedGraph:
        """From edges in any direction and number; of several between two nodes the first counts."""
        found: dict[tuple[int, int], float] = {}
        for one, other, cost in edges:
            if one != other:
                found.setdefault((min(one, other), max(one, other)), cost)
        return cls(size, tuple((one, other, cost) for (one, other), cost in sorted(found.items())))

    def neighbours(self) -> list[list[tuple[int, float]]]:
        """For each node the nodes that it is linked with, and the costs."""
        found: list[list[tuple[int, float]]] = [[] for _ in range(self.size)]
        for one, other, cost in self.edges:
            found[one].append((other, cost))
            found[other].append((one, cost))
        return found

    def near(self, node: int, count: int) -> list[int]:
        """The node and those with the fewest links in between, nearest first; `count`, or a few more."""
        neighbours = self.neighbours()
        found = {node: None}
        for place in (order := [node]):
            if len(found) >= count:
                break
            for neighbour, _ in neighbours[place]:
                if neighbour not in found:
                    found[neighbour] = None
                    order.append(neighbour)
        return list(found)


def draw(shape: Shape, size: int, chance: Random) -> UndirectedGraph:
    """A graph of this shape with exactly that many nodes."""
    if shape == "single":
        return UndirectedGraph(1, ())
    if shape in _REGULAR:
        return UndirectedGraph.of(size, ((one, other, 1.0) for one, other in _REGULAR[shape](size)))
    return UndirectedGraph.of(size, _RANDOM[shape](size, chance))


def _cost(chance: Random, low: float = 0.5, high: float = 2.0) -> float:
    return round(chance.uniform(low, high), 3)


def _random_tree(size: int, chance: Random) -> Iterator[Edge]:
    for node in range(1, size):
        yield chance.randrange(node), node, _cost(chance)


def _grid(size: int) -> Iterator[tuple[int, int]]:
    width = max(1, math.isqrt(size))
    for node in range(size):
        if (node + 1) % width and node + 1 < size:
            yield node, node + 1
        if node + width < size:
            yield node, node + width


def _hypercube(size: int) -> Iterator[tuple[int, int]]:
    """With a size that is no power of two, the nodes with higher numbers are missing; it stays connected."""
    for node in range(size):
        for bit in range(size.bit_length()):
            if not node >> bit & 1 and node | 1 << bit < size:
                yield node, node | 1 << bit


def _random_graph(size: int, chance: Random) -> Iterator[Edge]:
    yield from _random_tree(size, chance)
    for _ in range(math.ceil(size * _MORE_EDGES) if size > 2 else 0):
        yield chance.randrange(size), chance.randrange(size), _cost(chance)


def _scale_free(size: int, chance: Random) -> Iterator[Edge]:
    """Newcomers link with nodes that are popular already (Barabási and Albert, 1999)."""
    ends = [0]  # each node as often as it has links
    for node in range(1, size):
        chosen = {chance.choice(ends) for _ in range(_ATTACHMENTS)}
        for other in sorted(chosen):
            yield other, node, _cost(chance)
            ends += (other, node)


def _transit_stub(size: int, chance: Random) -> Iterator[Edge]:
    stubs = _stub_domains(size, chance)
    for stub in stubs:
        yield from _domain(stub, chance, _WITHIN_STUB)
    gateways = [(stub[0], _cost(chance, *_INTO_TRANSIT)) for stub in stubs]
    routers = [
        gateways[start : start + _STUBS_PER_ROUTER] for start in range(0, len(gateways), _STUBS_PER_ROUTER)
    ]
    for attached in routers:
        for (one, way), (other, other_way) in pairwise(attached):
            yield one, other, round(way + other_way, 3)
    for one, other, cost in _transit(len(routers), chance):
        gateway, way = routers[one][0]
        other_gateway, other_way = routers[other][0]
        yield gateway, other_gateway, round(way + cost + other_way, 3)


def _stub_domains(size: int, chance: Random) -> list[list[int]]:
    domains: list[list[int]] = []
    node = 0
    while node < size:
        count = min(size - node, max(2, _STUB_SIZE + chance.randint(-2, 2)))
        domains.append(list(range(node, node + count)))
        node += count
    return domains


def _transit(routers: int, chance: Random) -> Iterator[Edge]:
    """The routers' own links: domains within themselves, and the domains with each other."""
    domains = [
        list(range(start, min(routers, start + _ROUTERS_PER_DOMAIN)))
        for start in range(0, routers, _ROUTERS_PER_DOMAIN)
    ]
    for domain in domains:
        yield from _domain(domain, chance, _WITHIN_TRANSIT)
    for one, other, cost in _domain(list(range(len(domains))), chance, _BETWEEN_TRANSIT):
        yield chance.choice(domains[one]), chance.choice(domains[other]), cost


def _domain(nodes: list[int], chance: Random, costs: tuple[float, float]) -> Iterator[Edge]:
    """A small connected network: a random tree and some links more."""
    for position in range(1, len(nodes)):
        yield nodes[chance.randrange(position)], nodes[position], _cost(chance, *costs)
    for _ in range(len(nodes) // 3):
        yield chance.choice(nodes), chance.choice(nodes), _cost(chance, *costs)


_REGULAR: dict[Shape, Callable[[int], Iterable[tuple[int, int]]]] = {
    "line": lambda size: pairwise(range(size)),
    "star": lambda size: ((0, node) for node in range(1, size)),
    "hierarchy": lambda size: (((node - 1) // _BRANCHES, node) for node in range(1, size)),
    "ring": lambda size: ((node, (node + 1) % size) for node in range(size)),
    "grid": _grid,
    "hypercube": _hypercube,
}
_RANDOM: dict[Shape, Callable[[int, Random], Iterator[Edge]]] = {
    "tree": _random_tree,
    "graph": _random_graph,
    "scale-free": _scale_free,
    "transit-stub": _transit_stub,
}
