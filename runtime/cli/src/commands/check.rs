//! `glovebox check`: reports whether a pipeline is valid, and if not, where and why; and whether the scripts of its
//! hold-outs are reliable.

use crate::arguments::{CheckArguments, CheckFor, CheckFormat};
use crate::commands::plugin::refuse_differences;
use crate::exit::{CommandResult, Exit, Stop};
use crate::pipeline_file;
use crate::prepare;
use crate::replaced_file;
use crate::terminal::diagnostics::{self, Findings};
use crate::terminal::{self, counted, machine, visible};
use glovebox_pipeline::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Severity, fixed};
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::lint::{self, Script};
use glovebox_pipeline::{Inputs, Source};
use glovebox_plan::prepare::binding_check::PLUGIN_REFUSED;
use glovebox_plan::prepare::check::{CheckedFile, FileChecker, check_children, check_file};
use glovebox_plan::prepare::scenarios;
use glovebox_plan::prepare::source::{self, ParsedFile};
use glovebox_record::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of rounds of fixes. One round may not be enough: a fix can reveal another problem, and a finding that
/// applies to many places is reported at one of them per round.
const FIX_ROUNDS_MAX: usize = 2_000;
/// Maximum number of bytes that all rounds of one file may parse.
const FIX_BYTES_MAX: usize = 256 << 20;

/// Checks every file before it returns, so that one bad file does not hide the problems of another.
pub fn check(arguments: &CheckArguments) -> CommandResult {
    let files = match &arguments.files[..] {
        [] => vec![pipeline_file::choose(None, Path::new("."))?],
        files => files.to_vec(),
    };
    let inputs = source::inputs(&arguments.inputs);
    let mut checked = Vec::new();
    // Keyed by path, because pipelines may share their hold-outs.
    let mut scripts = BTreeMap::new();
    let mut unreadable = None;
    if arguments.locked {
        refuse_changed_plugins(&files)?;
    }
    let host = prepare::component_host();
    let mut rule_sets = FileChecker::new(&host, arguments.purpose == CheckFor::Run);
    let mut refused = None;
    let mut cut = Vec::new();
    let mut reported = BTreeSet::new();
    for (number, file) in files.iter().enumerate() {
        let found = if arguments.fix { fix(file, &inputs) } else { open(file, &inputs) };
        match found.map(|opened| check_file(opened, &mut rule_sets)) {
            Ok(CheckedFile { mut findings, pipeline, wanted, is_cut }) => {
                cut.extend(is_cut.then(|| findings.file.clone()));
                let below = check_children(file, &mut findings, &wanted, &mut rule_sets);
                checked.push(findings);
                // Two pipelines may have the same child, which is reported once.
                checked.extend(below.into_iter().filter(|child| reported.insert(child.file.clone())));
                scripts.extend(pipeline.iter().flat_map(|pipeline| check_scripts(file, pipeline)));
                if number + 1 == files.len() {
                    // The process ends soon, and dropping ten thousand nodes one by one takes as long as the lint.
                    std::mem::forget(pipeline);
                }
            }
            Err(stop) => {
                terminal::report_stop(&stop);
                unreadable.get_or_insert(stop.exit);
            }
        }
        prepare::say_note(rule_sets.take_note().as_deref());
        for stop in rule_sets.take_refusals().into_iter().map(Stop::from) {
            terminal::report_stop(&stop);
            refused.get_or_insert(stop.exit);
        }
    }
    let pipelines = checked.len();
    checked.extend(scripts.into_values());
    match arguments.format {
        CheckFormat::Json => terminal::print_json(&checked.iter().flat_map(diagnostics::records).collect::<Vec<_>>())?,
        CheckFormat::Sarif => terminal::print_json(&machine::sarif(&checked))?,
        CheckFormat::Github => terminal::print(machine::github(&checked)),
        CheckFormat::Text => checked.iter().for_each(|findings| prepare::report(findings, Severity::Info)),
    }
    cut.iter().for_each(|file| say_cut(file));
    let total = |severity| checked.iter().map(|findings| findings.count(severity)).sum::<usize>();
    let (errors, warnings) = (total(Severity::Error), total(Severity::Warning));
    let is_bad = errors > 0 || (arguments.strict && warnings > 0);
    if arguments.format == CheckFormat::Text {
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        terminal::say(format_args!("{pipelines} checked: {errors}, {warnings}\n"));
    }
    match unreadable.or(refused) {
        Some(exit) => Err(Stop::silent(exit)),
        None if is_bad && errors == plugins_refused(&checked) && errors > 0 => Err(Stop::silent(Exit::Plugin)),
        None if is_bad => Err(Stop::silent(Exit::Invalid)),
        None => Ok(Exit::Ok),
    }
}

/// Returns the number of errors that are about plugins. If there are no others, the exit code is 7.
fn plugins_refused(checked: &[Findings]) -> usize {
    let all = checked.iter().flat_map(|findings| &findings.diagnostics);
    all.filter(|found| found.rule == PLUGIN_REFUSED).count()
}

/// Compares the lock file of each project with its plugins (`--locked`). Projects of several pipelines are compared once.
fn refuse_changed_plugins(files: &[PathBuf]) -> Result<(), Stop> {
    let mut compared = BTreeSet::new();
    for file in files {
        let project = prepare::read_project(Path::new("."), Some(file))?;
        if compared.insert(project.config_dir.clone()) {
            refuse_differences(&project)?;
        }
    }
    Ok(())
}

fn open(file: &Path, inputs: &Inputs) -> Result<ParsedFile, Stop> {
    Ok(ParsedFile::parse(file, source::read_text(file)?, inputs))
}

/// Prints a note that the list of findings of a file is not complete.
fn say_cut(file: &str) {
    let file = visible::line(file);
    terminal::say(format_args!("note: `{file}` has more findings than the {DIAGNOSTICS_MAX} that are shown\n"));
}

/// Applies every safe fix to the file, and opens the result. An edit that adds a syntax error is not made.
fn fix(file: &Path, inputs: &Inputs) -> Result<ParsedFile, Stop> {
    if source::is_stdin(file) {
        let stop = Stop::new(Exit::Usage, "`--fix` cannot change standard input");
        return Err(stop.with_help("name a file, or leave out `--fix`"));
    }
    let mut opened = open(file, inputs)?;
    let before = Digest::hash(opened.text.as_bytes());
    for _ in 0..FIX_ROUNDS_MAX.min(FIX_BYTES_MAX / opened.text.len().max(1)) {
        let found = glovebox_pipeline::validate(opened.draft.clone()).diagnostics;
        let Some(text) = fixed(Source::new(&opened.text), &found) else { break };
        let next = ParsedFile::parse(file, text, inputs);
        if next.is_broken() && !opened.is_broken() {
            break;
        }
        opened = next;
    }
    if Digest::hash(opened.text.as_bytes()) != before {
        replaced_file::replace(file, &opened.text)?;
        terminal::say(format_args!("fixed: {}\n", visible::line(&file.display().to_string())));
    }
    Ok(opened)
}

/// Returns the findings in the scripts of a pipeline's hold-outs, by path. Scripts without a finding are left out.
fn check_scripts(file: &Path, pipeline: &Pipeline) -> BTreeMap<String, Findings> {
    let scripts = scenarios::read(file, pipeline);
    let texts: Vec<Script<'_>> =
        scripts.iter().map(|script| Script { path: &script.path, text: &script.text }).collect();
    let mut found: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
    for finding in lint::scripts(pipeline, &texts) {
        found.entry(finding.path).or_default().push(finding.diagnostic);
    }
    let findings = scripts.into_iter().filter_map(|script| {
        let diagnostics = found.remove(&script.path)?;
        Some((script.path.clone(), Findings { file: script.path, source: script.text, diagnostics }))
    });
    findings.collect()
}
