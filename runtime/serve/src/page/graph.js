// The picture of a run, from the layout that `glovebox graph --format json` computes. It is one tab stop: arrows move from
// stage to stage, Enter opens one. The table of attempts below it is the same as a list.

import { el, svg } from "./dom.js";
import { line, short } from "./text.js";

const CHARACTER = 6.6;

export function graph(run) {
  const { layout, nodes, edges } = run.graph;
  const labels = new Map(nodes.map((node) => [node.id, node]));
  const order = layout.nodes.map((position) => position.id);
  let selected = 0;

  const drawn = layout.nodes.map((position, index) => stage(position, labels.get(position.id), run.states.get(position.id), index, open));
  const picture = svg(
    "svg",
    { id: "graph", class: "graph", viewBox: `0 0 ${layout.width} ${layout.height}`, width: layout.width, height: layout.height, tabindex: "0", role: "listbox", "aria-label": "graph of stages", keydown: key, focus: mark },
    svg("title", null, `graph of ${order.length} stages; arrows move, Enter opens a stage`),
    (layout.boxes ?? []).map((box) => svg("rect", { class: "box", x: box.x, y: box.y, width: box.width, height: box.height })),
    layout.edges.map((edge) => way(edge, edges[edge.edge])),
    drawn,
  );

  function open(index) {
    location.hash = `#/run/${run.id}/stage/${encodeURIComponent(order[index])}`;
  }

  function mark() {
    drawn.forEach((node, index) => node.setAttribute("aria-selected", String(index === selected)));
    picture.setAttribute("aria-activedescendant", drawn[selected]?.id ?? "");
  }

  function key(event) {
    const way = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[event.key];
    if (event.key === "Enter") open(selected);
    else if (event.key === "Home") selected = 0;
    else if (way) selected = next(layout.nodes, selected, way);
    else return;
    event.preventDefault();
    event.stopPropagation();
    mark();
  }

  return el("div", { class: "scroll" }, picture);
}

/** Returns the nearest stage in a direction, or the same stage. */
function next(positions, from, [dx, dy]) {
  const here = positions[from];
  let [best, least] = [from, Infinity];
  positions.forEach((there, index) => {
    const [x, y] = [there.x - here.x, there.y - here.y];
    const along = x * dx + y * dy;
    if (index === from || along <= 1) return;
    const distance = along + 2 * Math.abs(x * dy + y * dx);
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

function stage(position, node, shown, index, open) {
  const { x, y, width, height } = position;
  const most = Math.max(3, Math.floor((width - 8) / CHARACTER));
  const name = node?.label && !node.label.includes("\n") ? node.label : position.id;
  const visits = position.visits > 1 ? ` ×${position.visits}` : "";
  const word = !shown ? "" : width < 70 ? shown.sign + visits : `${shown.sign} ${shown.word}${visits}`;
  const label = `${line(position.id)}: ${shown?.word ?? "not reached"}${position.visits > 0 ? `, visits ${position.visits}` : ""}`;
  return svg(
    "g",
    { id: `node-${index}`, role: "option", "aria-selected": "false", "aria-label": label, class: shown?.tone ?? "plain", click: () => open(index) },
    svg("title", null, label),
    outline(node, x, y, width, height),
    svg("text", { x, y: y - 1 }, short(name, most)),
    svg("text", { x, y: y + 12, class: "small" }, short(word, Math.floor(width / 5))),
  );
}

function outline(node, x, y, width, height) {
  const [left, top, right, bottom] = [x - width / 2, y - height / 2, x + width / 2, y + height / 2];
  const points = (list) => svg("polygon", { class: "shape", points: list.map((point) => point.join(",")).join(" ") });
  switch (node?.handler) {
    case "start":
    case "conditional":
      return points([[x, top], [right, y], [x, bottom], [left, y]]);
    case "wait.human":
      return points([[left + 10, top], [right - 10, top], [right, y], [right - 10, bottom], [left + 10, bottom], [left, y]]);
    case "tool":
      return points([[left + 6, top], [right, top], [right - 6, bottom], [left, bottom]]);
    default:
      return svg("rect", { class: "shape", x: left, y: top, width, height, rx: 4 });
  }
}

function way(position, edge) {
  const [first, ...rest] = [position.start, ...position.steps];
  const path = [`M${first.join(" ")}`, ...rest.map((step) => (step.length === 2 ? "L" : "C") + step.join(" "))].join(" ");
  const last = rest.at(-1) ?? first;
  const before = rest.length > 1 ? rest.at(-2).slice(-2) : first;
  const [ex, ey] = last.slice(-2);
  const [bx, by] = last.length === 6 ? last.slice(2, 4) : before;
  const turn = (Math.atan2(ey - by, ex - bx) * 180) / Math.PI;
  const condition = edge?.label || edge?.condition || "";
  const isFail = /fail/.test(edge?.condition ?? "");
  return svg(
    "g",
    { class: `${position.taken > 0 ? "taken" : ""} ${isFail ? "on-fail" : ""}` },
    svg("path", { class: "way", d: path }),
    svg("path", { class: "arrow", d: "M0 0L-7 3.5L-7 -3.5Z", transform: `translate(${ex} ${ey}) rotate(${turn})` }),
    position.label && condition ? svg("text", { class: "edge-label", x: position.label[0], y: position.label[1] + 3 }, short(condition, 24)) : null,
  );
}
