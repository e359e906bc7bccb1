//! What a user of the servers may do: asked from the server, and compared with what a role needs.

use crate::examine::{Finding, State};
use crate::subjects::FleetName;
use async_nats::{Client, Request};
use serde::Deserialize;
use std::time::Duration;

/// The request with which each user may ask about itself.
const USER_INFO: &str = "$SYS.REQ.USER.INFO";

/// What the server says about the user of a connection.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct UserInfo {
    #[serde(default)]
    user: String,
    /// `None` if the user may do everything.
    #[serde(default)]
    permissions: Option<Permissions>,
}

#[derive(Debug, Default, Deserialize)]
struct Permissions {
    #[serde(default)]
    publish: Subjects,
}

/// The subjects of one permission.
#[derive(Debug, Default, Deserialize)]
struct Subjects {
    /// Empty if all are allowed.
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    data: UserInfo,
}

impl UserInfo {
    /// Asks the server. `None` if it does not answer, for example because the user may not ask.
    pub(crate) async fn ask(client: &Client, wait: Duration) -> Option<Self> {
        let request = Request::new().timeout(Some(wait));
        let answer = client.send_request(USER_INFO, request).await.ok()?;
        serde_json::from_slice::<Answer>(&answer.payload).ok().map(|answer| answer.data)
    }

    /// Says who the user is and what it may write.
    pub(crate) fn finding(&self, fleet: &FleetName) -> Finding {
        let Some(permissions) = &self.permissions else {
            let found = match self.user.as_str() {
                "" => "everybody who reaches the server can write every journal".to_owned(),
                user => format!("`{user}` can write every journal and remove the stream"),
            };
            let help = "give each role a user of its own: `glovebox fleet permissions`".to_owned();
            return Finding { name: "user", state: State::Warning, found, help: Some(help) };
        };
        let prefix = fleet.stream();
        let rights = [("journals", "r"), ("results", "x.run"), ("statements about machines", "a")];
        let (may, may_not): (Vec<_>, Vec<_>) =
            rights.iter().partition(|(_, kind)| permissions.publish.allows(&format!("{prefix}.{kind}.one")));
        let list = |rights: Vec<&(&str, &str)>| match rights.is_empty() {
            true => "nothing".to_owned(),
            false => rights.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        };
        let found = format!("`{}` can write: {}; cannot write: {}", self.user, list(may), list(may_not));
        Finding { name: "user", state: State::Ok, found, help: None }
    }
}

impl Subjects {
    /// Returns true if a message may be published on this subject.
    fn allows(&self, subject: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, subject));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }
}

/// Returns true if a subject is one of a pattern's: `*` is one token, `>` all that follow.
fn matches(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for part in pattern.split('.') {
        match (part, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (part, Some(token)) if part == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_its_subjects() {
        for (pattern, subject, expected) in [
            ("gb.r.>", "gb.r.one", true),
            ("gb.>", "gb.r.one", true),
            (">", "gb", true),
            ("gb.r.>", "gb.r", false),
            ("gb.*.one", "gb.r.one", true),
            ("gb.*", "gb.r.one", false),
            ("gb.r.one.two", "gb.r.one", false),
            ("gb.x.>", "gb.r.one", false),
        ] {
            assert_eq!(matches(pattern, subject), expected, "{pattern} {subject}");
        }
    }

    #[test]
    fn a_user_is_described_by_what_it_may_write() {
        let found = |info: &str| {
            let finding = serde_json::from_str::<UserInfo>(info).unwrap().finding(&FleetName::default());
            (finding.state, finding.found)
        };
        let (state, text) = found(r#"{"user":"","account":"$G"}"#);
        assert!(state == State::Warning && text.starts_with("everybody"), "{text}");
        let (state, text) = found(r#"{"user":"root","account":"$G"}"#);
        assert!(state == State::Warning && text.starts_with("`root` can write every journal"), "{text}");
        let (state, text) = found(r#"{"user":"w","permissions":{"publish":{"allow":["gb.x.>"]}}}"#);
        let expected = "`w` can write: results; cannot write: journals, statements about machines";
        assert_eq!((state, text.as_str()), (State::Ok, expected));
        let (_, text) = found(r#"{"user":"d","permissions":{"publish":{"deny":["gb.a.>"]}}}"#);
        assert_eq!(text, "`d` can write: journals, results; cannot write: statements about machines");
    }
}
