// The keys of the page. They do nothing while a person types.

import { el, replace } from "./dom.js";

const KEYS = [
  ["j k", "next, previous stage or row"],
  ["Enter", "open what is selected"],
  ["1 – 7", "tabs of a run"],
  ["g", "graph; arrows move in it"],
  ["e", "evidence"],
  [".", "next failure"],
  ["a", "to the open question; this never answers it"],
  ["/", "filter"],
  ["Esc", "back, or close this"],
  ["?", "this list"],
];

export function helpOf() {
  const dialog = document.getElementById("help");
  const rows = KEYS.map(([key, what]) => [el("dt", null, el("kbd", null, key)), el("dd", null, what)]);
  replace(
    dialog,
    el("h2", { id: "help-title" }, "Keys"),
    el("dl", null, rows),
    el("p", { class: "muted" }, "A state is a sign, a word and a colour. Green means a receipt: a command passed, and its receipt proves it. A tilde means that a stage said so and nothing proves it."),
    el("form", { method: "dialog" }, el("button", { class: "first", autofocus: true }, "Close")),
  );
  dialog.showModal();
}

/** Calls what the current screen does for a key. */
export function keyed(screen) {
  addEventListener("keydown", (event) => {
    const typed = event.target.closest?.("input, textarea, select, dialog");
    if (typed && event.key === "Escape" && typed.tagName !== "DIALOG") return typed.blur();
    if (typed || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return undefined;
    if (event.key === "?") {
      event.preventDefault();
      return helpOf();
    }
    const acts = screen()?.keys ?? {};
    const act = acts[event.key];
    if (!act) return undefined;
    event.preventDefault();
    return act(event);
  });
}
