// One run: its head, its proof, and the tabs. The documents are read again when the server says that the run went on.

import { get, may, path, post } from "./api.js";
import { button, cmd, el, record, replace, say, state } from "./dom.js";
import { follow } from "./stream.js";
import { CLAIMED, proofCounts, runState, stageStates } from "./states.js";
import { count, duration, line, money, short } from "./text.js";
import { inOrder, overview } from "./overview.js";
import { stage } from "./stage.js";
import { evidence } from "./evidence.js";
import { changes } from "./changes.js";
import { gates } from "./gates.js";
import { holdouts } from "./holdouts.js";
import { records } from "./records.js";

const TABS = [["", "Run", overview], ["stage", "Stages", stage], ["evidence", "Evidence", evidence], ["changes", "Changes", changes], ["gates", "Gates", gates], ["holdouts", "Hold-outs", holdouts], ["records", "Records", records]];
/** Minimum time between two times at which the documents are read again. */
const READ_EVERY_MS = 700;
/** Interval at which a run that no process drives is looked at. */
const LOOK_EVERY_MS = 3000;

export async function screenOfRun(holder, where, frame) {
  const run = { id: where.parts[0], documents: new Map(), stale: new Set(), isOwn: true };
  let [tab, at, stop, timer, ended, readAt, isOpen, asksCancel] = [null, where, null, 0, 0, 0, true, false];
  const top = el("div", null);
  const tabs = el("nav", { class: "tabs", "aria-label": "parts of the run" });
  const body = el("div", null);

  /** Returns a document of the run, read again if the run went on since. */
  run.read = async (name, query = "") => {
    const key = name + query;
    if (run.documents.has(key) && !run.stale.has(key)) return run.documents.get(key);
    const url = name === "tasks" ? `/tasks?run=${encodeURIComponent(run.id)}` : name === "graph" ? path`/pipelines/${run.id}/graph?format=json` : path`/runs/${run.id}` + (name ? `/${name}` : "") + query;
    const found = await get(url);
    run.documents.set(key, found);
    run.stale.delete(key);
    return found;
  };
  run.act = act;

  async function act(verb, body, said) {
    const done = await post(verb.startsWith("/") ? path`/runs/${run.id}` + verb : path`/pipelines/${run.id}/` + verb, body);
    say(said);
    await again();
    if (isOpen) listen();
    return done;
  }

  async function again() {
    for (const key of run.documents.keys()) run.stale.add(key);
    readAt = Date.now();
    [run.verdict, run.graph, run.evidence] = await Promise.all([run.read(""), run.read("graph"), run.read("evidence")]);
    run.states = stageStates(run.graph, run.evidence, run.verdict);
    if (!isOpen) return;
    drawTop();
    await tab?.again?.();
  }

  // Many records can arrive at once; the documents are read at most once in this time.
  function soon() {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      again().catch((error) => isOpen && (error.status === 0 ? frame.connection("behind") : frame.failed(error, body)));
    }, Math.max(0, readAt + READ_EVERY_MS - Date.now()));
  }

  function event(name, id, data) {
    if (id !== null) run.head = id;
    if (name === "question.asked") say(`a question: ${line(data.event?.text)} — press a`);
    if (name === "run.finished") say(`the run has ended: ${line(data.event?.status)}`);
    if (name === "end" && data.code) frame.failed({ status: 1, message: data.message, problem: data }, body);
    if (name === "state" || name === "end") soon();
    tab?.event?.(name, id, data);
  }

  function listen() {
    stop?.();
    clearTimeout(ended);
    const state = (word) => {
      frame.connection(word === "live" ? `live #${run.head ?? run.verdict.journal.records}` : word === "closed" ? "not running" : word);
      if (word === "closed" && isOpen) ended = setTimeout(look, LOOK_EVERY_MS);
    };
    stop = follow(path`/runs/${run.id}/events`, run.verdict.journal.records, { event, state, refused: (error) => frame.failed(error, body) });
  }

  // A run that no process drives can go on: a command resumed it, or this page did.
  async function look() {
    try {
      const now = document.hidden ? run.verdict : await get(path`/runs/${run.id}`);
      if (isOpen && now.journal.hash !== run.verdict.journal.hash) {
        await again();
        return listen();
      }
    } catch (error) {
      if (error.status !== 0) return frame.failed(error, body);
      frame.connection("behind");
    }
    if (isOpen) ended = setTimeout(look, LOOK_EVERY_MS);
    return undefined;
  }

  function drawTop() {
    const { verdict } = run;
    const counts = proofCounts(run.evidence);
    const shown = runState(verdict, counts);
    const spent = [duration(verdict.duration_ms), money(verdict.cost, verdict.is_estimated), verdict.tokens ? `${verdict.tokens.input + verdict.tokens.output} tokens` : ""];
    replace(
      top,
      el("div", { class: "row" }, el("h1", null, short(verdict.pipeline, 60)), el("code", null, line(run.id)), state(shown), el("span", null, spent.filter(Boolean).join(" · ")), tier(verdict), el("span", { class: "grow" }), controls(), cmd(`glovebox show ${run.id} --json`)),
      proof(counts, verdict),
    );
    drawTabs();
  }

  function tier(verdict) {
    const tone = verdict.sandbox_tier === "full" ? "plain" : "reserved";
    return verdict.sandbox_tier === "none" ? null : state({ sign: tone === "plain" ? "▣" : "!", word: `sandbox ${line(verdict.sandbox_tier)}`, tone });
  }

  function controls() {
    if (!run.isOwn) return el("span", { class: "muted" }, "another user’s run: it can only be read");
    if (!may("operate")) return el("span", { class: "muted" }, "to steer it this token needs the right ", el("code", null, "operate"));
    const { status } = run.verdict;
    const does = (text, verb, said, attributes) => button(text, () => act(verb, undefined, said).catch((error) => say(error.message)), { "data-key": verb, ...attributes });
    if (status === "running") return [does("Pause", "/pause", "asked to pause when its stages end"), cancel()];
    if (status === "paused" || status === "unfinished") return [does("Resume", "/resume", "the run goes on"), cancel()];
    return status === "fail" ? does("Resume", "/resume", "the run goes on") : null;
  }

  // The question stays when the run goes on meanwhile.
  function cancel() {
    const ask = (isAsked) => () => {
      asksCancel = isAsked;
      drawTop();
      document.getElementById(isAsked ? "cancel-sure" : "cancel")?.focus();
    };
    if (!asksCancel) return button("Cancel", ask(true), { id: "cancel" });
    return [button("Cancel for good", () => act("cancel", undefined, "canceled").catch((error) => say(error.message)), { id: "cancel-sure" }), button("keep", ask(false), { "data-key": "keep" })];
  }

  function drawTabs() {
    const name = at.parts[1] ?? "";
    const links = TABS.map(([key, text], index) => {
      const count = key === "gates" ? (run.verdict.open_questions ?? []).length : key === "changes" ? run.verdict.changed.length : 0;
      return el("a", { href: `#/run/${run.id}${key ? `/${key}` : ""}`, "aria-current": key === name ? "page" : null, "data-key": `tab-${key}`, "aria-keyshortcuts": String(index + 1) }, text, count ? ` ${count}` : "");
    });
    replace(tabs, ...links);
  }

  async function open(where) {
    at = where;
    tab?.leave?.();
    tab = null;
    drawTabs();
    const found = TABS.find(([key]) => key === (where.parts[1] ?? ""));
    const inner = el("div", null, el("p", { class: "muted" }, "loading…"));
    replace(body, inner);
    if (!found) return replace(inner, el("p", null, "There is no such part of a run."));
    try {
      const made = await found[2](inner, run, where.parts.slice(2), where.query, frame);
      if (inner.isConnected) tab = made;
      else made?.leave?.();
    } catch (error) {
      frame.failed(error, inner);
    }
    return undefined;
  }

  replace(top, el("p", { class: "muted" }, "loading…"));
  replace(holder, top, tabs, body);
  await again();
  run.isOwn = await isOwn(run.verdict);
  if (!run.isOwn) drawTop();
  await open(where);
  if (isOpen) listen();

  const go = (rest) => (location.hash = `#/run/${run.id}${rest}`);
  const stages = () => inOrder(run.graph).map((node) => node.id);
  const keys = {
    g: () => (at.parts[1] ? go("") : document.getElementById("graph")?.focus()),
    e: () => go("/evidence"),
    a: () => (run.verdict.open_questions?.length ? go("/gates") : say("no question waits")),
    ".": () => nextFailure(run, at, go),
    j: () => tab?.move?.(1) ?? step(stages(), at, go, 1),
    k: () => tab?.move?.(-1) ?? step(stages(), at, go, -1),
    "/": () => document.getElementById("filter")?.focus(),
    Escape: () => (location.hash = "#/"),
  };
  TABS.forEach(([key], index) => (keys[String(index + 1)] = () => go(key ? `/${key}` : "")));
  return {
    keys,
    moved(next) {
      if (next.parts[0] !== "run" || next.parts[1] !== run.id) return false;
      open({ ...next, parts: next.parts.slice(1) });
      return true;
    },
    leave() {
      isOpen = false;
      clearTimeout(timer);
      clearTimeout(ended);
      tab?.leave?.();
      stop?.();
    },
  };
}

/** The first thing on each screen of a run: what was proved. */
function proof(counts, verdict) {
  const refused = verdict.refused.reduce((sum, one) => sum + one.times, 0);
  const box = (number, shown, title) => el("li", { class: `state ${number > 0 ? shown.tone : "none"}`, title }, el("span", { "aria-hidden": "true" }, `${shown.sign} `), `${shown.word} ${number}`);
  return el(
    "ul",
    { class: "proof", id: "proof", "aria-label": "what was proved" },
    box(counts.proved, { sign: "✓", word: "proved", tone: "proved" }, "stages whose last attempt has a receipt that proves its success"),
    box(counts.reserved, { sign: "!", word: "with reservation", tone: "reserved" }, "stages with a receipt that proves less, for example because the program under test was not isolated"),
    box(counts.claimed, { ...CLAIMED, tone: "plain" }, "stages that said that they succeeded, without a receipt"),
    box(counts.not, { sign: "✕", word: "not proved", tone: "fail" }, "stages whose checking command did not pass"),
    refused > 0 ? box(refused, { sign: "⊘", word: "refused", tone: "plain" }) : null,
    verdict.quarantined.length > 0 ? box(verdict.quarantined.length, { sign: "⊟", word: "set aside", tone: "plain" }) : null,
    el("li", { class: "muted" }, count(verdict.journal.records, "record"), " ", record(verdict.run_id, verdict.journal.records), " ", cmd(`glovebox evidence ${verdict.run_id}`)),
  );
}

async function isOwn(verdict) {
  try {
    const list = await get(path`/runs?pipeline=${verdict.pipeline}`);
    return list.runs.find((run) => run.id === verdict.run_id)?.is_own ?? true;
  } catch {
    return true;
  }
}

function step(stages, at, go, by) {
  const now = at.parts[1] === "stage" ? stages.indexOf(at.parts[2]) : -1;
  go(`/stage/${encodeURIComponent(stages[(now + by + stages.length) % stages.length])}`);
}

function nextFailure(run, at, go) {
  const failed = [...run.states].filter(([, shown]) => shown.tone === "fail").map(([node]) => node);
  if (failed.length === 0) return say("no stage failed");
  const now = at.parts[1] === "stage" ? failed.indexOf(at.parts[2]) : -1;
  return go(`/stage/${encodeURIComponent(failed[(now + 1) % failed.length])}`);
}
