//! `glovebox plan`: what a pipeline could read, write, execute and reach. Nothing in a run lies outside it; nothing runs here.

use crate::arguments::PlanArguments;
use crate::bound::Purpose;
use crate::exit::{Ended, Exit};
use crate::terminal::{self, visible};
use crate::{bound, project, source};
use glovebox_engine::plan::{Could, PlanFile, PlanNode, SandboxPlan, Walls};
use std::collections::BTreeSet;

/// Prints the plan, and what a run of it would be refused for: nothing is executed here.
pub fn plan(arguments: &PlanArguments) -> Ended {
    let source = source::read_pipeline(&arguments.file, &source::inputs(&arguments.project.inputs))?;
    let project = project::read_project(&arguments.project.workdir, Some(&arguments.file))?;
    let script = arguments.execution.script.as_deref().map(bound::read_script).transpose()?;
    let bound =
        bound::bind_plan(&source, &project, script.as_ref(), Purpose::Show, bound::holdouts(&source, &project)?)?;
    let mut file = bound.plan.to_json();
    file.steps_max = source.pipeline.steps_max(arguments.execution.max_steps);
    let wall_max = source.pipeline.wall_max(arguments.execution.max_wall_time);
    file.wall_max_ms = wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
    if arguments.json {
        terminal::print_json(&file)?;
    } else {
        terminal::print(&(render(&file) + &walls(&bound.plan.sandbox)));
    }
    Ok(Exit::Ok)
}

fn render(file: &PlanFile) -> String {
    let mut text = format!(
        "plan of {}: {} nodes, at most {} steps",
        visible::line(&file.pipeline),
        file.nodes.len(),
        file.steps_max
    );
    if let Some(wall_ms) = file.wall_max_ms {
        text.push_str(&format!(", at most {}", terminal::duration(wall_ms)));
    }
    text.push_str(&format!(
        ", model {}, sandbox {}, network {}\n",
        visible::line(&file.model),
        visible::line(&file.sandbox_tier),
        visible::line(&file.sandbox.network)
    ));
    text.push_str(&could("all nodes", &file.could));
    for node in &file.nodes {
        text.push_str(&render_node(node));
    }
    text
}

/// What the sandbox leaves open here, and why a run would be refused.
fn walls(sandbox: &SandboxPlan) -> String {
    let mut text = String::new();
    for missing in &sandbox.degradations {
        text.push_str(&format!("sandbox {}: {}\n", sandbox.tier_word(), visible::line(missing)));
    }
    if let Walls::Unmet(problem) = &sandbox.walls {
        text.push_str(&format!("`glovebox run` would refuse this: {}\n", visible::line(&problem.to_string())));
        for way in problem.help().lines() {
            text.push_str(&format!("  {:<8} {}\n", "help", visible::line(way)));
        }
    }
    text
}

fn render_node(node: &PlanNode) -> String {
    let (id, handler) = (visible::line(&node.id), visible::line(&node.handler));
    let Some(component) = &node.component else { return format!("{id} ({handler}): does no work\n") };
    let whose = if component.first_party { "built in" } else { "plugin" };
    let mut text = could(&format!("{id} ({handler}, {whose}, files: {})", component.filesystem), &node.could);
    if component.workdir != "." {
        text.push_str(&format!("  {:<8} {}\n", "starts", visible::line(&component.workdir)));
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

fn could(title: &str, could: &Could) -> String {
    let list = |entries: &BTreeSet<String>| match entries.is_empty() {
        true => "nothing".to_owned(),
        false => entries.iter().map(|entry| visible::line(entry).into_owned()).collect::<Vec<_>>().join(", "),
    };
    let model = if could.model { "yes" } else { "no" };
    let mut text = format!(
        "{title}\n  read     {}\n  write    {}\n  execute  {}\n  reach    {}\n",
        list(&could.read),
        list(&could.write),
        list(&could.execute),
        list(&could.reach)
    );
    for (name, folders) in [("scratch", &could.scratch), ("cache", &could.cache)] {
        if !folders.is_empty() {
            text.push_str(&format!("  {name:<8} {}\n", list(folders)));
        }
    }
    text + &format!("  model    {model}\n")
}
