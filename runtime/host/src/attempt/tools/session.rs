//! A session with one tool server: handshake, list of tools, calls. The first violation of the protocol ends the server for the attempt.
//!
//! After a timeout the answer may still arrive, and would be taken for the answer to the next call. Therefore a server that timed out
//! is not asked again.

use super::message::{self, NAME_BYTES_MAX, ServerMessage, ServerRequest, Tool, ToolResult};
use super::{MESSAGE_BYTES_MAX, ServerSetting, TOOLS_MAX};
use glovebox_jail::exec::{Command, Program};
use glovebox_jail::server::{Server, ServerError, Wait};
use serde_json::Value;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Maximum number of other messages of a server before the answer to a request.
const BETWEEN_MAX: usize = 1000;
/// Maximum number of pages of a list of tools.
const PAGES_MAX: usize = 16;

/// The remaining time of the attempt and its cancellation flag.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitLimit<'a> {
    pub(super) remaining: Duration,
    pub(super) canceled: &'a AtomicBool,
}

/// A running server, and its tools as it listed them at the start.
#[derive(Debug)]
pub(super) struct ServerSession {
    server: Server,
    /// Id of the last request.
    last: u64,
    /// The tools that the stage may call.
    pub(super) tools: Vec<Tool>,
    /// Why other tools are not offered.
    pub(super) left_out: Vec<String>,
}

impl ServerSession {
    /// Starts a server and asks for its tools. Blocks until the server has answered.
    pub(super) fn start(setting: &ServerSetting, limit: WaitLimit<'_>) -> Result<Self, String> {
        let jail = setting.jail.get().map_err(|error| error.to_string())?;
        let env = setting.env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect();
        let command = Command {
            program: Program::Argv(setting.command.clone()),
            cwd: setting.workdir.clone(),
            env,
            stdin: None,
            timeout: limit.remaining,
        };
        let server = Server::start(jail, command).map_err(|error| error.to_string())?;
        let mut session = Self { server, last: 0, tools: Vec::new(), left_out: Vec::new() };
        let deadline = Instant::now() + setting.timeout.min(limit.remaining);
        let wait = Wait { deadline, canceled: limit.canceled };
        let answer = session.ask(ServerRequest::Initialize, wait)??;
        message::check_version(&answer)?;
        session.server.send(message::initialized().as_bytes(), wait).map_err(|error| error.to_string())?;
        session.list(setting, wait)?;
        Ok(session)
    }

    /// Calls a tool. An error of the tool is part of the result. Any other failure of the server is an `Err`.
    pub(super) fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        time_max: Duration,
        limit: WaitLimit<'_>,
    ) -> Result<ToolResult, String> {
        let wait = Wait { deadline: Instant::now() + time_max.min(limit.remaining), canceled: limit.canceled };
        match self.ask(ServerRequest::Call { tool, arguments }, wait)? {
            Ok(answer) => message::read_result(&answer),
            Err(text) => Ok(ToolResult { text, is_error: true }),
        }
    }

    fn list(&mut self, setting: &ServerSetting, wait: Wait<'_>) -> Result<(), String> {
        let (mut cursor, mut seen) = (None::<String>, 0);
        for _ in 0..PAGES_MAX {
            let answer = self.ask(ServerRequest::List { cursor: cursor.as_deref() }, wait)??;
            let page = message::page(&answer, TOOLS_MAX - seen)?;
            seen += page.tools.len();
            for tool in page.tools {
                match tool {
                    // Tools that the stage may not call are not reported, because the server chooses these texts.
                    Ok(tool) if !setting.tools.has(&tool.name) => {}
                    Ok(tool) if setting.model_name(&tool).len() > NAME_BYTES_MAX => {
                        self.left_out.push(format!("the name of the tool `{}` is too long", tool.name));
                    }
                    Ok(tool) if self.tools.iter().any(|known| known.name == tool.name) => {
                        return Err(format!("it lists the tool `{}` twice", tool.name));
                    }
                    Ok(tool) => self.tools.push(tool),
                    Err(reason) => self.left_out.push(reason),
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
        Err(format!("its list of tools has more than {PAGES_MAX} pages"))
    }

    /// Sends one request and waits for its answer. The inner error is one that the server returned.
    fn ask(&mut self, ask: ServerRequest<'_>, wait: Wait<'_>) -> Result<Result<Value, String>, String> {
        let reason = |error: ServerError| error.to_string();
        self.last += 1;
        self.server.send(ask.line(self.last).as_bytes(), wait).map_err(reason)?;
        for _ in 0..BETWEEN_MAX {
            let line = self.server.receive(MESSAGE_BYTES_MAX, wait).map_err(reason)?;
            match message::read(&line, self.last)? {
                ServerMessage::Answer(answer) => return Ok(answer),
                ServerMessage::Request(reply) => self.server.send(reply.as_bytes(), wait).map_err(reason)?,
                ServerMessage::Notification => {}
            }
        }
        Err(format!("it wrote more than {BETWEEN_MAX} messages before its answer"))
    }
}
