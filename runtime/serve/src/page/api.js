// Requests to the server. The token is kept by this tab only and never part of an address.

const TOKEN = "glovebox-token";

/** Who uses the page: `name` and `rights`; `rights` is null for a pasted token, whose rights only the server knows. */
export const session = { token: null, name: null, rights: null };

/** A request that the server refused. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem?.message ?? `the server answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

function keep() {
  sessionStorage.setItem(TOKEN, JSON.stringify(session));
}

/** Returns true if this tab may do what needs the right, as far as the page knows. */
export function may(right) {
  return session.rights === null ? session.token !== null : session.rights.includes(right);
}

/** Takes the one-time code from the fragment, or the token that this tab has. Returns false if there is neither. */
export async function begin() {
  const code = /^#code=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + "#/");
    const begun = await request("POST", "/session", { code });
    Object.assign(session, { token: begun.token, name: begun.name, rights: begun.rights });
    keep();
    return true;
  }
  const kept = sessionStorage.getItem(TOKEN);
  if (kept) Object.assign(session, JSON.parse(kept));
  return session.token !== null;
}

/** Uses a token that a person pasted. */
export async function useToken(token) {
  const before = { ...session };
  Object.assign(session, { token, name: "pasted token", rights: null });
  try {
    await get("/runs?limit=1");
    keep();
  } catch (error) {
    Object.assign(session, before);
    throw error;
  }
}

export function forget() {
  sessionStorage.removeItem(TOKEN);
  Object.assign(session, { token: null, name: null, rights: null });
}

export async function send(method, path, body, more, signal) {
  const headers = { ...more };
  if (session.token) headers.Authorization = `Bearer ${session.token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init = { method, headers, cache: "no-store", credentials: "omit", redirect: "error", signal };
  if (body !== undefined) init.body = JSON.stringify(body);
  let reply;
  try {
    reply = await fetch(path, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { code: "no-answer", message: "the server does not answer" });
  }
  if (reply.ok) return reply;
  let problem = null;
  try {
    problem = await reply.json();
  } catch {
    problem = null;
  }
  throw new Refused(reply.status, problem);
}

async function request(method, path, body) {
  return (await send(method, path, body)).json();
}

export function get(path) {
  return request("GET", path);
}

export function post(path, body) {
  return request("POST", path, body);
}

/** Returns lines of JSON. */
export async function lines(path) {
  const text = await (await send("GET", path)).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** Returns the first bytes of a file of the run as text, and whether that is all of it. The rest is not read. */
export async function text(path, most) {
  const reader = (await send("GET", path)).body.getReader();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let [text, bytes] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), isWhole: true };
    text += decoder.decode(value.subarray(0, most - bytes), { stream: true });
    bytes += value.length;
    if (bytes <= most) continue;
    reader.cancel();
    return { text, isWhole: false };
  }
}

export function path(strings, ...values) {
  return String.raw({ raw: strings }, ...values.map((value) => encodeURIComponent(value)));
}
