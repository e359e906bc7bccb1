// The hold-outs of a run: who had them, who never had them, and what crossed to builders.

import { get, path } from "./api.js";
import { cmd, el, empty, panel, record, replace, state, table } from "./dom.js";
import { stageLink } from "./overview.js";
import { bytes, count, line, short } from "./text.js";

export async function holdouts(holder, run) {
  async function again() {
    if (run.verdict.holdouts_root === null) return replace(holder, empty("No hold-outs were sealed for this run.", `glovebox holdout status ${run.id}`));
    const [found, tasks] = await Promise.all([get(path`/runs/${run.id}/holdouts`), run.read("tasks")]);
    return replace(holder, ...draw(run, found, tasks.tasks));
  }
  await again();
  return { again };
}

function draw(run, found, tasks) {
  const links = (nodes) => nodes.flatMap((node, index) => [index ? ", " : "", el("a", { href: stageLink(run, node) }, line(node))]);
  const reach = new Set(found.reach);
  const never = run.graph.nodes.filter((node) => !reach.has(node.id) && !["start", "exit"].includes(node.handler)).map((node) => node.id);
  const visits = tasks.filter((task) => reach.has(task.node)).flatMap((task) => task.attempts.filter((attempt) => attempt.finished_record != null).map((attempt) => ({ task, attempt })));
  const rows = visits.map(({ task, attempt }) => [el("a", { href: stageLink(run, task.node) }, line(task.node)), `${task.visit}.${attempt.ordinal}`, line(attempt.status), "1 bit: pass or fail", record(run.id, attempt.finished_record)]);
  return [
    el("div", { class: "row" }, el("h2", null, "Sealed"), el("code", null, line(found.folders.join(" "))), el("span", null, `${count(found.files, "file")}, ${bytes(found.bytes)}`), el("span", null, "root ", el("code", null, line(found.root))), cmd(`glovebox holdout status ${run.id} --json`)),
    el("p", { class: "muted" }, "To compare the sealed files with this root: ", el("code", null, `glovebox holdout verify ${run.id}`), " ", cmd(`glovebox holdout verify ${run.id}`)),
    panel("Who had them", el("p", null, reach.size ? links(found.reach) : "no stage"), el("h3", null, "Who never had them"), el("p", null, never.length ? links(never) : "no stage")),
    panel(
      "What crossed to builders",
      el("p", { id: "bits" }, el("b", null, count(visits.length, "verdict")), ` of stages that had them: ${count(visits.length, "bit")}, and at most one more bit per visit for each public hint. Output, notes and classes of failures are withheld from builders.`),
      rows.length ? table(["stage", "visit", "said", "tells", "record"], rows) : null,
    ),
    panel("Leaks", found.leaks.length === 0 ? el("p", null, "No leak was found.") : found.leaks.map((leak) => el("p", null, state({ sign: "✕", word: "leak", tone: "fail" }), " ", el("a", { href: stageLink(run, leak.node) }, line(leak.node)), `: ${short(leak.reason, 500)} `, el("code", null, short(leak.places.join(", "), 500))))),
    found.opt_outs.length ? panel("Exceptions", el("p", null, line(found.opt_outs.join(", ")))) : null,
  ];
}
