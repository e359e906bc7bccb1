"""Reports every agent that has no `timeout`."""

import json

from wit_world import exports
from wit_world.exports.graph_rules import Finding


class GraphRules(exports.GraphRules):
    def transform(self, graph: str) -> str | None:
        """Returns the changed graph as JSON. `None` leaves the graph unchanged."""
        return None

    def lint(self, graph: str) -> list[Finding]:
        agents = [node for node in json.loads(graph)["nodes"] if node["handler"] == "codergen" and "timeout" not in node]
        return [
            Finding("timeout", "error", f"`{node['id']}` has no timeout", node["id"], None, 'add `timeout="15m"`')
            for node in agents
        ]
