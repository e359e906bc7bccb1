// One stage: what it could do, what it did, what it tried and was refused; then its evidence, conversation and output.

import { lines, path } from "./api.js";
import { button, cmd, el, empty, panel, problem, record, replace, state, table } from "./dom.js";
import { live } from "./live.js";
import { inOrder, stageLink } from "./overview.js";
import { block, bytes, count, duration, line, money, quoted, short } from "./text.js";

/** Maximum length of a text that is shown at once. The rest is shown on demand. */
export const TEXT_MAX = 64 << 10;
const PARTS = [["", "Scope"], ["conversation", "Conversation"], ["output", "Output"], ["attempts", "Attempts"]];

export async function stage(holder, run, [node, part = ""]) {
  if (node === undefined) return stages(holder, run);
  const known = run.graph.nodes.find((one) => one.id === node);
  if (!known) return void replace(holder, el("p", null, "This pipeline has no stage ", el("code", null, short(node, 100)), "."));
  const [head, now, body] = [el("div", null), el("div", null), el("div", null)];
  const makers = { "": scope, conversation, output, attempts };
  let [drawn, followed, following] = ["", "", null];

  // Each attempt that runs is followed from its beginning to its end.
  function follow() {
    const running = part === "output" ? runningNow(run, node) : "";
    if (running === followed) return;
    following?.stop();
    following = running ? live(run, node) : null;
    followed = running;
    replace(now, following?.node);
  }

  async function again() {
    const records = await stageRecords(run, node);
    follow();
    const key = `${records.length} ${run.states.get(node)?.word}`;
    if (key === drawn) return;
    drawn = key;
    replace(head, ...headOf(run, known, records, part));
    try {
      replace(body, ...(await (makers[part] ?? scope)(run, known, records)));
    } catch (error) {
      replace(body, problem(error));
    }
  }

  replace(holder, head, now, body);
  await again();
  return { again, leave: () => following?.stop() };
}

/** Returns a key of the attempts of a stage that run now; empty if there is none. */
function runningNow(run, node) {
  const running = (run.verdict.branches_now ?? []).filter((branch) => branch.node === node && branch.phase === "running");
  return running.map((branch) => `${branch.branch} ${branch.visit} ${branch.attempt}`).join();
}

function stages(holder, run) {
  const again = () => {
    const rows = inOrder(run.graph).map((node) => [el("a", { href: stageLink(run, node.id) }, short(node.id, 80)), state(run.states.get(node.id)), line(node.handler), short(node.label ?? "", 80)]);
    replace(holder, table(["stage", "state", "kind", "label"], rows));
  };
  again();
  return { again };
}

async function stageRecords(run, node) {
  const all = await run.read(`stages/${encodeURIComponent(node)}`);
  return Array.isArray(all) ? all : (all.records ?? []);
}

function finished(records) {
  return records.filter((one) => one.event.kind === "stage.finished");
}

function headOf(run, node, records, part) {
  const last = finished(records).at(-1);
  const event = last?.event ?? {};
  const facts = [node.handler, event.visit ? `visit ${event.visit}, attempt ${event.ordinal}` : "", event.model ? `model ${event.model.model}` : "", event.turns_used ? count(event.turns_used, "turn") : "", duration(event.duration_ms), money(event.cost, event.is_estimated)];
  const link = ([key, text]) => el("a", { href: stageLink(run, node.id) + (key ? `/${key}` : ""), "aria-current": key === part ? "page" : null }, text);
  return [
    el("div", { class: "row" }, el("h2", null, short(node.id, 80)), state(run.states.get(node.id)), el("span", { class: "muted" }, facts.filter(Boolean).map(line).join(" · ")), last ? record(run.id, last.seq) : null, el("a", { href: `#/run/${run.id}/records?node=${encodeURIComponent(node.id)}` }, "records"), cmd(`glovebox show ${run.id} ${quoted([node.id])}`)),
    el("nav", { class: "tabs", "aria-label": "parts of the stage" }, PARTS.map(link)),
  ];
}

async function scope(run, node, records) {
  const plan = await run.read("plan");
  const last = finished(records).at(-1)?.event;
  const refused = run.verdict.refused.filter((one) => one.node === node.id);
  const aside = run.verdict.quarantined.filter((one) => one.node === node.id);
  const could = plan.nodes.find((one) => one.id === node.id)?.could;
  const listed = (values) => (values?.length ? el("ul", { class: "plain-list mono" }, values.map((value) => el("li", null, short(value, 300)))) : null);
  const tried = (...operations) => {
    const own = refused.filter((one) => operations.includes(one.operation));
    return own.map((one) => el("div", null, el("code", null, short(one.path, 200)), one.times > 1 ? ` ×${one.times}` : ""));
  };
  const grants = (name) => (could ? (listed(could[name]) ?? "nothing") : "not known");
  const wrote = (last?.changes ?? []).map((change) => el("div", null, el("code", null, short(change.path, 200)), change.op === "write" ? ` ${bytes(change.bytes)}` : ` ${line(change.op)}`));
  const commands = run.evidence.commands.filter((one) => one.node === node.id && one.attempt_id === last?.attempt_id);
  const ran = commands.map((one) => el("div", null, el("code", null, short(quoted(one.evidence.argv), 200)), ` ${exit(one.evidence)}`));
  const hosts = Object.entries(last?.network?.hosts ?? {}).map(([host, traffic]) => el("div", null, el("code", null, line(host)), ` ${traffic.requests}`));
  const rows = [
    ["read", grants("read"), "not recorded", tried("read")],
    ["write", grants("write"), wrote.length ? wrote : "nothing", [...tried("write"), ...aside.map((one) => el("div", null, el("code", null, short(one.path, 200)), " set aside: ", short(one.reason, 200)))]],
    ["run", grants("execute"), ran.length ? ran : "nothing", tried("run", "exec")],
    ["reach", grants("reach"), hosts.length ? hosts : "nothing", tried("reach", "connect", "network")],
    ["ask", could ? (could.model ? "a model" : "nothing") : "not known", last?.tokens?.input ? `${last.tokens.input + last.tokens.output} tokens ${money(last.cost, last.is_estimated)}` : "nothing", tried("model")],
  ];
  const others = refused.filter((one) => !["read", "write", "run", "exec", "reach", "connect", "network", "model"].includes(one.operation));
  if (others.length) rows.push(["other", "", "", others.map((one) => el("div", null, line(one.operation), " ", el("code", null, short(one.path, 200))))]);
  const cells = rows.map((row) => row.map((cell) => (Array.isArray(cell) && cell.length === 0 ? "–" : cell)));
  return [
    plan.record > 1 ? el("p", null, "These grants are those of the plan since record ", record(run.id, plan.record), ".") : null,
    table(["", "could (grants)", "did, last attempt", "tried, refused"], cells, { class: "stack names" }),
    ...refused.map((one) => el("p", null, state({ sign: "⊘", word: "refused", tone: "plain" }), ` ${line(one.operation)} `, el("code", null, short(one.path, 200)), `: ${short(one.reason, 300)}; ${short(one.help, 300)}`)),
    el("h3", null, "Attributes"),
    table(["attribute", "value"], Object.entries(node).map(([name, value]) => [line(name), el("code", null, short(value, 2000))]), { class: "stack names" }),
  ];
}

function exit(evidence) {
  return evidence.how === "exited" ? `exit ${evidence.code}` : line(evidence.how);
}

async function conversation(run, node) {
  const turns = await lines(path`/runs/${run.id}/stages/${node.id}/transcript`);
  if (turns.length === 0) return [empty("No model was asked by this stage.", `glovebox transcript ${run.id} ${quoted([node.id])}`)];
  const said = (part) => [part.kind === "text" ? null : el("span", { class: "muted" }, `${line(part.kind)} ${(part.fields ?? []).map((field) => line(field.join("="))).join(" ")}`), long(part.text)];
  const message = (role, parts) => el("div", { class: "panel" }, el("h3", null, line(role)), parts.map(said));
  return [
    el("p", null, cmd(`glovebox transcript ${run.id} ${quoted([node.id])}`)),
    ...turns.slice(-40).map((turn) => el("details", { open: turn === turns.at(-1) }, el("summary", null, `visit ${turn.visit}, turn ${turn.turn}, ${line(turn.provider)}${turn.error ? `, ${short(turn.error, 200)}` : ""}`), (turn.asked ?? []).map((one) => message(one.role, one.parts)), turn.answer ? message("answer", turn.answer) : null)),
  ];
}

async function output(run, node, records) {
  if (finished(records).length === 0) return [runningNow(run, node.id) ? null : empty("This stage has not ended yet.")];
  const found = await lines(path`/runs/${run.id}/stages/${node.id}/logs`);
  const shown = found.filter((one) => one.bytes > 0).slice(-20).reverse();
  return [
    el("p", null, cmd(`glovebox logs ${run.id} ${quoted([node.id])}`)),
    shown.length === 0 ? el("p", { class: "muted" }, "No command of this stage printed anything.") : null,
    ...shown.map((one) => panel(`visit ${one.visit}, attempt ${one.ordinal}, ${line(one.stream)}, ${bytes(one.bytes)}`, long(one.text))),
  ];
}

/** A text of a stage. Only its beginning is in the page until the rest is asked for. */
export function long(text) {
  const shown = el("pre", { tabindex: "0" }, block((text ?? "").slice(0, TEXT_MAX)));
  if ((text ?? "").length <= TEXT_MAX) return shown;
  const all = button(`show all of ${bytes(text.length)}`, () => {
    replace(shown, document.createTextNode(block(text)));
    all.remove();
  });
  return el("div", null, shown, all);
}

async function attempts(run, node) {
  const { tasks } = await run.read("tasks");
  const own = tasks.filter((task) => task.node === node.id);
  if (own.length === 0) return [empty("This stage was not reached.", `glovebox why ${run.id} ${quoted([node.id])}`)];
  const rows = own.flatMap((task) => task.attempts.map((attempt) => [`${task.visit}.${attempt.ordinal}`, line(attempt.status ?? "not ended"), attempt.failure ? [el("code", null, line(attempt.failure.code)), ` ${short(attempt.failure.reason, 300)}`] : "", (attempt.commands ?? []).map((one) => el("div", null, el("code", null, short(quoted(one.argv), 200)), ` exit ${one.code ?? "–"}`)), record(run.id, attempt.finished_record ?? attempt.started_record)]));
  const blocked = own.map((task) => task.blocked).find(Boolean);
  return [blocked ? el("p", null, state({ sign: "…", word: "blocked", tone: "held" }), ` ${short(JSON.stringify(blocked), 1000)}`) : null, table(["visit.attempt", "ended", "because", "commands", "record"], rows.slice(-200))];
}

