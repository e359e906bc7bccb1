// Every command with its receipt, and every claim without one.

import { button, cmd, el, empty, record, replace, state } from "./dom.js";
import { stageLink } from "./overview.js";
import { CLAIMED, kind, PROOFS } from "./states.js";
import { bytes, digest, duration, line, quoted, short } from "./text.js";
import { long } from "./stage.js";

const FILTERS = [["all", "all"], ["proved", "proved"], ["reserved", "reserved"], ["not", "not proved"], ["none", "ran"], ["claimed", "claimed"]];
const SHOWN = 100;

export async function evidence(holder, run, parts, query) {
  let [wanted, most] = [query.get("only") ?? "all", SHOWN];
  const [head, chips, body] = [el("div", { class: "row" }), el("div", { class: "row", role: "group", "aria-label": "filter" }), el("div", null)];

  function draw() {
    const { evidence } = run;
    const commands = evidence.commands.map((command) => ({ kind: kind(command.proof), command })).toReversed();
    const claims = evidence.unverified.map((claim) => ({ kind: "claimed", claim }));
    const all = [...claims, ...commands];
    const numbers = (word) => (word === "all" ? all.length : all.filter((one) => one.kind === word).length);
    replace(head, el("h2", null, "Every command, and every claim without one"), el("span", { class: "muted" }, "head ", el("code", null, digest(evidence.journal.hash)), " "), record(run.id, evidence.journal.records), cmd(`glovebox evidence ${run.id} --json`));
    const choose = (word) => () => {
      [wanted, most] = [word, SHOWN];
      draw();
    };
    replace(chips, ...FILTERS.map(([word, text]) => button(`${text} ${numbers(word)}`, choose(word), { "aria-pressed": String(word === wanted), "data-key": word })));
    const chosen = all.filter((one) => wanted === "all" || one.kind === wanted);
    const more = chosen.length > most ? button(`show ${Math.min(SHOWN, chosen.length - most)} of ${chosen.length - most} more`, () => ((most += SHOWN), draw()), { "data-key": "more" }) : null;
    const open = new Set([...body.querySelectorAll("details[open]")].map((one) => one.dataset.key));
    const rows = chosen.slice(0, most).map((one) => (one.claim ? claimRow(run, one.claim) : commandRow(run, one.command, open)));
    replace(body, chosen.length === 0 ? empty("Nothing is in this list.", `glovebox evidence ${run.id}`) : el("ul", { class: "rows" }, rows), more);
  }

  replace(holder, head, el("p", { class: "muted" }, "The numbers above count stages, by their last attempts. This list has the commands of every attempt."), chips, body);
  draw();
  return { again: draw };
}

function claimRow(run, claim) {
  return el("li", null, state(CLAIMED), " ", el("a", { href: stageLink(run, claim.node) }, line(claim.node)), ` visit ${claim.visit} said “${line(claim.status)}”; no receipt supports it (${line(claim.handler)})`);
}

function commandRow(run, command, open) {
  const { evidence } = command;
  const ended = evidence.how === "exited" ? `exit ${evidence.code}` : line(evidence.how);
  const undone = command.is_undone ? " (undone by a resume)" : "";
  const summary = el("summary", null, state(PROOFS[command.proof] ?? { sign: "?", word: line(command.proof), tone: "plain" }), " ", el("b", null, short(command.node, 60)), ` visit ${command.visit} · `, el("code", null, short(quoted(evidence.argv), 300)), ` ${[ended, duration(evidence.duration_ms), `sandbox ${line(evidence.tier)}`].join(" · ")}${undone} `, record(run.id, command.record));
  return el("li", null, el("details", { "data-key": evidence.id, open: open.has(evidence.id) }, summary, details(run, command)));
}

function details(run, { evidence, stdout, stderr, tree, layers }) {
  const fact = (name, ...value) => [el("dt", { class: "muted" }, name), el("dd", null, ...value)];
  const files = (evidence.startup ?? []).map((file) => el("div", null, el("code", null, short(file.path, 200)), ` written by ${line(file.by)}, loaded by ${line(file.reader)}`));
  return el(
    "div",
    null,
    el(
      "dl",
      { class: "facts" },
      fact("command", el("code", null, short(quoted(evidence.argv), 4000))),
      evidence.program ? fact("program", el("code", null, short(evidence.program.path, 300)), " ", el("code", null, digest(evidence.program.digest))) : null,
      fact("in", evidence.cwd ? el("code", null, line(evidence.cwd)) : "the workspace", ", files ", el("code", null, digest(tree))),
      fact("sandbox", line((layers ?? []).join(", ")) || "none"),
      (evidence.degradations ?? []).length ? fact("weaker", line(evidence.degradations.join(", "))) : null,
      evidence.no_proof ? fact("proves nothing", line(evidence.no_proof)) : null,
      evidence.over ? fact("ended by", line(evidence.over)) : null,
      evidence.isolation && evidence.isolation !== "isolated" ? fact("reserved", line(evidence.isolation)) : null,
      files.length ? fact("reserved", "it loads files that stages wrote", files) : null,
    ),
    excerpt("standard output", evidence.stdout_bytes, stdout),
    excerpt("standard error", evidence.stderr_bytes, stderr),
    el("p", { class: "muted" }, "the whole output is on the stage’s ", el("a", { href: `${stageLink(run, evidence.node)}/output` }, "Output")),
  );
}

function excerpt(name, length, shown) {
  if (!length) return el("p", { class: "muted" }, `${name}: empty`);
  if (typeof shown === "string") return el("p", { class: "muted" }, `${name}, ${bytes(length)}: ${line(shown)}; to see it this token needs the right `, el("code", null, "withheld"));
  if (!shown?.head) return el("p", { class: "muted" }, `${name}: ${bytes(length)}`);
  return el("div", null, el("h3", null, `${name}, ${bytes(length)}`), long(shown.head), shown.tail ? [el("p", { class: "muted" }, "…"), long(shown.tail)] : null);
}
