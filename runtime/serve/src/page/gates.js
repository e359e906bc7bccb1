// The open questions of a run: what changed, what was checked, and what each answer allows. No key answers a question: a
// person moves to a choice and presses it.

import { get, may, path, post, session } from "./api.js";
import { button, cmd, el, empty, panel, problem, record, replace, say, state, table } from "./dom.js";
import { fileTable } from "./changes.js";
import { PROOFS } from "./states.js";
import { count, duration, line, money, quoted, short, time } from "./text.js";

export async function gates(holder, run) {
  const typed = new Map();
  const [said, body] = [el("div", null), el("div", null)];
  let drawn = "";

  async function again() {
    const found = await run.read("gates");
    const key = JSON.stringify([found, run.verdict.status]);
    if (key === drawn) return;
    drawn = key;
    const shown = found.gates.map((gate) => question(run, gate, typed, said));
    const kept = found.answered.map((answer) => el("p", null, state({ sign: "✓", word: "answered", tone: "plain" }), " ", el("code", null, line(answer.question)), ` ${line(answer.value)} by ${line(answer.by)} at ${time(answer.at)}`, run.verdict.status === "paused" ? ". The run uses it when it goes on." : ""));
    replace(body, ...kept, ...shown, found.gates.length === 0 && kept.length === 0 ? empty("No question waits.", `glovebox gates ${run.id}`) : null);
    if (found.gates.length > 0 && !document.activeElement?.closest?.("#main input")) body.querySelector("h2")?.focus({ preventScroll: true });
  }

  replace(holder, said, body);
  await again();
  return { again };
}

function question(run, gate, typed, said) {
  const { review } = gate;
  const node = panel(null);
  const due = gate.due_at ? `, default ${gate.default ? `“${line(gate.default.label)}” ` : ""}at ${time(gate.due_at)}` : "";
  const changed = el("div", null);
  replace(
    node,
    el("h2", { tabindex: "-1" }, state({ sign: "?", word: "asks you", tone: "asks" }), " ", short(gate.text, 4000)),
    el("p", { class: "muted" }, el("code", null, line(gate.question)), ` asked by ${line(gate.node)}, visit ${gate.visit}${due}`, " ", cmd(`glovebox gates ${run.id}`)),
    gate.review_problem ? el("p", { role: "alert" }, `The changes cannot be shown: ${short(gate.review_problem, 500)}`) : null,
    gate.recovery ? proposed(gate.recovery) : null,
    review ? reviewed(run, gate, changed) : null,
    answering(run, gate, typed, said),
    changed,
  );
  return node;
}

function proposed(recovery) {
  const rows = recovery.grants.map((write) => [el("code", null, short(write.path, 300)), line(write.op), short(write.why, 1000)]);
  return el("div", null, el("h3", null, "It wrote outside of its scope"), table(["path", "change", "its reason"], rows));
}

function reviewed(run, gate, changed) {
  const { review } = gate;
  const lines = (file) => (file.added === null ? "" : ` +${file.added} -${file.removed}`);
  const files = review.changed.slice(0, 50).map((file) => el("li", null, el("code", null, short(file.path, 300)), file.before === null ? " (new)" : file.after === null ? " (deleted)" : "", lines(file)));
  const show = async () => {
    try {
      replace(changed, el("h3", null, "Changes, as text"), fileTable(run, (await get(path`/runs/${run.id}/diff?question=${gate.question}`)).files, gate.question));
    } catch (error) {
      replace(changed, problem(error));
    }
  };
  const checks = review.checks.map((check) => el("li", null, state(PROOFS[check.proof] ?? { sign: "?", word: line(check.proof), tone: "plain" }), ` ${line(check.node)} `, el("code", null, short(check.command, 300)), ` exit ${check.code ?? "–"} (${line(check.tier)})`, check.is_before_changes ? el("b", null, " before the last changes") : ""));
  const claims = review.unverified.map((claim) => el("li", null, state({ sign: "~", word: "claimed", tone: "claimed" }), ` ${line(claim.node)}`));
  return el(
    "div",
    null,
    el("h3", null, review.since ? `Since ${line(review.since)}: ` : "Since the run began: ", count(review.changed.length, "file")),
    files.length ? el("ul", null, files) : null,
    review.changed.length > 50 ? el("p", { class: "muted" }, `and ${review.changed.length - 50} more`) : null,
    review.changed.length ? button("show the changes", show) : null,
    el("h3", null, "Checked"),
    checks.length + claims.length ? el("ul", { class: "rows" }, checks, claims) : el("p", null, "Nothing was checked."),
    el("p", { class: "muted" }, `spent: ${[`${review.spent.tokens.input + review.spent.tokens.output} tokens`, money(review.spent.cost), duration(review.spent.driven_ms)].filter(Boolean).join(" · ")}`),
  );
}

/** What an answer leads to: the stages that run next, the questions after them, and all that they may do. */
function allows(choice, review) {
  const found = review?.choices.find((one) => one.key === choice.key) ?? (review?.choices.length === 1 ? review.choices[0] : null);
  if (!found) return null;
  const { could } = found;
  const may = (word, values) => (values?.length ? el("li", null, `may ${word} `, el("code", null, short(values.join(", "), 1000))) : null);
  return el(
    "ul",
    null,
    el("li", null, found.stages.length ? `runs ${line(found.stages.join(", "))}` : "runs nothing", found.gates.length ? `; then asks ${line(found.gates.join(", "))}` : "", found.may_end ? "; then the run can end" : ""),
    could ? [may("write", could.write), may("run", could.execute), may("reach", could.reach), may("use the tools", could.tools), could.model ? el("li", null, "may ask a model") : null] : null,
  );
}

function answering(run, gate, typed, said) {
  if (!run.isOwn) return el("p", { class: "muted" }, "Another user’s run: it can only be read.");
  const command = `glovebox answer ${run.id} ${quoted([gate.question])} VALUE`;
  if (!may("operate")) return el("p", { class: "muted" }, "To answer, this token needs the right ", el("code", null, "operate"), ". ", cmd(command));
  const id = `besides-${gate.question}`;
  const isFree = gate.type === "freeform";
  const field = el("textarea", { id, maxlength: "16384", input: () => typed.set(gate.question, field.value) });
  field.value = typed.get(gate.question) ?? "";
  const give = async (value, comment) => {
    try {
      await post(path`/pipelines/${run.id}/questions/${gate.question}/answer`, { value, text: comment });
      say(`answered ${gate.question}: ${value}`);
      replace(said, el("p", null, state({ sign: "✓", word: "answered", tone: "plain" }), ` ${line(gate.question)}: ${line(value)}`, " ", record(run.id, run.verdict.journal.records)));
      if (!gate.is_running) await run.act("/resume", undefined, `answered ${gate.question}: ${value}; the run goes on`);
    } catch (error) {
      replace(said, problem(error));
    }
  };
  const choices = gate.choices.map((choice) =>
    el("div", { class: "panel" }, button(short(choice.label || choice.key, 200), () => give(choice.key || choice.label, field.value), { class: "choice first" }), ` leads to ${line(choice.to)}`, choice.declines ? " (the gate fails)" : "", choice.key === gate.default?.key ? " (default)" : "", allows(choice, gate.review)),
  );
  return el(
    "div",
    null,
    el("label", { for: id }, isFree ? "Your answer" : "Comment (optional)", field),
    el("p", { class: "muted" }, session.rights ? `answering as ${line(session.name)} ` : "answering with the name of the pasted token ", cmd(command)),
    isFree ? button("Answer", () => give(field.value, ""), { class: "choice first" }) : choices,
  );
}

