// The states of runs, stages and commands: each is a sign, a word and a colour. Green belongs to receipts alone: a success
// without one is ink, with a tilde.

const of = (sign, word, tone) => ({ sign, word, tone });

export const PROOFS = {
  verified: of("✓", "proved", "proved"),
  verified_not_isolated: of("!", "reserved: subject not isolated", "reserved"),
  verified_with_caches: of("!", "reserved: caches of builders", "reserved"),
  verified_with_startup_files: of("!", "reserved: loads files of stages", "reserved"),
  not_verified: of("✕", "not proved", "fail"),
  not_taken: of("✕", "not taken", "skipped"),
  ran: of("·", "ran, proves nothing", "plain"),
  hook: of("·", "hook, proves nothing", "plain"),
  subject: of("·", "program under test", "plain"),
};
export const CLAIMED = of("~", "claimed", "claimed");
const KINDS = { proved: "proved", reserved: "reserved", fail: "not" };

/** Returns `proved`, `reserved`, `not` or `none` for what a command proves. */
export function kind(proof) {
  return proof === "not_taken" ? "not" : (KINDS[PROOFS[proof]?.tone] ?? "none");
}

/** Returns the commands of each stage's last attempt, from the document of `evidence`. */
export function lastCommands(evidence) {
  const last = new Map();
  const place = (command) => `${command.branch}\0${command.node}`;
  const order = (command) => [command.generation ?? 0, command.visit, command.work === "handler" ? 0 : 1, command.ordinal];
  const isLater = (a, b) => {
    const at = a.findIndex((number, index) => number !== b[index]);
    return at >= 0 && a[at] > b[at];
  };
  const all = evidence.commands.filter((command) => !command.is_undone);
  for (const command of all) {
    const known = last.get(place(command));
    if (!known || isLater(order(command), known)) last.set(place(command), order(command));
  }
  return all.filter((command) => !isLater(last.get(place(command)), order(command)));
}

// Stages are counted, as in `proof` of `glovebox ls --json`. Of several commands of a stage the weakest counts.
function counted(commands, claims) {
  const weakest = new Map();
  const order = ["not", "reserved", "proved"];
  for (const [node, kind] of commands.filter(([, kind]) => order.includes(kind))) weakest.set(node, Math.min(order.indexOf(kind), weakest.get(node) ?? 2));
  const having = (kind) => [...weakest.values()].filter((strength) => order[strength] === kind).length;
  return { proved: having("proved"), reserved: having("reserved"), claimed: claims.length, not: having("not") };
}

/** Counts what was proved, from the document of `evidence`. */
export function proofCounts(evidence) {
  const commands = lastCommands(evidence).filter((command) => command.proof !== "not_taken");
  return counted(commands.map((command) => [command.node, kind(command.proof)]), evidence.unverified);
}

/** Returns the state of each stage by its name: what its last attempt proved, or what it claimed. */
export function stageStates(graph, evidence, verdict) {
  const states = new Map();
  const claims = new Set(evidence.unverified.map((claim) => claim.node));
  const commands = lastCommands(evidence);
  const asked = new Set((verdict.open_questions ?? []).map((question) => question.node));
  const now = new Map((verdict.branches_now ?? []).map((branch) => [branch.node, branch]));
  for (const position of graph.layout.nodes) {
    const kinds = new Set(commands.filter((command) => command.node === position.id).map((command) => kind(command.proof)));
    const isProved = kinds.has("proved") || kinds.has("reserved");
    const tone = kinds.has("reserved") ? "reserved" : "proved";
    states.set(position.id, stageState(position.status, { isProved, tone, isClaim: claims.has(position.id), isAsked: asked.has(position.id), now: now.get(position.id) }));
  }
  return states;
}

function stageState(status, { isProved, tone, isClaim, isAsked, now }) {
  if (isAsked) return of("?", "asks you", "asks");
  if (now?.waits_for) return of("…", `waits: ${now.waits_for}`, "held");
  if (now?.phase === "running" || status === "running") return of("▶", "running", "running");
  if (status === "success" || status === "partial_success") {
    if (isProved) return tone === "proved" ? of("✓", "proved", "proved") : of("!", "reserved", "reserved");
    return isClaim ? CLAIMED : of("·", "passed", "plain");
  }
  if (status === "fail") return of("✕", "failed", "fail");
  if (status === "retry") return of("↻", "retry", "reserved");
  if (status === "skipped") return of("–", "skipped", "skipped");
  return of("○", "not reached", "plain");
}

export function attemptState(attempt, task, proof) {
  if (attempt.finished_record == null) {
    const isNow = task.state === "running" && attempt === task.attempts.at(-1);
    return isNow ? of("▶", "running", "running") : of("⊘", "left by a resume", "left");
  }
  if (attempt.status === "success" || attempt.status === "partial_success") {
    if (proof === "proved") return of("✓", "proved", "proved");
    if (proof === "reserved") return of("!", "reserved", "reserved");
    return of("~", "passed, no receipt", "plain");
  }
  if (attempt.status === "skipped") return of("–", "skipped", "skipped");
  return attempt.status === "retry" ? of("↻", "retry", "reserved") : of("✕", "failed", "fail");
}

/** Returns the state of a run. `counts` is null while the proof is not known yet. */
export function runState(run, counts) {
  switch (run.status) {
    case "running":
      return hasQuestion(run) ? of("?", "asks you", "asks") : of("▶", "running", "running");
    case "paused":
      return hasQuestion(run) ? of("?", "asks you", "asks") : of("‖", "paused", "held");
    case "success":
      if (counts && counts.proved > 0) return of("✓", "ok", "proved");
      if (counts && counts.reserved > 0) return of("!", "ok, reserved", "reserved");
      return of("~", "ok", "plain");
    case "fail":
      return of("✕", "failed", "fail");
    case "unfinished":
      return of("⊘", "unfinished", "held");
    default:
      return of("✕", "unreadable", "fail");
  }
}

function hasQuestion(run) {
  return (run.open_questions ?? []).length > 0 || (run.branches ?? []).some((branch) => branch.waits_for === "answer");
}

/** Returns proof counts from the summary of a run, which has the receipts of each stage's last attempt. */
export function countsOfVerdict(verdict) {
  const isReserved = (receipt) => (receipt.isolation !== null && receipt.isolation !== "isolated") || (receipt.startup ?? []).length > 0;
  const proving = verdict.receipts.filter((receipt) => receipt.verified && !receipt.not_taken);
  return counted(proving.map((receipt) => [receipt.node, isReserved(receipt) ? "reserved" : "proved"]), verdict.unverified);
}
