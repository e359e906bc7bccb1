// The output of a stage while it runs: the end of what it printed, what follows, and the answer that its model writes. The
// server sends nothing of a stage that can read hold-outs.

import { cmd, el, problem, replace } from "./dom.js";
import { follow } from "./stream.js";
import { block, bytes, count, line, quoted } from "./text.js";

/** Maximum number of characters that are kept, and of pieces of them. */
const KEPT_MAX = 64 << 10;
const PIECES_MAX = 1000;
const STREAMS = { stdout: "standard output", stderr: "standard error" };

/** Follows the output of a running stage. Returns its element, and a function that ends it. */
export function live(run, node) {
  const said = el("div", { class: "muted" }, "Waiting for output…");
  const shown = el("pre", { id: "live", tabindex: "0", role: "log", "aria-live": "off", "aria-label": `output of ${line(node)} while it runs`, hidden: true });
  // The unfinished answers, by attempt.
  const drafts = el("div", { id: "drafts" });
  const command = `glovebox logs ${run.id} ${quoted([node])} --follow`;
  let [kept, stream, isAtStart, isRefused] = [0, "stdout", true, false];

  function add(text, name) {
    const isAtEnd = shown.scrollTop + shown.clientHeight >= shown.scrollHeight - 24;
    const piece = el("span", { class: name }, block(text));
    kept += piece.textContent.length;
    isAtStart = text.endsWith("\n");
    shown.append(piece);
    while (shown.childNodes.length > 1 && (kept > KEPT_MAX || shown.childNodes.length > PIECES_MAX)) {
      kept -= shown.firstChild.textContent.length;
      shown.firstChild.remove();
    }
    shown.hidden = false;
    if (isAtEnd) shown.scrollTop = shown.scrollHeight;
  }

  /** Adds a line of the page, between lines of the stage. */
  function note(text) {
    add(`${isAtStart ? "" : "\n"}— ${line(text)} —\n`, "muted");
  }

  function draft(name, data) {
    let own = [...drafts.children].find((one) => one.dataset.key === data.attempt_id);
    if (name === "draft-end") return void own?.remove();
    if (!own) drafts.append((own = el("pre", { "data-key": data.attempt_id, tabindex: "0", "aria-label": "unfinished answer" })));
    if (data.is_new) own.replaceChildren();
    own.append(block(data.text));
    own.textContent = own.textContent.slice(-KEPT_MAX);
    own.scrollTop = own.scrollHeight;
  }

  function event(name, id, data) {
    if (name.startsWith("draft")) draft(name, data);
    else if (name === "command") {
      stream = "stdout";
      note(`visit ${data.visit}, attempt ${data.ordinal} runs: ${data.text}`);
    } else if (name === "output") {
      if (data.stream !== stream) note(STREAMS[(stream = data.stream)] ?? data.stream);
      add(data.text, data.stream);
    } else if (name === "turn") {
      note(`turn ${data.turn}: ${data.model ?? "the model"} answered, ${count(data.output_tokens ?? 0, "token")}`);
      if (data.text) add(data.text);
    } else if (name === "missed") note(`${bytes(data.bytes)} before this are not shown`);
  }

  function state(word) {
    // A new connection begins again with the last 64 KiB.
    if (word === "live") {
      shown.replaceChildren();
      drafts.replaceChildren();
      [kept, stream, isAtStart] = [0, "stdout", true];
    }
    const texts = { live: "What the stage prints appears here. Its receipts come when it has ended. ", behind: "The server does not answer. The output goes on when it does. ", closed: "No process drives the run. " };
    if (!isRefused) replace(said, texts[word], cmd(command));
  }

  function refused(error) {
    isRefused = true;
    const isBeside = error.problem?.code === "beside-holdouts";
    replace(said, isBeside ? "This stage can read hold-outs. What it prints could show them, so nobody can follow it while it runs." : problem(error));
  }

  const stop = follow(`/runs/${encodeURIComponent(run.id)}/stages/${encodeURIComponent(node)}/output`, 0, { event, state, refused });
  return { node: el("section", { class: "panel", "aria-label": "live output" }, el("h2", null, "Now"), said, shown, drafts), stop };
}
