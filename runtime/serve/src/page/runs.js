// The runs of the project, newest first: state, proof, and what each one is at.

import { get, path } from "./api.js";
import { button, cmd, el, empty, problem, replace, say, state } from "./dom.js";
import { list } from "./list.js";
import { countsOfVerdict, runState } from "./states.js";
import { duration, line, money, short } from "./text.js";

const AGAIN_MS = 2000;
const PAGE = 100;
const FILTERS = [["", "all"], ["running", "running"], ["asks", "asks you"], ["paused", "paused"], ["fail", "failed"], ["success", "ok"], ["unfinished", "unfinished"]];

export async function runs(holder, where, frame) {
  const known = { rows: [], gates: new Map(), verdicts: new Map(), isAll: false, isLoading: false };
  const wanted = { state: where.query.get("state") ?? "", pipeline: where.query.get("q") ?? "" };
  let [isOpen, timer] = [true, 0];

  const isNarrow = matchMedia("(max-width: 760px)").matches;
  const rows = list({ label: "runs", height: isNarrow ? 76 : 40, row: rowOf, need, open: (index) => (location.hash = `#/run/${known.rows[index].id}`) });
  const filter = el("input", { id: "filter", type: "search", placeholder: "filter by pipeline", "aria-label": "filter by pipeline", value: wanted.pipeline, change: () => go(wanted.state, filter.value) });
  const chips = el("div", { class: "row", role: "group", "aria-label": "state" });
  const notes = el("div", null, el("p", { class: "muted" }, "loading…"));

  function go(state, pipeline) {
    const query = new URLSearchParams();
    if (state) query.set("state", state);
    if (pipeline) query.set("q", pipeline);
    location.hash = query.size > 0 ? `#/runs?${query}` : "#/runs";
  }

  function query(before) {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (wanted.state && wanted.state !== "asks") query.set("state", wanted.state);
    if (wanted.pipeline) query.set("pipeline", wanted.pipeline);
    if (before) query.set("before", before);
    return `/runs?${query}`;
  }

  function take(found) {
    return wanted.state === "asks" ? found.filter((run) => known.gates.has(run.id)) : found;
  }

  async function refresh() {
    const [{ gates }, { runs: found }] = await Promise.all([get("/gates"), get(query())]);
    known.gates = new Map(gates.map((gate) => [gate.run_id, gate]));
    const oldest = found.at(-1)?.id;
    const at = known.rows.findIndex((run) => run.id === oldest);
    const older = at >= 0 ? known.rows.slice(at + 1) : [];
    if (older.length === 0) known.isAll = found.length < PAGE;
    known.rows = [...take(found), ...older];
    known.last = older.at(-1)?.id ?? oldest;
    draw();
  }

  async function more() {
    if (known.isAll || known.isLoading || !known.last) return;
    known.isLoading = true;
    try {
      const found = (await get(query(known.last))).runs;
      known.isAll = found.length < PAGE;
      known.last = found.at(-1)?.id ?? known.last;
      known.rows = [...known.rows, ...take(found)];
      draw();
    } finally {
      known.isLoading = false;
    }
  }

  function need(first, last) {
    if (last >= known.rows.length - 10) more().catch((error) => say(error.message));
    for (const run of known.rows.slice(first, last + 1)) summary(run);
  }

  // The summary of a run says why it failed, and what was proved where its row does not. It is read once for each state of a
  // run that is on the screen.
  async function summary(run) {
    const key = `${run.status} ${run.duration_ms}`;
    const kept = known.verdicts.get(run.id);
    const isEnough = run.status === "unreadable" || (run.proof && run.status !== "fail");
    if (isEnough || kept?.key === key) return;
    known.verdicts.set(run.id, { key, verdict: kept?.verdict ?? null });
    try {
      known.verdicts.set(run.id, { key, verdict: await get(path`/runs/${run.id}`) });
      rows.draw();
    } catch {
      known.verdicts.set(run.id, { key, verdict: null });
    }
  }

  function rowOf(index) {
    const run = known.rows[index];
    if (!run) return null;
    const verdict = known.verdicts.get(run.id)?.verdict;
    const gate = known.gates.get(run.id);
    const counts = run.proof ?? (verdict ? countsOfVerdict(verdict) : null);
    const shown = runState({ ...run, open_questions: gate ? [gate] : [] }, counts);
    return el(
      "div",
      null,
      el("span", { class: "is" }, state(shown)),
      el("span", { class: "mono run-id", title: line(run.id) }, line(run.short)),
      el("b", { class: "pipeline" }, short(run.pipeline || "?", 40)),
      el("span", { class: "when" }, duration(run.duration_ms)),
      el("span", { class: "wide cost" }, money(run.cost, run.is_estimated)),
      proofOf(run, counts),
      el("span", { class: "grow muted" }, short(what(run, gate, verdict), 200)),
      run.is_own || run.status === "unreadable" ? null : state({ sign: "×", word: "foreign", tone: "skipped" }),
    );
  }

  function draw() {
    rows.size(known.rows.length);
    const pressed = FILTERS.map(([word, text]) =>
      button(word === "asks" ? `${text} ${known.gates.size}` : text, () => go(word, filter.value), { "aria-pressed": String(word === wanted.state), "data-key": word || "all" }),
    );
    replace(chips, ...pressed);
    const none = known.rows.length === 0;
    rows.node.hidden = none;
    const isFiltered = wanted.state || wanted.pipeline;
    replace(notes, none ? empty(isFiltered ? "No run is in this list." : "No runs yet. A run begins with", isFiltered ? null : "glovebox run pipeline.dot") : null);
  }

  async function again() {
    if (!isOpen) return;
    try {
      if (!document.hidden) await refresh();
      frame.connection("live");
    } catch (error) {
      if (error.status !== 0) replace(notes, problem(error));
      frame.connection("behind");
      if (error.status === 401) return frame.failed(error, holder);
    }
    timer = setTimeout(again, AGAIN_MS);
  }

  replace(
    holder,
    el("div", { class: "row" }, el("h1", null, "Runs"), cmd("glovebox ls --json"), el("span", { class: "grow" }), filter, el("a", { href: "#/new" }, "New run")),
    chips,
    notes,
    rows.node,
  );
  rows.node.hidden = true;
  await refresh();
  frame.connection("live");
  timer = setTimeout(again, AGAIN_MS);
  const failure = () => rows.next((at) => known.rows[at].status === "fail") || say("no run in this list failed");
  const question = () => {
    const run = known.rows.find((run) => known.gates.has(run.id));
    return run ? (location.hash = `#/run/${run.id}/gates`) : say("no question waits");
  };
  return {
    keys: { j: () => rows.move(1), k: () => rows.move(-1), "/": () => filter.focus(), ".": failure, a: question },
    leave() {
      isOpen = false;
      clearTimeout(timer);
    },
  };
}

function proofOf(run, counts) {
  if (!counts) return el("span", { class: "proofs" });
  const parts = [];
  if (counts.proved) parts.push(`proved ${counts.proved}`);
  if (counts.reserved) parts.push(`reserved ${counts.reserved}`);
  if (counts.claimed) parts.push(`claimed ${counts.claimed}`);
  if (!counts.proved && !counts.reserved && run.status === "success") parts.push("NOTHING PROVED");
  return el("span", { class: "proofs" }, parts.map((text) => el("span", null, text)));
}

function what(run, gate, verdict) {
  if (run.problem) return run.problem;
  if (gate) return gate.text;
  if (verdict?.failure) return `${verdict.failed_node ? `${verdict.failed_node}: ` : ""}${verdict.failure.reason}`;
  const at = (run.branches ?? []).filter((branch) => branch.node).map((branch) => `${branch.node} (visit ${branch.visit})${branch.waits_for ? ` waits for ${branch.waits_for}` : ""}`);
  return at.join(", ");
}
