// The records of a run, as the server appends them. `EventSource` cannot send a token, so `fetch` reads the stream.
//
// A hidden tab closes its stream and resumes from the last record when it is shown, so that many tabs need few connections.

import { send, Refused } from "./api.js";

const AGAIN_FIRST_MS = 500;
const AGAIN_MOST_MS = 10_000;

/** Follows a path. `on` has `event(name, id, data)` and `state(word)`: `live`, `behind` or `closed`. Returns a function that ends it. */
export function follow(path, after, on) {
  let [last, ended, stopped, abort, wait, timer, running] = [after, false, false, null, AGAIN_FIRST_MS, 0, false];

  async function once() {
    abort = new AbortController();
    const headers = { Accept: "text/event-stream" };
    if (last > 0) headers["Last-Event-ID"] = String(last);
    const reply = await send("GET", path, undefined, headers, abort.signal);
    on.state("live");
    wait = AGAIN_FIRST_MS;
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) receive(block);
    }
  }

  function receive(block) {
    const fields = {};
    for (const line of block.split("\n")) {
      const at = line.indexOf(": ");
      if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
    }
    if (!fields.event) return;
    if (fields.id) last = Number(fields.id);
    if (fields.event === "end") ended = true;
    on.event(fields.event, fields.id ? last : null, fields.data ? JSON.parse(fields.data) : {});
  }

  async function run() {
    if (running) return;
    running = true;
    while (!ended && !document.hidden) {
      try {
        await once();
      } catch (error) {
        if (error instanceof Refused && error.status !== 0 && error.status !== 503) {
          ended = true;
          if (!stopped) on.refused?.(error);
        }
      }
      if (ended || document.hidden) break;
      on.state("behind");
      await new Promise((resume) => (timer = setTimeout(resume, wait)));
      wait = Math.min(wait * 2, AGAIN_MOST_MS);
    }
    running = false;
    if (ended && !stopped) on.state("closed");
  }

  function shown() {
    if (document.hidden) abort?.abort();
    else if (!ended) run();
  }

  document.addEventListener("visibilitychange", shown);
  run();
  return () => {
    ended = stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", shown);
    abort?.abort();
  };
}
