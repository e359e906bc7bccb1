//! `glovebox init`: writes a pipeline and settings that fit the project, and a `.gitignore` if the project has none.
//! With `--try`, it then runs the commands in the sandbox.

mod attempts;

use crate::arguments::InitArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::pipeline_file;
use crate::setup::starter::{IGNORE_FILE_NAME, Template, ignored, pipeline, settings};
use crate::terminal::{self, visible};
use glovebox_plan::config::CONFIG_FILE_NAME;
use glovebox_plan::prepare::survey::Survey;
use glovebox_plan::prepare::toolchain;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Inspects the project and writes the files. If the pipeline or the settings exist, writes nothing; with `--try`,
/// writes only the missing files.
pub fn init(arguments: &InitArguments) -> CommandResult {
    if arguments.list {
        for template in Template::ALL {
            terminal::print(format_args!("{:<10} {}\n", template.name(), template.purpose()));
        }
        return Ok(Exit::Ok);
    }
    let folder = &arguments.workdir;
    if !folder.is_dir() {
        return Err(Stop::new(Exit::Usage, format!("workdir `{}` is not a directory", folder.display())));
    }
    let survey = Survey::for_project(folder);
    let text = pipeline(arguments.template, &survey).map_err(|found| {
        let first = found.into_iter().next().map(|found| found.message).unwrap_or_default();
        Stop::new(Exit::Internal, format!("the pipeline of `init` does not parse: {first}"))
    })?;
    let mut files = vec![(pipeline_file::NAME, text), (CONFIG_FILE_NAME, settings(&survey))];
    files.extend(ignored(&survey, folder).map(|text| (IGNORE_FILE_NAME, text)));
    if arguments.print {
        for (name, text) in &files {
            let comment = if *name == pipeline_file::NAME { "//" } else { "#" };
            terminal::print(format_args!("{comment} ---- {name}\n{text}\n"));
        }
        return Ok(Exit::Ok);
    }
    if arguments.tries {
        files.retain(|(name, _)| folder.join(name).symlink_metadata().is_err());
    }
    refuse_existing(folder, &files)?;
    write(folder, &files)?;
    report(&survey, &files, arguments);
    if arguments.tries {
        return attempts::attempt(folder, &survey);
    }
    terminal::say("try      glovebox init --try runs the commands in the sandbox, and fixes the settings\n");
    terminal::say("next     glovebox plan, then glovebox run\n");
    Ok(Exit::Ok)
}

fn refuse_existing(folder: &Path, files: &[(&str, String)]) -> Result<(), Stop> {
    let there = files.iter().filter(|(name, _)| folder.join(name).symlink_metadata().is_ok());
    let names: Vec<String> = there.map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() {
        return Ok(());
    }
    let (verb, pronoun) = if names.len() == 1 { ("exists", "it") } else { ("exist", "them") };
    let stop = Stop::new(Exit::Usage, format!("{} {verb} already: nothing was written", names.join(" and ")));
    Err(stop.with_help(format!("move {pronoun} away, or show what `init` would write: `glovebox init --print`")))
}

/// Writes all files or none. Does not replace a symbolic link, or a file that was created after the check.
fn write(folder: &Path, files: &[(&str, String)]) -> Result<(), Stop> {
    for (index, (name, text)) in files.iter().enumerate() {
        let path = folder.join(name);
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let is_ours = created.is_ok();
        if let Err(error) = created.and_then(|mut file| file.write_all(text.as_bytes())) {
            let ours = if is_ours { index + 1 } else { index };
            // An error of a removal is ignored, because the error of the write is reported.
            files[..ours].iter().for_each(|(name, _)| drop(fs::remove_file(folder.join(name))));
            return Err(Stop::io(format!("write `{}`", path.display()), &error));
        }
    }
    Ok(())
}

/// Prints what was found and why, what is missing, and what to do next.
fn report(survey: &Survey, written: &[(&str, String)], arguments: &InitArguments) {
    for part in &survey.parts {
        terminal::say(format_args!("found    {} project: {}\n", part.kind, visible::line(&part.found)));
        for step in &part.steps {
            let place = if part.folder.is_empty() { String::new() } else { format!(" in {}", part.folder) };
            terminal::say(format_args!(
                "  {:<7}{}{place}\n         {}\n",
                step.purpose.as_str(),
                step.command,
                step.why
            ));
        }
    }
    for (name, _) in written {
        terminal::say(format_args!("wrote    {name}\n"));
    }
    let missing = survey.toolchains().into_iter().filter_map(toolchain::missing);
    let seen_by = || survey.toolchains().into_iter();
    let missing = missing
        .chain(survey.programs().into_iter().filter_map(|program| toolchain::missing_program(program, seen_by())));
    for note in survey.notes.iter().cloned().chain(missing) {
        terminal::say(format_args!("note     {}\n", visible::line(&note)));
    }
    if arguments.template.begins_with_model() {
        terminal::say(
            "note     write what you want into `goal` of pipeline.dot; name a model under `[models]` in glovebox.toml\n",
        );
    }
}
