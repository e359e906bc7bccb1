// What the run changed, what was set aside, and how it reaches the project.

import { may, path, text } from "./api.js";
import { button, cmd, el, empty, panel, problem, record, replace, say, state, table } from "./dom.js";
import { block, bytes, count, line, short } from "./text.js";
import { stageLink } from "./overview.js";
import { TEXT_MAX } from "./stage.js";

export async function changes(holder, run) {
  const [said, body] = [el("div", null), el("div", null)];
  let drawn = "";

  async function again() {
    const diff = await run.read("diff");
    const { verdict } = run;
    const key = JSON.stringify([diff, verdict.quarantined, verdict.journal.hash, verdict.status]);
    if (key === drawn) return;
    drawn = key;
    replace(body, ...draw(run, diff, said));
  }

  replace(holder, said, body);
  await again();
  return { again };
}

function draw(run, diff, said) {
  const { verdict } = run;
  const ignored = verdict.ignored ? `${verdict.ignored.files} ignored` : "";
  const facts = [`${diff.files.length} changed`, `${verdict.quarantined.length} set aside`, ignored, diff.directories.length ? count(diff.directories.length, "directory", "directories") : ""];
  return [
    el("div", { class: "row" }, el("h2", null, facts.filter(Boolean).join(", ")), record(run.id, verdict.journal.records), cmd(`glovebox diff ${run.id}`), el("span", { class: "grow" }), applying(run, diff, said)),
    diff.files.length === 0 ? empty("The run changed no file.", `glovebox diff ${run.id}`) : fileTable(run, diff.files),
    ...(diff.new_configuration ?? []).map((one) => el("p", null, state({ sign: "!", word: "settings", tone: "reserved" }), " ", el("code", null, short(one.path, 300)), one.reader ? `: ${line(one.reader)} takes settings or code from it` : ": programs take settings or code from it")),
    verdict.quarantined.length ? panel("Set aside", table(["path", "stage", "because"], verdict.quarantined.map((one) => [el("code", null, short(one.path, 300)), el("a", { href: stageLink(run, one.node) }, line(one.node)), short(one.reason, 500)]))) : null,
  ];
}

/** The files that changed, each with a button that shows its text. */
export function fileTable(run, files) {
  const rows = files.slice(0, 1000).map((file) => {
    const holder = el("div", null);
    const change = file.before === null ? "new" : file.after === null ? "deleted" : file.moved_from ? `moved from ${line(file.moved_from)}` : "changed";
    const after = file.after ?? {};
    const size = file.after ? (after.target ? `→ ${short(after.target, 200)}` : bytes(after.bytes)) : "";
    const toggle = after.digest ? button("show as text", () => (holder.firstChild ? replace(holder) : show(run, file, holder)), { "aria-label": `show ${line(file.path)} as text` }) : null;
    return [[el("code", null, short(file.path, 400)), holder], change, size + (after.mode === "100755" ? ", executable" : ""), toggle];
  });
  return [table(["path", "change", "size", ""], rows, { class: "stack files" }), files.length > 1000 ? el("p", { class: "muted" }, `${files.length - 1000} more: `, cmd(`glovebox diff ${run.id}`)) : null];
}

async function show(run, file, holder) {
  try {
    const after = await text(path`/runs/${run.id}/blobs/${file.after.digest}`, TEXT_MAX);
    const before = file.before?.digest ? await text(path`/runs/${run.id}/blobs/${file.before.digest}`, TEXT_MAX).catch(() => null) : null;
    const shown = before?.isWhole && after.isWhole ? el("pre", { class: "diff", tabindex: "0" }, difference(before.text.split("\n"), after.text.split("\n"))) : el("pre", { tabindex: "0" }, block(after.text));
    replace(holder, shown, after.isWhole ? null : el("p", { class: "muted" }, `the first ${bytes(TEXT_MAX)} of ${bytes(after.bytes)}; `, cmd(`glovebox diff ${run.id}`)));
  } catch (error) {
    replace(holder, problem(error));
  }
}

/** Returns the lines of two texts that differ, between their equal beginning and their equal end. */
function difference(before, after) {
  let first = 0;
  while (first < before.length && first < after.length && before[first] === after[first]) first += 1;
  let last = 0;
  while (last < before.length - first && last < after.length - first && before.at(-1 - last) === after.at(-1 - last)) last += 1;
  const lines = (list, sign, name) => list.map((text) => el("span", { class: name }, `${sign} ${block(text)}`));
  return [
    lines(after.slice(Math.max(0, first - 3), first), " ", ""),
    lines(before.slice(first, before.length - last), "-", "removed"),
    lines(after.slice(first, after.length - last), "+", "added"),
    lines(after.slice(after.length - last, after.length - last + 3), " ", ""),
  ];
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
