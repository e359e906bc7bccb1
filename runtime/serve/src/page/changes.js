// What the run changed, what was set aside, and how it reaches the project.

import { may, path, text } from "./api.js";
import { button, cmd, el, empty, panel, problem, record, replace, say, state, table } from "./dom.js";
import { block, bytes, count, line, short } from "./text.js";
import { stageLink } from "./overview.js";
import { patch } from "./patch.js";
import { TEXT_MAX } from "./stage.js";

const FILES_MAX = 1000;

export async function changes(holder, run) {
  const [said, since, body] = [el("div", null), el("div", { class: "row", role: "group", "aria-label": "compare with" }), el("div", null)];
  let [drawn, question] = ["", ""];

  async function again() {
    const { verdict } = run;
    const asked = (verdict.open_questions ?? []).map((one) => one.question);
    if (!asked.includes(question)) question = "";
    const diff = await run.read("diff", question ? `?question=${encodeURIComponent(question)}` : "");
    const key = JSON.stringify([diff, verdict.quarantined, verdict.journal.hash, verdict.status, question]);
    if (key === drawn) return;
    drawn = key;
    const choose = (one) => () => ((question = one), again().catch((error) => replace(body, problem(error))));
    const choice = (one) => button(one ? `what ${line(one)} asks about` : "since the start", choose(one), { "aria-pressed": String(one === question), "data-key": `since-${one}` });
    replace(since, asked.length ? ["", ...asked].map(choice) : null);
    replace(body, ...draw(run, diff, said, question));
  }

  replace(holder, said, since, body);
  await again();
  return { again };
}

function draw(run, diff, said, question) {
  const { verdict } = run;
  const ignored = verdict.ignored ? `${verdict.ignored.files} ignored` : "";
  const facts = [`${diff.files.length} changed`, `${verdict.quarantined.length} set aside`, ignored, diff.directories.length ? count(diff.directories.length, "directory", "directories") : ""];
  return [
    el("div", { class: "row" }, el("h2", null, facts.filter(Boolean).join(", ")), record(run.id, verdict.journal.records), cmd(`glovebox diff ${run.id}`), el("span", { class: "grow" }), question ? null : applying(run, diff, said)),
    diff.files.length === 0 ? empty("The run changed no file.", `glovebox diff ${run.id}`) : fileTable(run, diff.files, question),
    ...(diff.new_configuration ?? []).map((one) => el("p", null, state({ sign: "!", word: "settings", tone: "reserved" }), " ", el("code", null, short(one.path, 300)), one.reader ? `: ${line(one.reader)} takes settings or code from it` : ": programs take settings or code from it")),
    verdict.quarantined.length ? panel("Set aside", el("p", { class: "muted" }, "What stages wrote outside of their scope. The run keeps it in its quarantine; it is not applied."), table(["path", "stage", "because"], verdict.quarantined.map((one) => [el("code", null, short(one.path, 300)), el("a", { href: stageLink(run, one.node) }, line(one.node)), short(one.reason, 500)]))) : null,
  ];
}

/** The files that changed, each with buttons that show its patch and its text below it. */
export function fileTable(run, files, question) {
  const all = el("div", null);
  const rows = files.slice(0, FILES_MAX).map((file) => {
    const change = file.before === null ? "new" : file.after === null ? "deleted" : file.moved_from ? `moved from ${line(file.moved_from)}` : "changed";
    const after = file.after ?? {};
    const size = file.after ? (after.target ? `→ ${short(after.target, 200)}` : bytes(after.bytes)) : "";
    const toggle = (text, make) => button(text, (event) => below(event.target, make), { "aria-label": `${text}: ${line(file.path)}`, "aria-expanded": "false" });
    const shows = [toggle("show the patch", () => patch(run, [file], question)), " ", after.digest ? toggle("show as text", () => wholeText(run, file)) : null];
    return [el("code", null, short(file.path, 400)), change, size + (after.mode === "100755" ? ", executable" : ""), shows];
  });
  const toggleAll = async (event) => {
    const isOpen = all.firstChild !== null;
    event.target.setAttribute("aria-expanded", String(!isOpen));
    replace(all, isOpen ? null : await patch(run, files, question).catch(problem));
  };
  return [
    files.length > 1 ? el("p", null, button(`show the patch of all ${files.length} files`, toggleAll, { "aria-expanded": "false" })) : null,
    all,
    table(["path", "change", "size", ""], rows, { class: "stack files" }),
    files.length > FILES_MAX ? el("p", { class: "muted" }, `${files.length - FILES_MAX} more: `, cmd(`glovebox diff ${run.id}`)) : null,
  ];
}

/** Shows something in a row below the row of a button, or removes it. */
async function below(pressed, make) {
  const row = pressed.closest("tr");
  const [known, isOpen] = [row.nextElementSibling, pressed.getAttribute("aria-expanded") === "true"];
  if (known?.classList.contains("shown")) known.remove();
  for (const other of row.querySelectorAll("button")) other.setAttribute("aria-expanded", String(other === pressed && !isOpen));
  if (isOpen) return;
  const cell = el("td", { colspan: 4 }, "loading…");
  row.after(el("tr", { class: "shown" }, cell));
  replace(cell, await make().catch(problem));
}

async function wholeText(run, file) {
  const after = await text(path`/runs/${run.id}/blobs/${file.after.digest}`, TEXT_MAX);
  return [el("pre", { tabindex: "0" }, block(after.text)), after.isWhole ? null : el("p", { class: "muted" }, `the first ${bytes(TEXT_MAX)} of ${bytes(file.after.bytes)}`)];
}

function applying(run, diff, said) {
  if (diff.files.length === 0 && diff.directories.length === 0) return null;
  const command = `glovebox apply ${run.id}`;
  if (!run.isOwn) return null;
  if (!may("apply")) return el("span", { class: "muted" }, "to apply them this token needs the right ", el("code", null, "apply"), "; or ", cmd(command));
  if (run.verdict.status === "running") return el("span", { class: "muted" }, "can be applied when the run has ended");
  const apply = async () => {
    try {
      const done = await run.act("/apply", { head: run.verdict.journal.hash }, "the changes are in the project");
      replace(said, panel("Applied", el("ul", null, (done.writes ?? []).map((write) => el("li", null, el("code", null, short(write.path, 300)))))));
    } catch (error) {
      replace(said, problem(error));
    }
  };
  const ask = (event) => {
    const sure = button(`Write ${count(diff.files.length, "file")} to the project`, apply, { class: "first", id: "apply-sure" });
    event.target.replaceWith(sure);
    sure.focus();
    say(`apply writes to the project: ${diff.files.length} files, as of record ${run.verdict.journal.records}`);
  };
  return [button("Apply…", ask), " ", cmd(command)];
}
