//! What this client has seen: answers with more pages, plans, and the changes of runs.

use crate::call::bad;
use crate::pages;
use glovebox_record::{Digest, RunId};
use glovebox_serve::desk::Problem;
use serde_json::{Map, Value};
use std::collections::VecDeque;

/// Number of answers with more pages that are kept.
const ANSWERS_MAX: usize = 4;
/// Number of plans, and of runs whose changes were shown, that are remembered.
const SEEN_MAX: usize = 64;

/// What the client has seen once it has the last page of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The plan with this digest.
    Plan(Digest),
    /// All changes of a run, when its last record had this hash.
    Changes(RunId, Digest),
}

/// A call: the name of the tool, and its arguments without the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Map<String, Value>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// A sentence of the server.
    pub(crate) said: Option<String>,
    /// The document.
    pub(crate) text: String,
    /// What the client has seen after the last page.
    pub(crate) seen: Option<Seen>,
}

struct Kept {
    number: u64,
    call: Call,
    answer: Answer,
    /// Where the last page that was sent ended.
    sent: usize,
}

/// What this client has seen.
#[derive(Default)]
pub(crate) struct Session {
    kept: VecDeque<Kept>,
    count: u64,
    seen: VecDeque<Seen>,
}

impl Session {
    /// Returns the first page of an answer, and keeps the answer if there are more.
    pub(crate) fn first(&mut self, call: Call, answer: Answer) -> Result<String, Problem> {
        if answer.text.len() > pages::DOCUMENT_BYTES_MAX {
            let most = pages::DOCUMENT_BYTES_MAX >> 20;
            return Err(Problem::new(413, "too-long", format!("this document is longer than {most} MiB"))
                .with_help("ask for one stage, or ask the user to look at it with the command line"));
        }
        self.count += 1;
        self.kept.push_back(Kept { number: self.count, call, answer, sent: 0 });
        if self.kept.len() > ANSWERS_MAX {
            self.kept.pop_front();
        }
        self.page(self.count, 0)
    }

    /// Returns the page of a kept answer that a cursor names.
    pub(crate) fn next(&mut self, call: &Call, cursor: &str) -> Result<String, Problem> {
        let unknown = || {
            Problem::new(404, "unknown-cursor", "this cursor does not belong to a kept answer of this call")
                .with_help("call the tool without `cursor`")
        };
        let parsed = cursor.split_once('.').and_then(|(number, at)| Some((number.parse().ok()?, at.parse().ok()?)));
        let (number, at): (u64, usize) = parsed.ok_or_else(unknown)?;
        // Pages are read in order: the last one is not sent to a client that has not had the others.
        let is_sent = |kept: &Kept| {
            kept.number == number && kept.call == *call && at <= kept.sent && kept.answer.text.is_char_boundary(at)
        };
        if !self.kept.iter().any(is_sent) {
            return Err(unknown());
        }
        self.page(number, at)
    }

    fn page(&mut self, number: u64, from: usize) -> Result<String, Problem> {
        let kept = self.kept.iter_mut().find(|kept| kept.number == number);
        let kept = kept.ok_or_else(|| bad("this answer is not kept"))?;
        let to = pages::end(&kept.answer.text, from);
        let is_last = to == kept.answer.text.len();
        let cursor = (!is_last).then(|| format!("{number}.{to}"));
        let page = pages::render(kept.answer.said.as_deref(), &kept.answer.text[from..to], cursor.as_deref())?;
        kept.sent = kept.sent.max(to);
        if let Some(seen) = kept.answer.seen.clone().filter(|_| is_last) {
            self.remember(seen);
        }
        if is_last && from == 0 {
            self.kept.retain(|kept| kept.number != number);
        }
        Ok(page)
    }

    fn remember(&mut self, seen: Seen) {
        self.seen.retain(|known| match (known, &seen) {
            (Seen::Changes(known, _), Seen::Changes(run, _)) => known != run,
            (known, seen) => known != seen,
        });
        self.seen.push_back(seen);
        if self.seen.len() > SEEN_MAX {
            self.seen.pop_front();
        }
    }

    /// Returns true if the client was shown the plan with this digest.
    pub(crate) fn has_seen_plan(&self, digest: &Digest) -> bool {
        self.seen.contains(&Seen::Plan(*digest))
    }

    /// Returns the hash of the last record of a run when its changes were shown to the client.
    pub(crate) fn head_of(&self, run: &str) -> Option<Digest> {
        self.seen.iter().find_map(|seen| match seen {
            Seen::Changes(known, head) if known.as_str() == run => Some(*head),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &'static str) -> Call {
        Call { tool, arguments: Map::new() }
    }

    fn cursor(page: &str) -> Option<String> {
        Some(page.split_once("`cursor` \"")?.1.split('"').next()?.to_owned())
    }

    #[test]
    fn a_plan_is_seen_after_its_last_page() {
        let (mut session, digest) = (Session::default(), Digest::ZERO);
        let text = "a line\n".repeat(10_000);
        let answer = Answer { said: None, text, seen: Some(Seen::Plan(digest)) };
        let mut page = session.first(call("plan"), answer).unwrap();
        let mut count = 1;
        while let Some(next) = cursor(&page) {
            assert!(!session.has_seen_plan(&digest));
            assert!(session.next(&call("run"), &next).is_err(), "another call has another answer");
            page = session.next(&call("plan"), &next).unwrap();
            count += 1;
        }
        assert!(session.has_seen_plan(&digest) && count == 3, "{count}");
        for cursor in ["1.70000", "1.999999999", "2.0", "x", "1.-1", ""] {
            assert!(session.next(&call("plan"), cursor).is_err() || cursor == "1.70000", "{cursor}");
        }
    }

    #[test]
    fn no_page_can_be_left_out() {
        let mut session = Session::default();
        let answer = Answer { said: None, text: "a".repeat(100_000), seen: Some(Seen::Plan(Digest::ZERO)) };
        session.first(call("plan"), answer).unwrap();
        assert!(session.next(&call("plan"), "1.90000").is_err());
        assert!(!session.has_seen_plan(&Digest::ZERO));
    }
}
