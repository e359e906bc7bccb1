// A new run: check, plan, and a start that names the digest of the plan that was seen.

import { get, may, post } from "./api.js";
import { button, cmd, el, empty, panel, problem, replace, say, state, table } from "./dom.js";
import { block, digest, line, quoted, short } from "./text.js";

export async function start(holder) {
  const field = (id, more) => el("input", { id, autocomplete: "off", spellcheck: "false", ...more });
  const [file, budget, steps] = [field("file", { value: "pipeline.dot", required: true }), field("budget", { inputmode: "decimal", placeholder: "no limit" }), field("steps", { inputmode: "numeric", placeholder: "as the pipeline says" })];
  const inputs = el("textarea", { id: "inputs", placeholder: "name=value, one per line", spellcheck: "false" });
  const found = el("div", { "aria-live": "polite" });

  function submitted(planDigest) {
    const body = { file: file.value.trim(), inputs: {} };
    for (const text of inputs.value.split("\n").filter((text) => text.includes("="))) body.inputs[text.slice(0, text.indexOf("=")).trim()] = text.slice(text.indexOf("=") + 1);
    if (budget.value.trim()) body.budget_usd = budget.value.trim();
    if (steps.value.trim()) body.steps_max = Number(steps.value);
    if (planDigest) body.plan_digest = planDigest;
    return body;
  }

  async function plan(event) {
    event?.preventDefault();
    replace(found, el("p", { class: "muted" }, "planning…"));
    try {
      const diagnostics = await post("/check", submitted());
      const isBad = diagnostics.some((one) => one.severity === "error");
      const latest = isBad ? null : await post("/plan", submitted());
      replace(found, diagnosed(diagnostics, file.value), latest ? planned(latest, begin) : null);
    } catch (error) {
      replace(found, refused(error));
    }
  }

  async function begin(planDigest) {
    try {
      const started = await post("/pipelines", submitted(planDigest));
      say(`started run ${started.id}`);
      location.hash = `#/run/${started.id}`;
    } catch (error) {
      const about = error.problem?.about;
      if (error.status !== 409 || !about?.plan_digest) return replace(found, refused(error));
      replace(
        found,
        el("div", { class: "panel", role: "alert" }, el("p", null, state({ sign: "!", word: "another plan", tone: "reserved" }), " Nothing was started: the plan is another one than the one you saw."), el("h3", null, "What differs"), el("pre", { id: "difference", tabindex: "0" }, block(about.difference ?? ""))),
        about.plan ? planned(about.plan, begin) : button("Plan again", plan),
      );
    }
    return undefined;
  }

  replace(
    holder,
    el("h1", null, "New run"),
    may("start") ? null : el("p", null, state({ sign: "⊘", word: "right missing", tone: "held" }), " to start a run this token needs the right ", el("code", null, "start"), "; ", el("code", null, "glovebox run FILE"), " starts one without a server."),
    el(
      "form",
      { submit: plan },
      el("label", { for: "file" }, "Pipeline, a file of the project", file),
      el("label", { for: "inputs" }, "Inputs", inputs),
      el("div", { class: "row" }, el("label", { for: "budget" }, "Budget in dollars", budget), el("label", { for: "steps" }, "Maximum number of steps", steps)),
      el("div", { class: "row" }, el("button", { class: "first" }, "Check and plan"), button("cmd", () => say(`glovebox plan ${quoted([file.value])}`), { class: "cmd", "aria-label": "show the command" })),
    ),
    found,
  );
  const latest = (await get("/runs?limit=1").catch(() => ({ runs: [] }))).runs[0];
  if (!latest) holder.append(empty("This project has no pipeline yet?", "glovebox init"));
  return { keys: { "/": () => file.focus(), Escape: () => (location.hash = "#/") } };
}

function refused(error) {
  const about = error.problem?.about;
  return [problem(error), Array.isArray(about) ? diagnosed(about, "") : null];
}

function diagnosed(diagnostics, file) {
  if (diagnostics.length === 0) return el("p", null, state({ sign: "~", word: "no complaint", tone: "plain" }), " of ", cmd(`glovebox check ${quoted([file])}`));
  const rows = diagnostics.map((one) => [state(one.severity === "error" ? { sign: "✕", word: "error", tone: "fail" } : { sign: "!", word: line(one.severity), tone: "reserved" }), one.line ? `${line(one.file)}:${one.line}:${one.column}` : line(one.file), [short(one.message, 1000), one.help ? el("div", { class: "muted" }, `help: ${short(one.help, 1000)}`) : null], el("code", null, line(one.rule))]);
  return panel("Check", table(["", "place", "what", "rule"], rows));
}

/** All that the run could do, and the button that starts exactly this. */
function planned(plan, begin) {
  const holdouts = new Set(plan.holdouts?.reach ?? []);
  const list = (values) => (values?.length ? el("code", null, short(values.join(" "), 500)) : "nothing");
  const rows = plan.nodes.filter((node) => node.component).map((node) => [el("b", null, short(node.id, 60)), list(node.could.read), list(node.could.write), list(node.could.execute), list(node.could.reach), node.could.model ? short(node.asks?.name ?? "a model", 60) : "no", holdouts.has(node.id) ? state({ sign: "!", word: "sees hold-outs", tone: "reserved" }) : "no"]);
  const seen = el("input", { id: "seen", type: "checkbox", change: () => (go.disabled = !seen.checked || !may("start")) });
  const go = button("Start this plan", () => begin(plan.digest), { class: "first", id: "start", disabled: true });
  const denied = (plan.denied ?? []).map((one) => el("li", null, el("code", null, short(one.grant, 200)), ` denied by ${line(one.from)}${one.node ? ` at ${line(one.node)}` : ""}`));
  return panel(
    "Plan",
    el("div", { class: "row" }, el("code", { id: "digest", title: line(plan.digest) }, digest(plan.digest)), el("span", null, `pipeline ${line(plan.pipeline)}`), el("span", null, `sandbox ${line(plan.sandbox_tier)}`), el("span", null, `network ${line(plan.sandbox?.network ?? "none")}`), el("span", null, `at most ${plan.steps_max} steps`)),
    el("div", { class: "scroll" }, table(["stage", "reads", "writes", "runs", "reaches", "asks a model", "hold-outs"], rows)),
    denied.length ? el("ul", null, denied) : null,
    (plan.unlocked ?? []).map((one) => el("p", null, state({ sign: "!", word: "not locked", tone: "reserved" }), ` ${line(one.plugin)}: ${short(one.reason, 300)}`)),
    el("div", { class: "row" }, el("label", { class: "line", for: "seen" }, seen, " I have read the plan"), go),
  );
}
