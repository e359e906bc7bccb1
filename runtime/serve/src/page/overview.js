// The first tab of a run: graph, cause, and one bar for each attempt.

import { may } from "./api.js";
import { cmd, el, panel, record, replace, say, state } from "./dom.js";
import { graph } from "./graph.js";
import { attemptState, kind } from "./states.js";
import { block, line, quoted, short, time } from "./text.js";

/** Maximum number of bars of one stage. A loop can make thousands of attempts; the last ones are shown. */
const BARS_MAX = 60;
const STEPS = 6;
/** Maximum length of the end of an output that is shown beside a failure. */
const PRINTED_MAX = 1500;
/** The explanation of a run with more records is megabytes long: it is not read for the last steps alone. */
const EXPLAINED_MAX = 5000;

export async function overview(holder, run) {
  const [picture, attempts] = [panel("Graph"), panel("Attempts")];
  const [about, telling] = [el("div", null), el("div", null)];
  let [drawn, told] = ["", null];

  async function again() {
    const key = JSON.stringify([run.graph.layout, [...run.states]]);
    if (key !== drawn) {
      drawn = key;
      replace(picture, el("h2", null, "Graph ", cmd(`glovebox graph ${run.id}`)), graph(run));
    }
    const [why, tasks] = await Promise.all([run.verdict.journal.records > EXPLAINED_MAX ? null : run.read("why"), run.read("tasks")]);
    replace(about, el("h2", null, run.verdict.failure ? "Cause" : run.verdict.finished ? "Result" : "Now", " ", cmd(`glovebox why ${run.id}`)), ...causes(run, why));
    // What a person types stays when the run goes on.
    const agent = agentNow(run);
    if (agent !== told) replace(telling, agent === null ? null : steer(run, agent));
    told = agent;
    replace(attempts, el("h2", null, "Attempts ", cmd(`glovebox tasks ${run.id}`)), timeline(run, tasks.tasks));
  }

  replace(holder, el("div", { class: "columns" }, el("div", null, panel(null, about, telling), attempts), picture));
  await again();
  return { again };
}

function causes(run, why) {
  const { verdict } = run;
  const parts = [];
  for (const question of verdict.open_questions ?? []) {
    parts.push(el("p", null, state({ sign: "?", word: "asks you", tone: "asks" }), " ", el("a", { href: `#/run/${run.id}/gates` }, short(question.text, 300)), " ", el("kbd", null, "a")));
  }
  if (verdict.failure) {
    const node = verdict.failed_node ?? why?.end?.failed_node;
    parts.push(
      el("p", null, state({ sign: "✕", word: "failed", tone: "fail" }), " ", node ? [el("a", { href: stageLink(run, node) }, line(node)), ": "] : null, short(verdict.failure.reason, 2000), " ", record(run.id, verdict.journal.records)),
      el("p", { class: "muted" }, `${line(verdict.failure.class)} `, el("code", null, line(verdict.failure.code)), " ", verdict.failure.code.includes("/") ? null : cmd(`glovebox explain ${verdict.failure.code}`)),
    );
    for (const command of why?.end?.commands ?? []) parts.push(el("p", null, el("code", null, short(quoted(command.argv), 500)), ` ${line(command.ended)}`));
    parts.push(...printed(run, node));
    if (verdict.resumes_at) parts.push(el("p", null, "A resume begins at ", el("a", { href: stageLink(run, verdict.resumes_at) }, line(verdict.resumes_at)), ". ", cmd(`glovebox resume ${run.id}`)));
  }
  for (const branch of (verdict.branches_now ?? []).filter((branch) => branch.node)) {
    parts.push(
      el("p", null, "now: ", el("a", { href: stageLink(run, branch.node) }, line(branch.node)), `, visit ${branch.visit}, attempt ${branch.attempt}, since ${time(branch.since)}`, branch.waits_for ? `, waits for ${line(branch.waits_for)}${branch.due_at ? ` until ${time(branch.due_at)}` : ""}` : "", branch.phase === "running" ? [": ", el("a", { href: `${stageLink(run, branch.node)}/output` }, "what it prints")] : null),
    );
  }
  if (verdict.status === "success") parts.push(el("p", null, "The run reached its end.", verdict.unverified.length > 0 ? " What only stages claimed is not proved." : ""));
  return [...parts, el("h3", null, "Last steps"), why ? steps(run, why.steps.slice(-STEPS)) : el("p", { class: "muted" }, "This run is long: ", el("a", { href: `#/run/${run.id}/records` }, "its records"), ", or ", cmd(`glovebox why ${run.id}`))];
}

/** The end of what the last failed command of a stage printed. */
function printed(run, node) {
  const command = run.evidence.commands.findLast((one) => one.node === node && kind(one.proof) !== "proved" && one.evidence.code !== 0);
  const shown = [command?.stderr, command?.stdout].find((one) => one?.head);
  if (!shown) return [];
  return [el("pre", { tabindex: "0" }, block((shown.tail ?? shown.head).slice(-PRINTED_MAX))), el("p", null, el("a", { href: `${stageLink(run, node)}/output` }, "all of its output"), " ", record(run.id, command.record))];
}

function steps(run, last) {
  const item = (step) => el("li", null, record(run.id, step.record), " ", ...stepText(run, step), step.is_undone ? " (undone by a resume)" : "");
  return el("ol", { class: "plain-list" }, last.map(item));
}

function stepText(run, step) {
  const node = el("a", { href: stageLink(run, step.node) }, short(step.node, 60));
  if (step.attempt) return [node, ` ${line(step.attempt.status)}`, step.attempt.failure ? `: ${short(step.attempt.failure.reason, 300)}` : "", step.attempt.retried ? ", tried again" : ""];
  const route = step.route ?? step.no_route;
  if (route) {
    const taken = route.edges.find((edge) => edge.taken);
    const because = taken ? `${line(taken.condition) || line(taken.reason)}${taken.line ? ` (line ${taken.line})` : ""}` : "no edge fits";
    return [node, ` → ${line(route.to ?? "nowhere")}, because `, el("code", null, short(because, 300))];
  }
  if (step.passed) return [node, ` ${line(step.passed.status)}`];
  if (step.gate_unmet) return [node, " reached the end, but ", el("code", null, line(step.gate_unmet.gate)), " is not met"];
  if (step.restarted) return [node, " began the run again at ", line(step.restarted.at)];
  if (step.joined) return [node, ` joined its branches: ${line(step.joined.status)}`];
  if (step.branch_ended) return [node, ` ended branch ${line(step.branch_ended.ended)}: ${line(step.branch_ended.outcome)}`];
  return [node];
}

/** Returns the agent at work to which this person may send messages; null if there is none. */
function agentNow(run) {
  const handlers = new Map(run.graph.nodes.map((node) => [node.id, node.handler]));
  const agent = (run.verdict.branches_now ?? []).find((branch) => branch.phase === "running" && handlers.get(branch.node) === "codergen");
  return agent && run.isOwn && may("operate") ? agent.node : null;
}

/** The form that sends a message to an agent at work. */
function steer(run, agent) {
  const field = el("input", { id: "steer", maxlength: "16384" });
  const submit = async (event) => {
    event.preventDefault();
    const text = field.value;
    field.value = "";
    try {
      await run.act(`/stages/${encodeURIComponent(agent)}/steer`, { text }, `sent to ${agent}`);
    } catch (error) {
      field.value = text;
      say(error.message);
    }
  };
  return el("form", { submit, class: "row" }, el("label", { class: "grow", for: "steer" }, `Tell ${line(agent)} something`, field), el("button", { "data-key": "send" }, "Send"));
}

/** One row for each stage, one bar for each attempt in the order of the records. It is the list twin of the graph. */
function timeline(run, tasks) {
  const proofs = new Map();
  for (const command of run.evidence.commands) {
    const known = proofs.get(command.attempt_id);
    const found = kind(command.proof);
    if (known !== "reserved" && (found === "proved" || found === "reserved")) proofs.set(command.attempt_id, found);
  }
  const rows = inOrder(run.graph).map((node) => {
    const own = tasks.filter((task) => task.node === node.id);
    const all = own.flatMap((task) => task.attempts.map((attempt) => ({ task, attempt })));
    const bars = all.slice(-BARS_MAX).map(({ task, attempt }) => bar(run, task, attempt, proofs.get(attempt.attempt_id)));
    const refused = run.verdict.refused.filter((one) => one.node === node.id).reduce((sum, one) => sum + one.times, 0);
    const marks = [refused ? `⊘ refused ${refused}` : "", run.verdict.quarantined.some((one) => one.node === node.id) ? "⊟ set aside" : ""].filter(Boolean).join("  ");
    return el(
      "tr",
      null,
      el("td", null, el("a", { href: stageLink(run, node.id), "data-key": `stage-${node.id}` }, short(node.id, 60))),
      el("td", null, state(run.states.get(node.id) ?? { sign: "○", word: "not reached", tone: "plain" })),
      el("td", { class: "bars" }, el("div", { class: "bars" }, all.length > bars.length ? el("span", { class: "muted" }, `… ${all.length - bars.length} earlier`) : null, bars)),
      el("td", null, marks),
    );
  });
  const head = el("tr", null, ["stage", "state", "attempts, oldest first", ""].map((text) => el("th", { scope: "col" }, text)));
  return el("div", { class: "scroll" }, el("table", { class: "attempts stack" }, el("thead", null, head), el("tbody", null, rows)));
}

function bar(run, task, attempt, proof) {
  const shown = attemptState(attempt, task, proof);
  const reason = attempt.failure ? `: ${short(attempt.failure.reason, 200)}` : "";
  const text = `visit ${task.visit}, attempt ${attempt.ordinal}, ${shown.word}${reason}`;
  const which = attempt.ordinal > 1 ? `${task.visit}.${attempt.ordinal}` : String(task.visit);
  const mark = task.work === "handler" ? "" : ` ${task.work}`;
  return el("a", { class: `bar ${shown.tone}`, href: `#/run/${run.id}/records/${attempt.finished_record ?? attempt.started_record}`, title: text, "aria-label": `${line(task.node)} ${text}` }, `${shown.sign} ${which}${mark}`);
}

/** Returns the stages as the picture has them, from top to bottom. */
export function inOrder({ layout, nodes }) {
  const place = new Map(layout.nodes.map((node, index) => [node.id, node.y * 1e4 + index]));
  return nodes.toSorted((one, other) => place.get(one.id) - place.get(other.id));
}

export function stageLink(run, node) {
  return `#/run/${run.id}/stage/${encodeURIComponent(node)}`;
}

