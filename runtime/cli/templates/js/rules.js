// Reports every agent that has no `timeout`.
export const graphRules = {
  // Returns the changed graph as JSON. `undefined` leaves the graph unchanged.
  transform(_graph) {
    return undefined;
  },

  lint(graph) {
    const agents = JSON.parse(graph).nodes.filter((node) => node.handler === 'codergen' && node.timeout === undefined);
    return agents.map(({ id }) => ({
      rule: 'timeout', severity: 'error', message: `\`${id}\` has no timeout`,
      node: id, edge: undefined, help: 'add `timeout="15m"`',
    }));
  },
};
