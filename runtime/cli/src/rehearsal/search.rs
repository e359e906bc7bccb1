//! The search for the smallest set of grants with which a plugin does the same work.
//!
//! A group of grants is left out together. If the plugin then does other work, the two halves of the group are left out in turn. A
//! single grant that is needed is replaced by narrower ones, if there are any. So a wide grant of which little is needed takes few
//! runs. The result is minimal in this sense: each grant of it was left out in some run, and the work was not the same.

use glovebox_plan::lock::line::Line;

/// Maximum number of times that a grant is replaced by narrower ones.
const NARROWER_MAX: usize = 4;
/// Maximum number of narrower grants that replace one. More of them would be a list of all files, which is wrong as soon as the
/// project grows.
const PARTS_MAX: usize = 8;

/// What the search needs of a plugin.
pub trait Trial {
    /// Why a search ends early.
    type Error;

    /// Runs the plugin with these grants. Returns what differs, or `None` if it does the same work.
    fn difference(&mut self, grants: &[Line]) -> Result<Option<String>, Self::Error>;

    /// Returns narrower grants that together allow what the plugin used of this one. Empty if there are none.
    fn parts(&self, grant: &Line) -> Vec<Line>;
}

/// A grant that was left out, and what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The grant.
    pub grant: Line,
    /// What differs without it. `None` if it is not needed.
    pub difference: Option<String>,
}

/// The grants that are left, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The smallest grants with which the plugin did the same work.
    pub kept: Vec<Line>,
    /// The grants that were left out alone, in this order.
    pub verdicts: Vec<Verdict>,
}

/// Searches from all grants that a plugin wants.
pub fn smallest<T: Trial>(trial: &mut T, wants: Vec<Line>) -> Result<Found, T::Error> {
    let mut found = Found { kept: wants.clone(), verdicts: Vec::new() };
    found.leave_out(trial, &wants, 0)?;
    found.kept.sort_by_key(ToString::to_string);
    Ok(found)
}

impl Found {
    fn leave_out<T: Trial>(&mut self, trial: &mut T, group: &[Line], depth: usize) -> Result<(), T::Error> {
        if group.is_empty() {
            return Ok(());
        }
        let rest: Vec<Line> = self.kept.iter().filter(|line| !group.contains(line)).cloned().collect();
        let Some(difference) = trial.difference(&rest)? else {
            self.kept = rest;
            let unused = group.iter().map(|grant| Verdict { grant: grant.clone(), difference: None });
            self.verdicts.extend(unused.filter(|_| depth == 0));
            return Ok(());
        };
        if let [grant] = group {
            if depth == 0 {
                self.verdicts.push(Verdict { grant: grant.clone(), difference: Some(difference) });
            }
            return self.narrow(trial, grant, depth);
        }
        let (first, second) = group.split_at(group.len() / 2);
        self.leave_out(trial, first, depth)?;
        self.leave_out(trial, second, depth)
    }

    /// Replaces a grant that is needed by the narrower ones that are needed.
    fn narrow<T: Trial>(&mut self, trial: &mut T, grant: &Line, depth: usize) -> Result<(), T::Error> {
        let parts = trial.parts(grant);
        if depth == NARROWER_MAX || parts.is_empty() || parts.contains(grant) {
            return Ok(());
        }
        let before = self.kept.clone();
        self.kept = before.iter().filter(|line| *line != grant).chain(&parts).cloned().collect();
        if trial.difference(&self.kept)?.is_some() {
            self.kept = before;
            return Ok(());
        }
        self.leave_out(trial, &parts, depth + 1)?;
        let left = self.kept.iter().filter(|line| !before.contains(line)).count();
        if left > PARTS_MAX {
            self.kept = before;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A plugin that needs exactly these paths.
    struct Needs {
        paths: &'static [&'static str],
        runs: usize,
    }

    impl Trial for Needs {
        type Error = Infallible;

        fn difference(&mut self, grants: &[Line]) -> Result<Option<String>, Infallible> {
            self.runs += 1;
            let is_granted = |path: &&&str| grants.iter().any(|line| line.covers(&line_of(path)));
            Ok(self.paths.iter().find(|path| !is_granted(path)).map(|path| format!("reads {path}")))
        }

        fn parts(&self, grant: &Line) -> Vec<Line> {
            match grant.to_string().as_str() {
                "read ./" => (0..40).map(|n| line_of(&format!("d{n}/"))).chain([line_of("a.md")]).collect(),
                "read d3/" => vec![line_of("d3/x"), line_of("d3/y")],
                "read d4/" => (0..20).map(|n| line_of(&format!("d4/{n}"))).collect(),
                _ => Vec::new(),
            }
        }
    }

    fn line_of(path: &str) -> Line {
        Line::parse(&format!("read {path}"))
    }

    fn kept(needs: &'static [&'static str], wants: &[&str]) -> (Vec<String>, usize, Vec<Verdict>) {
        let mut trial = Needs { paths: needs, runs: 0 };
        let Ok(found) = smallest(&mut trial, wants.iter().map(|line| Line::parse(line)).collect());
        (found.kept.iter().map(ToString::to_string).collect(), trial.runs, found.verdicts)
    }

    #[test]
    fn what_is_not_needed_is_left_out_and_what_is_needed_is_narrowed() {
        assert_eq!(kept(&[], &["read ./", "model"]).0, [""; 0]);
        let (left, runs, verdicts) = kept(&["d3/x", "a.md"], &["model", "read ./", "write out/"]);
        assert_eq!(left, ["read a.md", "read d3/x"]);
        assert!(runs < 44, "{runs} runs for 44 grants");
        let needed: Vec<bool> = verdicts.iter().map(|verdict| verdict.difference.is_some()).collect();
        assert_eq!(needed, [false, true, false], "{verdicts:?}");
    }

    #[test]
    fn a_folder_of_which_most_files_are_needed_stays_a_folder() {
        const ALL: &[&str] = &["d4/0", "d4/1", "d4/2", "d4/3", "d4/4", "d4/5", "d4/6", "d4/7", "d4/8", "d4/9", "d4/10"];
        assert_eq!(kept(ALL, &["read ./"]).0, ["read d4/"]);
        assert_eq!(kept(&["d4/0", "d4/1"], &["read d4/"]).0, ["read d4/0", "read d4/1"]);
    }
}
