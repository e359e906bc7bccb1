// A list of which only the visible rows exist, so that twenty thousand records scroll as well as twenty.

import { el } from "./dom.js";

const OVER = 8;

/**
 * Creates a list. `row(index)` returns the element of a row, or null while its data is not there; `need(first, last)` asks for
 * data; `open(index)` follows a row. The list is one tab stop: arrows, j and k, Home and End select a row.
 */
export function list({ label, height, row, need, open }) {
  let [count, selected, frame] = [0, -1, 0];
  const all = el("div", { class: "all", role: "presentation" });
  const node = el("div", { class: "list", tabindex: "0", role: "listbox", "aria-label": label, scroll: later, keydown: key, focus: () => select(Math.max(selected, 0), false) }, all);

  function later() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(draw);
  }

  function draw() {
    const first = Math.max(0, Math.floor(node.scrollTop / height) - OVER);
    const last = Math.min(count - 1, Math.ceil((node.scrollTop + node.clientHeight) / height) + OVER);
    need?.(first, last);
    const rows = [];
    for (let index = first; index <= last; index += 1) {
      const item = row(index) ?? el("div", { class: "item muted" }, "…");
      item.id = `${node.dataset.name}-${index}`;
      item.classList.add("item");
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(index === selected));
      item.setAttribute("aria-setsize", String(count));
      item.setAttribute("aria-posinset", String(index + 1));
      item.style.top = `${index * height}px`;
      item.style.height = `${height}px`;
      item.addEventListener("click", () => {
        select(index, true);
        open?.(index);
      });
      rows.push(item);
    }
    all.replaceChildren(...rows);
    all.style.height = `${count * height}px`;
    if (selected >= first && selected <= last) node.setAttribute("aria-activedescendant", `${node.dataset.name}-${selected}`);
  }

  function select(index, isShown) {
    if (count === 0) return;
    selected = Math.min(Math.max(index, 0), count - 1);
    if (isShown) {
      const top = selected * height;
      if (top < node.scrollTop) node.scrollTop = top;
      if (top + height > node.scrollTop + node.clientHeight) node.scrollTop = top + height - node.clientHeight;
    }
    draw();
  }

  function key(event) {
    const page = Math.max(1, Math.floor(node.clientHeight / height) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) select(selected + moves[event.key], true);
    else if (event.key === "Enter" && selected >= 0) open?.(selected);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  node.dataset.name = `row${(list.made = (list.made ?? 0) + 1)}`;
  return {
    node,
    /** Sets the number of rows. */
    size(rows) {
      count = rows;
      selected = Math.min(selected, rows - 1);
      node.classList.toggle("short", rows * height < 400);
      later();
    },
    draw: later,
    select: (index) => select(index, true),
    /** Selects the next row for which the function returns true, with the focus. Returns false if there is none. */
    next: (isWanted) => {
      const order = Array.from({ length: count }, (_, at) => (at + selected + 1) % count);
      const found = order.find(isWanted);
      if (found === undefined) return false;
      node.focus({ preventScroll: true });
      select(found, true);
      return true;
    },
    move: (by) => {
      const isFirst = selected < 0;
      node.focus({ preventScroll: true });
      select(isFirst ? 0 : selected + by, true);
    },
    isAtEnd: () => node.scrollTop + node.clientHeight >= count * height - height,
  };
}
