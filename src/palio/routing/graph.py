"""The general graph: which brokers there are, how they are linked, and the tree of each.

Every broker floods the state of its links, so all have the same picture once that has settled, and each can
work out for itself the shortest-path tree from any broker on: Dijkstra's algorithm, and where two ways cost
the same, the one through the predecessor with the smaller name. Since all compute the same trees, a
notification needs nothing but the name of the broker whose tree it travels.

A link counts if both ends say that it is there; it costs what the end further from the root says.
"""

from __future__ import annotations

from heapq import heappop, heappush

from palio.protocol.peers import LinkState


class NetworkGraph:
    """What one broker knows of the graph. Trees are computed when needed and kept until the graph changes."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self.states: dict[str, LinkState] = {}
        self._branches: dict[str, dict[str, str]] = {}

    def learn(self, state: LinkState) -> bool:
        """Take the state of a broker's links; False if it is not news."""
        known = self.states.get(state.broker)
        if known is not None and known.version >= state.version:
            return False
        self.states[state.broker] = state
        self._branches.clear()
        return True

    def branches(self, root: str) -> dict[str, str]:
        """For each broker below this one in the tree of the root: the neighbour towards it."""
        branches = self._branches.get(root)
        if branches is None:
            branches = self._branches[root] = self._below_in(self.tree(root))
        return branches

    def tree(self, root: str) -> dict[str, str]:
        """The predecessor of each broker that can be reached from the root."""
        costs = {root: 0.0}
        predecessors: dict[str, str] = {}
        settled: set[str] = set()
        queue = [(0.0, root)]
        while queue:
            cost, broker = heappop(queue)
            if broker in settled:
                continue
            settled.add(broker)
            for neighbour, step in self._links(broker):
                way = cost + step
                known = costs.get(neighbour)
                if known is None or way < known:
                    costs[neighbour] = way
                    predecessors[neighbour] = broker
                    heappush(queue, (way, neighbour))
                elif way == known and neighbour not in settled and broker < predecessors[neighbour]:
                    predecessors[neighbour] = broker
        return predecessors

    def _links(self, broker: str) -> list[tuple[str, float]]:
        state = self.states.get(broker)
        if state is None:
            return []
        links = []
        for neighbour, _ in state.links:
            other = self.states.get(neighbour)
            if other is not None:
                links += [(neighbour, cost) for back, cost in other.links if back == broker]
        return links

    def _below_in(self, predecessors: dict[str, str]) -> dict[str, str]:
        successors: dict[str, list[str]] = {}
        for broker, predecessor in predecessors.items():
            successors.setdefault(predecessor, []).append(broker)
        branches = {}
        for child in successors.get(self._broker, ()):
            level = [child]
            while level:
                branches.update(dict.fromkeys(level, child))
                level = [below for broker in level for below in successors.get(broker, ())]
        return branches
