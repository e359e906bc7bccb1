//! `glovebox fake-llm`: a model provider whose answers are written in a file, for tests and CI.

use crate::arguments::FakeArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal;
use glovebox_fake_llm::{Fake, FakeScript, Log};
use glovebox_plan::prepare::source;
use std::fs::File;
use std::io;

/// Answers requests until the process is stopped.
pub fn fake_llm(arguments: &FakeArguments) -> CommandResult {
    let text = source::read_text(&arguments.script)?;
    let script = FakeScript::parse(&text).map_err(|error| {
        let place = arguments.script.display();
        Stop::new(Exit::Invalid, format!("script `{place}` line {}: {}", error.line, error.problem))
    })?;
    let log: Log = match &arguments.log {
        Some(file) => {
            let place = file.display();
            Box::new(File::create(file).map_err(|error| Stop::io(format!("write `{place}`"), &error))?)
        }
        None => Box::new(io::sink()),
    };
    let listen = arguments.listen;
    if !listen.ip().is_loopback() {
        let message = format!("`--listen {listen}` is not a loopback address");
        return Err(Stop::new(Exit::Usage, message).with_help("use `--listen 127.0.0.1:0`"));
    }
    let fake = Fake::bind(listen, script, log).map_err(|error| Stop::io(format!("listen at `{listen}`"), &error))?;
    let address = fake.address().map_err(|error| Stop::io("listen", &error))?;
    // The parent process waits for this line.
    terminal::print(format_args!("http://{address}\n"));
    fake.serve().map_err(|error| Stop::io("accept a connection", &error))?;
    Ok(Exit::Ok)
}
