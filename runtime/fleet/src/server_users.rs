//! The users of the NATS servers, one for each role, and what each may publish and receive.
//!
//! Signatures decide what counts; these permissions decide what gets into the stream at all. Only clients and drivers can write
//! journals, only the operator can write statements about machines, and nobody can remove a record or change the stream except
//! the operator.

use crate::fleet::inbox;
use crate::subjects::FleetName;
use std::fmt::Write;
use std::str::FromStr;

/// A user of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerRole {
    /// Makes the fleet, admits and expels machines.
    Operator,
    /// Begins runs, follows them and sends them messages.
    Client,
    /// Drives runs.
    Driver,
    /// Makes attempts.
    Worker,
    /// Only reads.
    Reader,
}

/// Subjects, in which `S` is the name of the stream of journals, and `M` that of the stream of messages.
type Subjects = &'static [&'static str];

/// What every user may ask: about itself and about the streams, for messages, and whether a machine is there.
const READ: Subjects = &[
    "$SYS.REQ.USER.INFO",
    "$JS.API.STREAM.INFO.S",
    "$JS.API.STREAM.INFO.M",
    "$JS.API.STREAM.MSG.GET.S",
    "$JS.API.STREAM.MSG.GET.M",
    "$JS.API.DIRECT.GET.S",
    "S.p.*",
];
/// What makes the queue of runs. A queue with another name could deliver messages to any subject.
const MAKE_DRIVERS: Subjects = &["$JS.API.CONSUMER.CREATE.S.drivers.S.q.drive.*"];
/// What takes runs from their queue.
const PULL_DRIVERS: Subjects = &["$JS.API.CONSUMER.MSG.NEXT.S.drivers", "$JS.ACK.S.drivers.>"];
/// What makes the queue of attempts, and takes attempts from it.
const PULL_STAGES: Subjects =
    &["$JS.API.CONSUMER.CREATE.S.stages.S.q.stage.>", "$JS.API.CONSUMER.MSG.NEXT.S.stages", "$JS.ACK.S.stages.>"];
/// What makes the streams.
const MAKE: Subjects = &[
    "$JS.API.STREAM.CREATE.S",
    "$JS.API.STREAM.CREATE.M",
    "$JS.API.STREAM.UPDATE.S",
    "$JS.API.STREAM.UPDATE.M",
    "S.f",
    "S.a.*",
];

impl ServerRole {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Operator, Self::Client, Self::Driver, Self::Worker, Self::Reader];

    /// Returns the name, which is also that of the user.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Client => "client",
            Self::Driver => "driver",
            Self::Worker => "worker",
            Self::Reader => "reader",
        }
    }

    fn may_publish(self) -> [Subjects; 4] {
        match self {
            Self::Operator => [READ, MAKE, &[], &[]],
            Self::Client => [READ, MAKE_DRIVERS, &[], &["S.r.*", "S.q.>", "S.m.*.*"]],
            // Messages to a run are removed when they are recorded. Nothing else is ever removed.
            Self::Driver => [
                READ,
                MAKE_DRIVERS,
                PULL_DRIVERS,
                &["S.r.*", "S.q.>", "S.m.*.*", "S.c.*", "S.n.*", "$JS.API.STREAM.MSG.DELETE.M"],
            ],
            Self::Worker => [READ, PULL_STAGES, &[], &["S.x.*.*", "S.c.*"]],
            Self::Reader => [READ, &[], &[], &[]],
        }
    }

    /// Returns what a user may receive, besides answers to its own requests.
    fn may_receive(self) -> Subjects {
        match self {
            Self::Client => &["S.m.*.*", "S.n.*"],
            Self::Driver => &["S.m.*.*", "S.c.*", "S.p.*"],
            Self::Worker => &["S.p.*"],
            Self::Reader => &["S.n.*"],
            Self::Operator => &[],
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Operator => "makes the fleet, admits and expels machines",
            Self::Client => "begins runs (`run --nats`), follows them, answers questions",
            Self::Driver => "drives runs (`work`): writes journals",
            Self::Worker => "makes attempts (`work --no-drive`): cannot write a journal",
            Self::Reader => "reads journals",
        }
    }
}

impl FromStr for ServerRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::as_str).join("`, `");
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| format!("expected `{known}`"))
    }
}

/// Returns the block of a nats-server's configuration with a user for each role. The password of each is taken from a variable
/// of the server's environment, such as `WORKER_PASSWORD`.
pub fn server_config(fleet: &FleetName, roles: &[ServerRole]) -> String {
    let mut text = "authorization {\n  users: [\n".to_owned();
    for role in roles {
        let name = role.as_str();
        let publish = role.may_publish().concat();
        let inbox = format!("{}.>", inbox(name));
        let receive = role.may_receive().iter().copied().chain([inbox.as_str()]);
        // A driver answers questions on subjects that it learns from them, and a machine whether it is there.
        let responses = if matches!(role, ServerRole::Driver | ServerRole::Worker) {
            "        allow_responses: true\n"
        } else {
            ""
        };
        let _ = write!(
            text,
            "    # {}\n    {{\n      user: {name}, password: ${}_PASSWORD\n      permissions: {{\n        publish: {{ allow: [{}] }}\n        \
             subscribe: {{ allow: [{}] }}\n{responses}      }}\n    }}\n",
            role.about(),
            name.to_uppercase(),
            list(fleet, publish),
            list(fleet, receive),
        );
    }
    text + "  ]\n}\n"
}

fn list<'a>(fleet: &FleetName, subjects: impl IntoIterator<Item = &'a str>) -> String {
    let mail = fleet.mail_stream();
    let named = subjects.into_iter().map(|subject| {
        let tokens = subject.split('.').map(|token| match token {
            "S" => fleet.stream(),
            "M" => &mail,
            token => token,
        });
        format!("\"{}\"", tokens.collect::<Vec<_>>().join("."))
    });
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_and_drivers_may_write_journals() {
        let fleet = FleetName::new("team").unwrap();
        for role in ServerRole::ALL {
            let text = server_config(&fleet, &[role]);
            assert_eq!(
                text.contains("\"team.r.*\""),
                matches!(role, ServerRole::Client | ServerRole::Driver),
                "{text}"
            );
            assert_eq!(text.contains("\"team.a.*\""), role == ServerRole::Operator, "{text}");
            // A record that can be removed could be an expulsion.
            assert!(!text.contains("MSG.DELETE.team\"") && !text.contains("PURGE"), "{text}");
            // A queue of one's own could deliver messages where the user may publish none.
            assert!(!text.contains("CREATE.team.>") && !text.contains("NEXT.team.>"), "{text}");
            assert_eq!(text.contains("NEXT.team.drivers"), role == ServerRole::Driver, "{text}");
            assert_eq!(text.contains("NEXT.team.stages"), role == ServerRole::Worker, "{text}");
            // A queue of another name could deliver messages to any subject.
            assert!(!text.contains("CREATE.team.>") && !text.contains("NEXT.team.>"), "{text}");
            assert_eq!(text.contains("NEXT.team.drivers"), role == ServerRole::Driver, "{text}");
            assert_eq!(text.contains("NEXT.team.stages"), role == ServerRole::Worker, "{text}");
            assert!(text.contains(&format!("\"_INBOX_{}.>\"", role.as_str())), "{text}");
            assert!(!text.contains("\"_INBOX.>\"") && !text.contains("\">\""), "{text}");
        }
    }
}
