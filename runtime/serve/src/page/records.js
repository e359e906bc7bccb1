// The records of a run. Pages of 200 are read as they come into view, so that a run of any length scrolls.

import { lines, path } from "./api.js";
import { button, cmd, el, problem, replace } from "./dom.js";
import { list } from "./list.js";
import { follow } from "./stream.js";
import { block, digest, line, short, time } from "./text.js";

const PAGE = 200;
/** Maximum number of pages that are kept. */
const PAGES_MAX = 30;
const STAYS_MS = 60;

export async function records(holder, run, [wanted], query) {
  const kinds = { kind: query.get("kind") ?? "", node: query.get("node") ?? "" };
  const isFiltered = Boolean(kinds.kind || kinds.node);
  const [pages, loading, found] = [new Map(), new Set(), []];
  let [stop, isOpen, timer, readAt] = [null, true, 0, -STAYS_MS];
  const detail = el("div", { id: "record" });
  const rows = list({ label: "records", height: 28, row, need, open: (index) => (location.hash = `#/run/${run.id}/records/${numberAt(index)}${location.hash.includes("?") ? `?${location.hash.split("?")[1]}` : ""}`) });

  function numberAt(index) {
    return isFiltered ? found[index].seq : index + 1;
  }

  function recordAt(index) {
    return isFiltered ? found[index] : pages.get(Math.floor(index / PAGE))?.get(index + 1);
  }

  // A list that scrolls fast passes many pages. Only those where it stays for a moment are read.
  function need(first, last) {
    if (isFiltered) return;
    clearTimeout(timer);
    const read = () => {
      readAt = performance.now();
      for (let page = Math.floor(Math.max(first, 0) / PAGE); page <= Math.floor(Math.max(last, 0) / PAGE); page += 1) load(page);
    };
    if (performance.now() - readAt > STAYS_MS) read();
    else timer = setTimeout(read, STAYS_MS);
  }

  // A page of 200 records is at most 1 MiB, so several requests can be needed.
  async function load(page) {
    const head = run.verdict.journal.records;
    const [from, to] = [page * PAGE, Math.min((page + 1) * PAGE, head)];
    const known = pages.get(page) ?? new Map();
    if (loading.has(page) || from >= head || known.size >= to - from) return;
    loading.add(page);
    try {
      for (let after = from + known.size; after < to && isOpen; ) {
        const read = await lines(path`/runs/${run.id}/records?after=${after}&limit=${to - after}`);
        if (read.length === 0) break;
        for (const record of read) known.set(record.seq, record);
        after = read.at(-1).seq;
      }
      pages.delete(page);
      pages.set(page, known);
      while (pages.size > PAGES_MAX) pages.delete(pages.keys().next().value);
      rows.draw();
    } catch (error) {
      replace(detail, problem(error));
    } finally {
      loading.delete(page);
    }
  }

  function row(index) {
    const record = recordAt(index);
    if (!record) return null;
    const { event } = record;
    return el(
      "div",
      null,
      el("span", { class: "seq mono" }, `#${record.seq}`),
      el("span", { class: "when mono" }, time(record.at)),
      el("span", { class: "kind mono" }, line(event.kind)),
      el("span", { class: "node" }, short(event.node ?? event.from ?? "", 60)),
      el("span", { class: "grow muted" }, short(summary(event), 200)),
    );
  }

  async function show(number) {
    const seq = Number(number);
    if (!Number.isInteger(seq) || seq < 1) return;
    const [record] = await lines(path`/runs/${run.id}/records?after=${seq - 1}&limit=1`);
    if (record?.seq !== seq) return replace(detail, el("p", null, `This run has no record #${seq} yet.`));
    replace(
      detail,
      el("section", { class: "panel" }, el("div", { class: "row" }, el("h2", null, `Record #${seq}`), el("code", null, line(record.event.kind)), el("span", null, line(record.at)), el("span", { class: "muted" }, "hash ", el("code", null, digest(record.hash)), " after ", el("code", null, digest(record.prev))), cmd(`glovebox attach ${run.id} --json --all`), el("a", { href: `#/run/${run.id}/records/${seq - 1}` }, "previous"), el("a", { href: `#/run/${run.id}/records/${seq + 1}` }, "next")), el("pre", { tabindex: "0" }, block(JSON.stringify(record.event, null, 2)).slice(0, 1 << 20))),
    );
    rows.select(isFiltered ? found.findIndex((one) => one.seq === seq) : seq - 1);
  }

  const field = (name, text) => el("input", { id: name === "kind" ? "filter" : name, "aria-label": text, placeholder: text, value: kinds[name], change: search });
  const [kind, node, jump] = [field("kind", "kind, such as stage.finished"), field("node", "stage"), el("input", { "aria-label": "number of a record", placeholder: "#", size: "7", inputmode: "numeric" })];
  function search() {
    const query = new URLSearchParams([["kind", kind.value], ["node", node.value]].filter(([, value]) => value));
    location.hash = `#/run/${run.id}/records${query.size ? `?${query}` : ""}`;
  }

  const submit = (event) => {
    event.preventDefault();
    location.hash = `#/run/${run.id}/records/${jump.value.replace("#", "")}`;
  };
  replace(holder, detail, el("div", { class: "row" }, kind, node, el("form", { submit, class: "row" }, jump, button("Go to", submit)), cmd(`glovebox attach ${run.id} --json --all`)), rows.node);
  if (isFiltered) {
    const query = new URLSearchParams(Object.entries(kinds).filter(([, value]) => value));
    const event = (name, id, data) => {
      if (id === null || !data.event) return;
      found.push(data);
      rows.size(found.length);
    };
    stop = follow(`${path`/runs/${run.id}/events`}?${query}`, 0, { event, state: () => {}, refused: (error) => replace(detail, problem(error)) });
  } else {
    rows.size(run.verdict.journal.records);
  }
  if (wanted) await show(wanted);
  else if (!isFiltered && run.verdict.status === "running") rows.select(run.verdict.journal.records - 1);

  return {
    move: (by) => (rows.move(by), true),
    again() {
      if (isFiltered) return;
      const isAtEnd = rows.isAtEnd();
      rows.size(run.verdict.journal.records);
      if (isAtEnd && !wanted) rows.select(run.verdict.journal.records - 1);
    },
    leave() {
      isOpen = false;
      clearTimeout(timer);
      stop?.();
    },
  };
}

function summary(event) {
  const outcome = event.outcome?.status ?? event.status ?? "";
  const parts = [event.visit ? `visit ${event.visit}` : "", event.ordinal > 1 ? `attempt ${event.ordinal}` : "", outcome, event.to ? `→ ${event.to}` : "", event.text ?? "", event.outcome?.failure?.reason ?? event.failure?.reason ?? ""];
  return parts.filter(Boolean).join("  ");
}
