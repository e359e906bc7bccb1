// The frame of the page: head, places, keys. Each place is an address after `#`; each screen is a function that fills `main`
// and returns what its keys do.

import { begin, forget, get, session, useToken } from "./api.js";
import { button, el, problem, replace, say } from "./dom.js";
import { line } from "./text.js";
import { helpOf, keyed } from "./keys.js";
import { runs } from "./runs.js";
import { screenOfRun } from "./run.js";
import { start } from "./start.js";

const head = document.getElementById("head");
const main = document.getElementById("main");
let [screen, hasShown] = [null, false];
let [project, connected] = ["", ""];
const asked = { count: null };

/** Returns the parts of an address such as `#/run/ID/records/5?kind=x`. */
export function place() {
  const [way, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: way.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query ?? "") };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function drawHead(where) {
  const link = (href, text, isHere) => el("a", { href, "aria-current": isHere ? "page" : null }, text);
  const [first] = where.parts;
  replace(
    head,
    el("b", null, "Glovebox"),
    el("span", null, line(project)),
    el(
      "nav",
      { "aria-label": "places" },
      link("#/", "Runs", !first || first === "runs"),
      link("#/new", "New run", first === "new"),
      link("#/runs?state=asks", asked.count === null ? "Questions" : `Questions ${asked.count}`, false),
    ),
    el(
      "span",
      { class: "right" },
      el("span", { id: "connection", title: "live: the page shows every record at once; behind: the server does not answer; not running: no process drives the run" }, connected),
      session.name ? el("span", { id: "who" }, line(session.name)) : null,
      session.token ? button("token", () => askForToken(), { class: "cmd", "aria-label": "use another token" }) : null,
      button("?", () => helpOf(), { class: "cmd", "aria-label": "keys of this page" }),
    ),
  );
}

/** Shows whether the page is up to date: `live`, `behind` or `closed`. */
export function connection(text) {
  connected = text;
  const shown = document.getElementById("connection");
  if (shown && shown.textContent !== text) shown.textContent = text;
}

async function show() {
  if (location.hash.startsWith("#code=")) return open();
  if (location.hash === "#main") return main.focus();
  const where = place();
  const same = screen?.moved?.(where);
  drawHead(where);
  if (same) return undefined;
  screen?.leave?.();
  const holder = el("div", null, el("p", { class: "muted" }, "loading…"));
  replace(main, holder);
  connection("");
  // A new page begins at its first stop; a new place of it begins with the content.
  if (hasShown) main.focus({ preventScroll: true });
  hasShown = true;
  const [first, ...rest] = where.parts;
  const makers = { undefined: runs, runs, run: screenOfRun, new: start };
  const make = makers[first];
  screen = null;
  if (!make) return replace(holder, el("h1", null, "There is no such place"), el("a", { href: "#/" }, "Runs"));
  try {
    const made = await make(holder, { ...where, parts: rest }, { connection, failed });
    if (holder.isConnected) screen = made;
    else made?.leave?.();
  } catch (error) {
    failed(error, holder);
  }
  return undefined;
}

function again() {
  screen?.leave?.();
  screen = null;
  return show();
}

/** Shows why something could not be read. */
function failed(error, holder) {
  if (error.status === 401) {
    forget();
    askForToken(error);
    return;
  }
  if (error.status === 0) connection("behind");
  if (!(holder instanceof Node)) say(error.message);
  else if (error.problem?.code === "unknown-run") replace(holder, el("h1", null, "This run is not there"), el("p", null, "It was removed, or it belongs to another project. "), el("a", { href: "#/" }, "All runs"));
  else replace(holder, problem(error), button("Try again", () => (location.hash.length > 1 ? again() : open())));
}

function askForToken(error) {
  screen?.leave?.();
  screen = null;
  const field = el("input", { id: "token", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const said = el("div", null, error ? problem(error) : null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await useToken(field.value.trim());
      await open();
    } catch (refused) {
      replace(said, problem(refused));
    }
  };
  replace(
    main,
    el("h1", null, "This page needs a session"),
    said,
    el("p", null, "Open the link that ", el("code", null, "glovebox serve"), " prints. It works once within a minute; start the server again for another one. Or paste a token:"),
    el("form", { submit }, el("label", { for: "token" }, "Token", field), el("button", { class: "first" }, "Use this token")),
    el("p", { class: "muted" }, "The token stays in this tab and is never part of an address. ", el("code", null, "glovebox tokens add NAME --right RIGHT"), " makes one."),
  );
  drawHead(place());
  field.focus();
}

async function countQuestions() {
  if (session.token === null || document.hidden) return;
  try {
    const gates = await get("/gates");
    if (asked.count !== null && gates.gates.length > asked.count) say(`a question waits: ${line(gates.gates[0].text)}`);
    if (asked.count !== gates.gates.length) {
      asked.count = gates.gates.length;
      const link = head.querySelector('a[href="#/runs?state=asks"]');
      if (link) link.textContent = `Questions ${asked.count}`;
    }
  } catch {
    asked.count = null;
  }
}

async function open() {
  try {
    project = (await get("/health")).project;
    document.title = `${project} – Glovebox`;
    if (!(await begin())) return askForToken();
  } catch (error) {
    return error.status === 401 ? askForToken(error) : failed(error, main);
  }
  countQuestions();
  return show();
}

addEventListener("hashchange", show);
keyed(() => screen);
setInterval(countQuestions, 5000);
open();
