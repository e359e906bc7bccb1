// The patch of a run, as `glovebox diff` prints it: its hunks as text. A patch can be of any length, so the page reads the
// beginning of it and shows the beginning of that.

import { path, text } from "./api.js";
import { cmd, el } from "./dom.js";
import { block, bytes, count, line, quoted, short } from "./text.js";

/** Maximum number of lines that are shown at once. */
const LINES_MAX = 2000;
/** Maximum length of a line that is shown. */
const LINE_MAX = 2000;
/** Maximum number of bytes of a patch that the page reads. */
const READ_MAX = 4 << 20;

/** Returns a path as git writes it in the first line of a part. */
function named(path) {
  return /["\\]/.test(path) ? `"${path.replace(/["\\]/g, "\\$&")}"` : path;
}

/** Reads the patch, and returns its parts by their first lines. */
async function read(run, question) {
  const key = `${run.verdict.journal.hash} ${question}`;
  if (run.patch?.key === key) return run.patch;
  const found = await text(path`/runs/${run.id}/patch` + (question ? `?question=${encodeURIComponent(question)}` : ""), READ_MAX);
  const lines = found.text.split("\n");
  const parts = new Map();
  let [part, isHead] = [[], true];
  // Every other line of a patch begins with another character, or is of base 85.
  for (const one of lines.slice(0, -1)) {
    isHead = one.startsWith("diff --git ") || (isHead && !one.startsWith("@@"));
    if (one.startsWith("diff --git ")) parts.set(one, (part = []));
    else if (!isHead || !/^(index|---|\+\+\+) /.test(one)) part.push(one);
  }
  if (!found.isWhole) part.isCut = true;
  return (run.patch = { key, parts, isWhole: found.isWhole });
}

/** Returns the patch of these files, with a title for each if there are several. */
export async function patch(run, files, question) {
  const { parts, isWhole } = await read(run, question);
  let [left, isCut] = [LINES_MAX, !isWhole && files.length > 1];
  const shown = files.map((file) => {
    if (left <= 0) return void (isCut = true);
    const part = parts.get(`diff --git ${named(`a/${file.moved_from ?? file.path}`)} ${named(`b/${file.path}`)}`);
    const title = files.length > 1 ? el("h3", null, el("code", null, short(file.path, 400))) : null;
    if (!part && !isWhole) return void (isCut = true);
    if (!part) return [title, el("p", { class: "muted" }, "The patch does not have this file: its version before the run no longer exists, or its name has control characters.")];
    if (part.includes("GIT binary patch")) return [title, el("p", { class: "muted" }, `A binary file, ${sizes(file)}. Its bytes are not shown.`)];
    const lines = part.slice(0, left);
    isCut ||= lines.length < part.length || part.isCut;
    left -= lines.length;
    return [title, hunks(lines)];
  });
  const command = `glovebox diff ${run.id}${question ? ` --question ${quoted([question])}` : ""}${files.length === 1 ? ` -- ${quoted([files[0].path])}` : ""}`;
  const rest = el("p", { class: "rest" }, `Only the beginning is shown, ${count(LINES_MAX - left, "line")}. This command prints all of it: `, el("code", null, line(command)), " ", cmd(command));
  return [...shown, isCut ? rest : null].flat();
}

function sizes({ before, after }) {
  const size = (version) => (version ? bytes(version.bytes) : "absent");
  return `${size(before)} before the run, ${size(after)} now`;
}

function hunks(lines) {
  const first = lines.findIndex((one) => one.startsWith("@@"));
  const classes = { "+": "added", "-": "removed", "@": "hunk" };
  const cut = (one) => block(one.length > LINE_MAX ? `${one.slice(0, LINE_MAX)}… ${count(one.length - LINE_MAX, "more character")}` : one);
  const rows = lines.map((one, at) => el("span", { class: first < 0 || at < first ? "hunk" : classes[one[0]] }, cut(one)));
  return el("pre", { class: "diff", tabindex: "0", "aria-label": "patch" }, rows);
}
