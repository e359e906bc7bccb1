// Elements of the page. Text becomes text nodes only; nothing parses markup.

import { line } from "./text.js";

/** How long a message stays. */
const SAID_MS = 12_000;
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child == null || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** Creates an element. A function among the attributes listens to the event with its name. */
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Creates an element of a picture. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Says something to a person who reads or listens. */
export function say(text) {
  const said = document.getElementById("said");
  said.textContent = line(text);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.replaceChildren(), SAID_MS);
}

/** A button that copies the command that prints the same as the page shows. */
export function cmd(command) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      say(`copied: ${command}`);
    } catch {
      say(command);
    }
  };
  return el("button", { type: "button", class: "cmd", title: line(command), "aria-label": `copy the command ${line(command)}`, click: copy }, "cmd");
}

/** A state: its sign, its word and its colour. */
export function state({ sign, word, tone }, more) {
  return el("span", { class: `state ${tone}` }, el("span", { "aria-hidden": "true" }, `${sign} `), word, more ? ` ${more}` : "");
}

export function button(text, click, attributes) {
  return el("button", { type: "button", ...attributes, click }, text);
}

/** A link to a record. */
export function record(run, seq) {
  return el("a", { class: "mono", href: `#/run/${run}/records/${seq}`, title: "the record of this fact" }, `#${seq}`);
}

export function panel(title, ...children) {
  return el("section", { class: "panel" }, title ? el("h2", null, title) : null, ...children);
}

/** A table whose cells are arrays of children. On a narrow screen each row becomes a block. */
export function table(heads, rows, attributes) {
  const cell = (content, at) => (content instanceof HTMLTableCellElement ? content : el("td", { "data-head": heads[at] || null }, content));
  const head = el("thead", null, el("tr", null, heads.map((text) => el("th", { scope: "col" }, text))));
  const body = el("tbody", null, rows.map((row) => (row instanceof Node ? row : el("tr", null, row.map(cell)))));
  return el("table", { class: "stack", ...attributes }, head, body);
}

export function empty(text, command) {
  return el("p", { class: "muted" }, text, " ", command ? [el("code", null, line(command)), " ", cmd(command)] : null);
}

/** What a refused request says. */
export function problem(error) {
  const about = error.problem ?? {};
  return el(
    "div",
    { class: "panel", role: "alert" },
    el("p", null, state({ sign: "✕", word: about.code ? line(about.code) : "failed", tone: "fail" }), " ", line(about.message ?? error.message)),
    about.help ? el("p", null, "help: ", line(about.help)) : null,
    about.code === "no-right" ? el("p", null, "Paste a token with this right below “token” in the head, or make one: ", el("code", null, "glovebox tokens add"), ".") : null,
  );
}

/** Replaces the content of an element, and keeps the focus on the element with the same `id` or `data-key`. */
export function replace(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.id ? `#${CSS.escape(focused.id)}` : focused?.dataset.key ? `[data-key="${CSS.escape(focused.dataset.key)}"]` : null;
  node.replaceChildren(...children.flat(3).filter((child) => child != null && child !== false));
  if (key) node.querySelector(key)?.focus({ preventScroll: true });
}
