//! `glovebox plan`: prints all that a run of a pipeline could read, write, execute and reach. It executes nothing.

pub mod of_run;

use crate::arguments::PlanArguments;
use crate::commands::plugin::refuse_differences;
use crate::exit::{CommandResult, Exit, Stop};
use crate::pipeline_file;
use crate::plan_diff::{self, Other};
use crate::prepare;
use crate::runs::{self, RunSelector};
use crate::terminal::paint::Paint;
use crate::terminal::{self, pager, visible};
use glovebox_host::grants::FileTier;
use glovebox_models::target::Endpoint;
use glovebox_pipeline::ir::Role;
use glovebox_pipeline::transform::RuleRecord;
use glovebox_plan::plan::compare::{PlanDiff, additions, compare};
use glovebox_plan::plan::deny::{Denied, Deny, denied};
use glovebox_plan::plan::{
    CapabilityLists, Confinement, HoldoutPlan, Plan, PlanChild, PlanComponent, PlanEgress, PlanFile, PlanLacking,
    PlanModel, PlanNode, PlanParallel, PlanRecovery, PlanSupervision, PlanWant, SandboxPlan,
};
use glovebox_plan::prepare::binding::{self, Purpose, Request};
use glovebox_plan::prepare::trust::{self, Wanted};
use glovebox_plan::prepare::{script, source, widening};
use glovebox_plan::rules::{Extent, Wider};
use glovebox_record::Network;
use glovebox_record::spend::SpendBounds;
use std::collections::BTreeSet;

/// Prints the plan, its difference from another plan, and the reasons for which a run would be refused.
pub fn plan(arguments: &PlanArguments) -> CommandResult {
    if let Some(run) = &arguments.run {
        return plan_of_run(arguments, run);
    }
    let (rules, host) = (rules(arguments)?, &prepare::component_host());
    let inputs = source::inputs(&arguments.project.inputs);
    let file = pipeline_file::choose(arguments.file.as_deref(), &arguments.project.workdir)?;
    let (source, project) = prepare::read_pipeline(host, &file, &inputs, &arguments.project.workdir)?;
    if arguments.locked {
        refuse_differences(&project)?;
    }
    let script = arguments.execution.script.as_deref().map(script::read_script).transpose()?;
    let purpose = if arguments.execution.dangerously_no_sandbox { Purpose::ShowUnconfined } else { Purpose::Show };
    let sealed = binding::holdouts(&source, &project)?;
    let parallel_max = arguments.execution.parallel.max_parallel;
    let labels = arguments.execution.labels.set();
    let request =
        Request { script: script.as_ref(), purpose, sealed, parallel_max, simulate: false, tier: None, labels };
    let bound = prepare::bind(host, &source, &project, request)?;
    binding::refuse_unpriced(&bound.plan, arguments.execution.spend.into())?;
    let other = plan_diff::read(host, arguments, &project)?;
    let mut file = bound.plan.to_json();
    file.digest = Some(bound.plan.digest());
    file.steps_max = source.pipeline.steps_max(arguments.execution.max_steps);
    let wall_max = source.pipeline.wall_max(arguments.execution.max_wall_time);
    file.wall_max_ms = wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
    file.stall = source.pipeline.stall(arguments.execution.stall.into());
    file.spend_max = bound.plan.spend_max(arguments.execution.spend.into());
    file.egress = trust::of_plan(&project, &bound.plan).iter().map(Wanted::to_plan).collect::<Result<_, _>>()?;
    evaluate(&mut file, &bound.plan, &plan_diff::extent(&bound.plan, &source, arguments), other, &rules);
    if arguments.json {
        terminal::print_json(&file)?;
    } else {
        prepare::warn_of_dependencies(&bound.plan, &project);
        let compared = file.against.as_ref().map(plan_diff::render).unwrap_or_default();
        let text = render(&file)
            + &unanswered(&bound.plan)
            + &rules_of(&source.rule_report.rules)
            + &sandbox_gaps(&bound.plan.commands.sandbox)
            + &compared;
        pager::show(&Paint::stdout().outline(&text));
    }
    widening::refuse(&project, &source.rule_report.rules)?;
    refuse(file.denied.as_deref().unwrap_or_default())?;
    refuse_unlocked(&bound.plan)
}

/// Prints what the plan of a run allowed.
fn plan_of_run(arguments: &PlanArguments, run: &RunSelector) -> CommandResult {
    let plan = of_run::document(&runs::select(&arguments.runs.runs_dir, run)?)?;
    if arguments.json {
        terminal::print_json(&plan)?;
    } else {
        pager::show(&Paint::stdout().outline(&of_run::render(&plan)));
    }
    Ok(Exit::Ok)
}

/// Returns an error with exit code 7, as `glovebox run` does, if a plugin is not locked or differs from the lock file.
fn refuse_unlocked(plan: &Plan) -> CommandResult {
    let Some(first) = plan.findings.unlocked.first() else { return Ok(Exit::Ok) };
    let more = match plan.findings.unlocked.len() - 1 {
        0 => String::new(),
        more => format!(" (and {})", terminal::counted(more, "more plugin")),
    };
    Err(Stop { help: first.help.clone(), ..Stop::new(Exit::Plugin, format!("{}{more}", first.message)) })
}

/// Parses the rules of `--deny`. Returns a usage error for an invalid rule, and for `widened` without `--against`.
fn rules(arguments: &PlanArguments) -> Result<Vec<Deny>, Stop> {
    let mut rules = Vec::new();
    for text in &arguments.deny {
        let rule = Deny::parse(text).map_err(|error| {
            let stop = Stop::new(Exit::Usage, format!("`--deny`: {error}"));
            stop.with_help(error.help().unwrap_or_else(|| "docs/configuration.md describes the rules".to_owned()))
        })?;
        if rule.needs_other() && arguments.against.is_none() {
            let message = "`--deny widened` needs a plan to compare with";
            return Err(
                Stop::new(Exit::Usage, message).with_help("add `--against latest`, or `--against FILE` for a pipeline")
            );
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// Adds the difference from the other plan, and the grants that the rules of `--deny` refuse.
fn evaluate(file: &mut PlanFile<'_>, plan: &Plan, own: &Extent, other: Option<Other>, rules: &[Deny]) {
    let now = own.capabilities();
    let more = other.as_ref().map(|other| additions(other.extent.capabilities(), now)).unwrap_or_default();
    let loosened = other.as_ref().map(|other| own.loosened(&other.extent)).unwrap_or_default();
    file.denied = (!rules.is_empty()).then(|| {
        let of_plan = denied(plan, now, rules, &more);
        let widened = rules.iter().filter(|rule| rule.needs_other());
        of_plan.into_iter().chain(widened.flat_map(|_| loosened.iter().map(no_longer_held))).collect()
    });
    file.against = other.map(|other| {
        let compared = compare(other.extent.capabilities(), now, other.plan);
        PlanDiff { loosened: loosened.iter().map(ToString::to_string).collect(), ..compared }
    });
}

/// Returns the refusal of `--deny widened` for a limit, a bound or a check of the other plan that this plan loosens.
fn no_longer_held(what: &Wider) -> Denied {
    let (rule, from) = ("widened".to_owned(), "the pipeline and the configuration".to_owned());
    Denied { rule, node: None, grant: what.to_string(), from }
}

/// Prints every grant that a rule refuses. Returns an error with exit code 6 if there is one.
fn refuse(denied: &[Denied]) -> CommandResult {
    for denied in denied {
        let whose = denied.node.as_ref().map_or_else(|| "the run".to_owned(), |node| format!("node `{node}`"));
        let text = format!("denied by `{}`: {whose}: {} (from: {})", denied.rule, denied.grant, denied.from);
        terminal::say(format_args!("error: {}\n", visible::line(&text)));
    }
    match denied.len() {
        0 => Ok(Exit::Ok),
        count => Err(Stop::new(Exit::Policy, format!("{} denied", terminal::counted(count, "grant")))
            .with_help("remove the grant listed after `from:`, or drop this `--deny` rule")),
    }
}

fn render(file: &PlanFile<'_>) -> String {
    let mut text = format!(
        "plan of {}: {} nodes, at most {} steps",
        visible::line(file.pipeline),
        file.nodes.len(),
        file.steps_max
    );
    if let Some(wall_ms) = file.wall_max_ms {
        text.push_str(&format!(", at most {}", terminal::duration(wall_ms)));
    }
    text.push_str(&format!(
        ", {}, sandbox {}, network {}\n",
        if file.could.model { format!("model {}", visible::line(file.model)) } else { "no model".to_owned() },
        visible::line(file.sandbox_tier),
        network(file)
    ));
    for unlocked in &file.unlocked {
        text.push_str(&format!("not locked: {}; `glovebox run` refuses it\n", visible::line(unlocked.reason)));
    }
    for PlanLacking { node, lacks } in &file.lacking {
        let (node, lacks) = (visible::line(node), lacks.join(", "));
        text.push_str(&format!("not on this machine: {node} needs {lacks}; `glovebox run` refuses it\n"));
    }
    text.push_str(&format!("all nodes\n{}", capabilities(&file.could)));
    for model in &file.models {
        let (name, id, at) = (visible::line(model.name), visible::line(model.model), visible::line(&model.endpoint));
        text.push_str(&format!("  asks     {name}: {} {id} at {at}\n", model.provider));
    }
    for server in &file.tool_servers {
        text.push_str(&format!("  server   {}\n", visible::line(&server.to_string())));
    }
    for provider in &file.tool_providers {
        text.push_str(&format!("  tools    {}\n", visible::line(&provider.to_string())));
    }
    for policy in &file.policies {
        text.push_str(&format!("  policy   {}\n", visible::line(&policy.to_string())));
    }
    for pair in &file.egress {
        let PlanEgress { source, sink, named_in, reached_by, confirmed } = pair;
        let word = if *confirmed { "confirmed" } else { "not confirmed" };
        let line = format!("`{source}` to {sink} ({named_in}; {reached_by}): {word}");
        text.push_str(&format!("  leaves   {}\n", visible::line(&line)));
    }
    text.push_str(&format!("  spend    {}\n", spend_of_all(file)));
    if let Some(verify) = &file.verify {
        text.push_str(&format!("  verify   {}\n", visible::line(&verify.to_string())));
    }
    if let Some(no_change) = &file.no_change {
        text.push_str(&format!("  changes  {}\n", visible::line(&no_change.to_string())));
    }
    file.recovery.iter().for_each(|recovery| text.push_str(&render_recovery(recovery)));
    for node in &file.nodes {
        let is_unlocked = file.unlocked.iter().any(|unlocked| unlocked.plugin == node.handler);
        text.push_str(&render_node(node, is_unlocked));
    }
    if !file.dependencies.is_empty() {
        let folders: Vec<_> = file.dependencies.iter().map(|folder| visible::line(folder)).collect();
        text.push_str(&format!("dependencies, whose changes are dropped after each stage: {}\n", folders.join(", ")));
    }
    if !file.dependency_stores.is_empty() {
        let folders: Vec<_> = file.dependency_stores.iter().map(|folder| visible::line(&folder.0)).collect();
        text.push_str(&format!(
            "stores that the dependencies link to, read-only for commands: {}\n",
            folders.join(", ")
        ));
    }
    file.holdouts.iter().for_each(|holdouts| text.push_str(&render_holdouts(holdouts)));
    text
}

/// Returns the network access from this machine: hosts of models, networks of tool servers, and the network of
/// commands.
fn network(file: &PlanFile<'_>) -> String {
    let endpoint = |model: &PlanModel<'_>| model.endpoint.parse::<Endpoint>().ok();
    let foreign = file.models.iter().filter_map(endpoint).filter(|endpoint| !endpoint.is_local());
    let hosts: BTreeSet<String> = foreign.map(|endpoint| endpoint.host).collect();
    let models =
        (!hosts.is_empty()).then(|| format!("{} for models", hosts.into_iter().collect::<Vec<_>>().join(", ")));
    let reaching = file.tool_servers.iter().filter(|server| server.network != Network::None.to_string());
    let servers = reaching.map(|server| format!("{} for tool server {}", server.network, server.name));
    let parts: Vec<String> = models.into_iter().chain(servers).collect();
    let commands = file.sandbox.network.to_string();
    let text = if parts.is_empty() { commands } else { format!("{}, {commands} for commands", parts.join(", ")) };
    visible::line(&text).into_owned()
}

/// Returns the lines about write recovery.
fn render_recovery(recovery: &PlanRecovery) -> String {
    let list = |texts: &[String]| texts.iter().map(|text| visible::line(text)).collect::<Vec<_>>().join(", ");
    let wait = recovery.timeout_ms.map(|wait| format!(", and has {} to answer", terminal::duration(wait)));
    let mut text = format!(
        "write recovery: a person is asked about writes outside of the write scope{}\n",
        wait.unwrap_or_default()
    );
    for (node, proposals) in &recovery.nodes {
        for (path, why) in proposals {
            let (node, path, why) = (visible::line(node), visible::line(path), visible::line(why));
            text.push_str(&format!("  {:<8} {node} might be allowed to write {path}: {why}\n", "allow"));
        }
    }
    for (title, texts) in [("discard", &recovery.discard), ("deny", &recovery.deny)] {
        if !texts.is_empty() {
            text.push_str(&format!("  {title:<8} {}\n", list(texts)));
        }
    }
    text
}

/// Returns the lines about hold-outs: the sealed folders, the nodes that can read them, and the opt-outs.
fn render_holdouts(holdouts: &HoldoutPlan) -> String {
    let list = |names: &[String]| match names.is_empty() {
        true => "nothing".to_owned(),
        false => names.iter().map(|name| visible::line(name)).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("hold-outs {}\n", list(&holdouts.folders));
    if holdouts.readers.is_empty() {
        let how = "none: no stage names the hold-outs by a path in its command, its plan's allow-list, its verify contract or \
                   `read_paths`, or has `holdouts=true`";
        text.push_str(&format!("  {:<8} {how}\n", "readers"));
    }
    if !holdouts.readers.is_empty() {
        text.push_str(&format!("  {:<8} for every other stage the hold-outs do not exist\n", "absent"));
    }
    for reader in &holdouts.readers {
        let (node, folders, from) = (visible::line(&reader.node), list(&reader.folders), visible::line(&reader.from));
        let told = if reader.is_withheld { "only its verdict" } else { "all that it prints" };
        text.push_str(&format!("  {:<8} {node} reads {folders} ({from}); builders learn {told}\n", "reader"));
    }
    if !holdouts.not_isolated.is_empty() {
        let nodes = list(&holdouts.not_isolated);
        text.push_str(&format!("  {:<8} {nodes}: their own commands also see the project\n", "shared"));
    }
    for opt_out in &holdouts.opt_outs {
        text.push_str(&format!("  {:<8} {}\n", "opt-out", visible::line(opt_out)));
    }
    text
}

/// Returns a line with the stages that no model answers; empty if there is none.
fn unanswered(plan: &Plan) -> String {
    match plan.simulated() {
        nodes if nodes.is_empty() => String::new(),
        nodes => {
            format!(
                "`glovebox run` needs a model under `[models]`, `--script FILE` or `--simulate`: no model answers {}\n",
                terminal::named(&nodes)
            )
        }
    }
}

/// Returns the lines about the rule plugins that checked the graph, and their changes.
fn rules_of(rules: &[RuleRecord]) -> String {
    let mut text = String::new();
    for rule in rules {
        let verb = if rule.changes_total == 0 { "checked" } else { "changed and checked" };
        text.push_str(&format!("rules `{}` {verb} the graph ({})\n", visible::line(&rule.name), rule.digest));
        for change in &rule.changes {
            text.push_str(&format!("  {}\n", visible::line(&change.to_string())));
        }
        match rule.changes_total.saturating_sub(rule.changes.len() as u64) {
            0 => {}
            more => text.push_str(&format!("  … {more} more\n")),
        }
        for line in &rule.widened {
            text.push_str(&format!("  widened: {}\n", visible::line(line)));
        }
    }
    text
}

/// Returns the lines about what the sandbox does not enforce on this machine, and why a run would be refused.
fn sandbox_gaps(sandbox: &SandboxPlan) -> String {
    let mut text = String::new();
    for missing in &sandbox.degradations {
        text.push_str(&format!("sandbox {}: {}\n", sandbox.tier_word(), visible::line(missing)));
    }
    if let Confinement::Unmet(problem) = &sandbox.confinement {
        text.push_str(&format!("`glovebox run` refuses this pipeline here: {}\n", visible::line(&problem.to_string())));
        for line in problem.help().lines() {
            text.push_str(&format!("  {:<8} {}\n", "help", visible::line(line)));
        }
    }
    text
}

fn render_node(node: &PlanNode<'_>, is_unlocked: bool) -> String {
    let (id, handler) = (visible::line(node.id), visible::line(node.handler));
    let Some(component) = &node.component else {
        return format!("{id} ({handler}): a control node, needs no grants\n{}", parallel(node));
    };
    let whose = match (component.first_party, component.role == Role::Verifier.as_str()) {
        (true, _) => "built in",
        (false, true) => "plugin bound as a verifier",
        (false, false) => "plugin",
    };
    // Commands of a built-in handler without files of its own still see the workspace, so `files: none` would mislead.
    let has_files = !component.first_party || component.filesystem != FileTier::None.as_str();
    let files = if has_files { format!(", files: {}", component.filesystem) } else { String::new() };
    let unlocked = if is_unlocked { ", not locked" } else { "" };
    let mut text = format!("{id} ({handler}, {whose}{unlocked}{files})\n{}", capabilities(&node.could));
    if let Some(asks) = &node.asks {
        let effort = asks.effort.map(|effort| format!(", effort {effort}")).unwrap_or_default();
        text.push_str(&format!("  asks     {}{effort}\n", visible::line(asks.name)));
    }
    text.push_str(&format!("  spend    {}\n", spend(node, component)));
    if let Some(need) = node.runs_on {
        text.push_str(&format!("  {:<8} {need}\n", "runs on"));
    }
    for session in &node.sessions {
        text.push_str(&format!("  {:<8} {}\n", "context", visible::line(&session.to_string())));
    }
    if component.workdir != "." {
        text.push_str(&format!("  {:<8} {}\n", "starts", visible::line(&component.workdir)));
    }
    for PlanWant { want, granted } in &component.wants {
        let granted = if *granted { "granted" } else { "not granted, or not all of it" };
        text.push_str(&format!("  {:<8} {}: {granted}\n", "wants", visible::line(want)));
    }
    for origin in component.origins.iter().filter(|_| !component.first_party) {
        text.push_str(&format!(
            "  {:<8} {}: {}\n",
            "because",
            visible::line(&origin.grant),
            visible::line(&origin.from)
        ));
    }
    text
}

/// Returns the lines about the branches of a parallel node or about a child pipeline; empty for another node.
fn parallel(node: &PlanNode<'_>) -> String {
    let Some(parallel) = &node.parallel else { return String::new() };
    if let Some(of_node) = &parallel.child {
        return child(of_node);
    }
    let PlanParallel { branches, max_parallel, join_policy, needed, error_policy, child: _ } = parallel;
    let chosen =
        if matches!(*join_policy, "k_of_n" | "quorum") { format!(" ({needed} of {branches})") } else { String::new() };
    let noun = if *branches == 1 { "branch" } else { "branches" };
    format!(
        "  parallel {branches} {noun}, at most {max_parallel} at a time, join {join_policy}{chosen}, errors {error_policy}\n"
    )
}

/// Returns the lines about the child pipeline that a node runs.
fn child(child: &PlanChild) -> String {
    let PlanChild { file, nodes, context_in, context_out, steps_max, supervision } = child;
    let steps = steps_max.map(|most| format!(", at most {most} visits")).unwrap_or_default();
    let keys = |keys: &[String]| match keys {
        [] => "nothing".to_owned(),
        keys => visible::line(&keys.join(", ")).into_owned(),
    };
    let mut text = format!("  runs     {}, {}{steps}\n", visible::line(file), terminal::counted(*nodes, "node"));
    text.push_str(&format!("  context  in: {}; out: {}\n", keys(context_in), keys(context_out)));
    if let Some(PlanSupervision { interval_ms, cycles_max, stop_condition, steers }) = supervision {
        let until = stop_condition.as_ref().map(|until| format!(", until {}", visible::line(until)));
        text.push_str(&format!(
            "  polls    every {}, at most {cycles_max} times{}{}\n",
            terminal::duration(*interval_ms),
            until.unwrap_or_default(),
            if *steers { ", and steers the child" } else { "" }
        ));
    }
    text
}

/// Returns the limits of the whole run.
fn spend_of_all(file: &PlanFile<'_>) -> String {
    let wall = file.wall_max_ms.map_or_else(|| "unlimited wall time".to_owned(), terminal::duration);
    let disk = file.disk_bytes_max.map(|bytes| format!(", {} of disk", terminal::size(bytes))).unwrap_or_default();
    let SpendBounds { tokens_max, cost_max } = file.spend_max;
    let tokens = tokens_max.map(|most| format!(", {most} tokens")).unwrap_or_default();
    let cost = cost_max.map(|most| format!(", {most}")).unwrap_or_default();
    let parallel = file.parallel_max.map(|most| format!(", {} at a time", terminal::counted(most, "stage")));
    let parallel = parallel.unwrap_or_default();
    let steps = terminal::counted(usize::try_from(file.steps_max).unwrap_or(usize::MAX), "step");
    format!("{steps}, {wall}{tokens}{cost}{disk}{parallel}{}", silence(file))
}

/// Returns the maximum time without progress.
fn silence(file: &PlanFile<'_>) -> String {
    match file.stall.bounds() {
        Some(bounds) => {
            let timeout_ms = u64::try_from(bounds.timeout.as_millis()).unwrap_or(u64::MAX);
            format!(", {} without progress", terminal::duration(timeout_ms))
        }
        None => ", unlimited time without progress".to_owned(),
    }
}

/// Returns the main limits of one visit. The JSON document has all limits.
fn spend(node: &PlanNode<'_>, component: &PlanComponent<'_>) -> String {
    let counted = |count: u64, noun: &str| terminal::counted(usize::try_from(count).unwrap_or(usize::MAX), noun);
    let most = |name: &str| component.limits.get(name).copied().filter(|most| *most != u64::MAX);
    let turns = most("turns").filter(|_| node.could.model).map(|turns| counted(turns, "turn"));
    let commands = most("commands").filter(|_| !node.could.execute.is_empty()).map(|most| counted(most, "command"));
    let wall = Some(most("wall_ms").map_or_else(|| "unlimited wall time".to_owned(), terminal::duration));
    [turns, commands, wall].into_iter().flatten().collect::<Vec<_>>().join(", ") + " per visit"
}

fn capabilities(could: &CapabilityLists) -> String {
    let list = |entries: &BTreeSet<String>| match entries.is_empty() {
        true => "nothing".to_owned(),
        false => entries.iter().map(|entry| visible::line(entry).into_owned()).collect::<Vec<_>>().join(", "),
    };
    let model = if could.model { "yes" } else { "no" };
    let mut text = format!(
        "  read     {}\n  write    {}\n  execute  {}\n  reach    {}\n",
        list(&could.read),
        list(&could.write),
        list(&could.execute),
        list(&could.reach)
    );
    for (name, folders) in [("scratch", &could.scratch), ("cache", &could.cache), ("tools", &could.tools)] {
        if !folders.is_empty() {
            text.push_str(&format!("  {name:<8} {}\n", list(folders)));
        }
    }
    if could.history {
        text.push_str("  git      every commit, branch and tag of the repository\n");
    }
    text + &format!("  model    {model}\n")
}
