//! Which stages of a plan a machine may make: by what the stages need, and by what the machine is admitted to.
//!
//! A machine says what it has. Only labels of its admission count, and a weaker tier than that of its admission makes nothing.

use crate::statement::{Admission, Role};
use glovebox_journal::event::NodeId;
use glovebox_plan::plan::{Plan, PlannedPlacement, ProgramFolders};
use glovebox_record::Tier;
use glovebox_record::placement::{MachineFacts, ProgramName};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The roles of which a machine needs one to make attempts.
pub(crate) const MAKERS: &[Role] = &[Role::Build, Role::Verify];

/// What the stages of a plan need of their machines.
pub(crate) struct Eligibility {
    placement: PlannedPlacement,
    /// All stages.
    stages: BTreeSet<NodeId>,
    /// The stages that judge the work of others.
    judges: BTreeSet<NodeId>,
    /// Whether the run is encrypted, because it has hold-outs.
    is_encrypted: bool,
}

impl Eligibility {
    pub(crate) fn new(plan: &Plan) -> Self {
        let judges = plan.bindings.iter().filter(|(_, binding)| binding.is_verifier());
        Self {
            placement: plan.placement.clone(),
            stages: plan.bindings.keys().cloned().collect(),
            judges: judges.map(|(stage, _)| stage.clone()).collect(),
            is_encrypted: false,
        }
    }

    /// Says whether the run is encrypted.
    pub(crate) fn encrypted(self, is_encrypted: bool) -> Self {
        Self { is_encrypted, ..self }
    }

    /// Returns what a machine lacks to have the key of an encrypted run. Whoever reads its journal can read what stages with
    /// hold-outs wrote, so all its stages need it.
    fn lacks_for_key(&self, facts: &MachineFacts, admission: &Admission) -> impl Iterator<Item = String> {
        let role = (!admission.has_any(&[Role::Verify])).then(|| format!("an admission to `{}`", Role::Verify));
        let tier = (facts.tier < Some(Tier::Full)).then(|| format!("the tier `{}`", Tier::Full));
        let lacks = role.into_iter().chain(tier).map(|lack| format!("{lack}, because the run has hold-outs"));
        lacks.filter(|_| self.is_encrypted)
    }

    /// Returns the programs that must be looked for on a machine before it may make a stage, and where: those of all stages, so
    /// that it can make them too. `None` if the stage needs no program that was not looked for, or the machine lacks something else.
    pub(crate) fn unknown(
        &self,
        stage: &NodeId,
        facts: &MachineFacts,
        admission: &Admission,
    ) -> Option<(BTreeSet<ProgramName>, ProgramFolders)> {
        let need = self.placement.need(stage).filter(|need| !facts.unknown(need).is_empty())?;
        let mut assumed = facts.clone();
        assumed.programs.extend(facts.unknown(need).into_iter().map(|program| (program, true)));
        if !self.lacking(stage, &assumed, admission).is_empty() {
            return None;
        }
        let programs = self.placement.needs.values().flat_map(|need| facts.unknown(need)).collect();
        Some((programs, self.placement.program_folders.clone()))
    }

    /// Returns the role that a machine needs for a stage.
    pub(crate) fn role(&self, stage: &NodeId) -> Role {
        if self.judges.contains(stage) { Role::Verify } else { Role::Build }
    }

    /// Returns what a machine lacks for a stage. `facts` is what the machine says of itself.
    pub(crate) fn lacking(&self, stage: &NodeId, facts: &MachineFacts, admission: &Admission) -> Vec<String> {
        let labels = facts.labels.intersection(&admission.labels).cloned().collect();
        let facts = MachineFacts { labels, ..facts.clone() };
        let need = self.placement.need(stage);
        let needs = need.into_iter().flat_map(|need| facts.lacking(need)).map(|lack| lack.to_string());
        let role = self.role(stage);
        let role = (!admission.has_any(&[role])).then(|| format!("an admission to `{role}`"));
        let tier = admission.tier.filter(|least| facts.tier < Some(*least));
        let tier = tier.map(|least| format!("the tier `{least}` of its admission"));
        needs.chain(role).chain(tier).chain(self.lacks_for_key(&facts, admission)).collect()
    }

    /// Returns the stages that a machine can make. `None` for all.
    pub(crate) fn can_make(&self, facts: &MachineFacts, admission: &Admission) -> Option<Arc<BTreeSet<NodeId>>> {
        let has_all = |stage: &&NodeId| self.lacking(stage, facts, admission).is_empty();
        let is_admitted_to_all = MAKERS.iter().all(|role| admission.may.contains(role)) && admission.tier.is_none();
        if self.placement.needs.is_empty() && is_admitted_to_all && !self.is_encrypted {
            return None;
        }
        Some(Arc::new(self.stages.iter().filter(has_all).cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::{Need, Tier};

    fn check(need: &str, labels: &[&str], admission: &Admission, expected: &[&str]) {
        let stages: BTreeSet<NodeId> = ["build".into(), "judge".into()].into();
        let needs = stages.iter().map(|stage| (stage.clone(), Need::parse(need).unwrap().into())).collect();
        let placement = PlannedPlacement { needs, ..PlannedPlacement::default() };
        let judges = ["judge".into()].into();
        let eligibility = Eligibility { placement, stages, judges, is_encrypted: false };
        let labels = labels.iter().map(|label| label.parse().unwrap()).collect();
        let facts = MachineFacts { labels, tier: Some(Tier::Bwrap), ..MachineFacts::default() };
        let found: Vec<String> = eligibility
            .can_make(&facts, admission)
            .map_or(vec!["all".to_owned()], |stages| stages.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected, "{need} {labels:?} {admission:?}", labels = facts.labels);
    }

    #[test]
    fn no_machine_that_only_builds_makes_a_stage_of_a_run_with_hold_outs() {
        let plain = Eligibility {
            placement: PlannedPlacement::default(),
            stages: ["build".into(), "judge".into()].into(),
            judges: ["judge".into()].into(),
            is_encrypted: false,
        };
        let encrypted = plain.encrypted(true);
        let lacking = |may: &[Role], tier| {
            let facts = MachineFacts { tier, ..MachineFacts::default() };
            encrypted.lacking(&"build".into(), &facts, &admission(may, &[], None))
        };
        assert_eq!(lacking(&[Role::Build, Role::Verify], Some(Tier::Full)), [""; 0]);
        let verify = "an admission to `verify`, because the run has hold-outs".to_owned();
        let tier = "the tier `full`, because the run has hold-outs".to_owned();
        assert_eq!(lacking(&[Role::Build], Some(Tier::Full)), std::slice::from_ref(&verify));
        assert_eq!(lacking(&[Role::Build, Role::Drive], None), [verify, tier.clone()]);
        assert_eq!(lacking(&[Role::Build, Role::Verify], Some(Tier::Bwrap)), [tier]);
        let facts = MachineFacts { tier: Some(Tier::Bwrap), ..MachineFacts::default() };
        let stages = encrypted.can_make(&facts, &admission(&[Role::Build, Role::Verify], &[], None)).unwrap();
        assert!(stages.is_empty(), "{stages:?}");
    }

    #[test]
    fn programs_are_looked_for_on_a_machine_that_has_everything_else() {
        let needs = [("build", "gpu, program=cargo"), ("judge", "program=go")];
        let needs = needs.map(|(stage, need)| (stage.into(), Need::parse(need).unwrap().into())).into();
        let program_folders = ProgramFolders { path: vec!["/opt/bin".to_owned()], ..ProgramFolders::default() };
        let eligibility = Eligibility {
            placement: PlannedPlacement {
                needs,
                program_folders: program_folders.clone(),
                ..PlannedPlacement::default()
            },
            stages: ["build".into(), "judge".into()].into(),
            judges: BTreeSet::new(),
            is_encrypted: false,
        };
        let admission = admission(&[Role::Build], &["gpu"], None);
        let mut facts = MachineFacts::default();
        let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<BTreeSet<ProgramName>>();
        assert_eq!(eligibility.unknown(&"build".into(), &facts, &admission), None, "the machine has no label");
        let asked = eligibility.unknown(&"judge".into(), &facts, &admission);
        assert_eq!(asked, Some((names(&["cargo", "go"]), program_folders)));
        facts.labels.insert("gpu".parse().unwrap());
        facts.programs = [("cargo".parse().unwrap(), true), ("go".parse().unwrap(), false)].into();
        assert_eq!(eligibility.unknown(&"build".into(), &facts, &admission), None);
        assert_eq!(eligibility.lacking(&"build".into(), &facts, &admission), [""; 0]);
        assert_eq!(eligibility.lacking(&"judge".into(), &facts, &admission), ["program `go`"]);
    }

    fn admission(may: &[Role], labels: &[&str], tier: Option<Tier>) -> Admission {
        Admission {
            name: "a".parse().unwrap(),
            may: may.iter().copied().collect(),
            labels: labels.iter().map(|label| label.parse().unwrap()).collect(),
            tier,
            until: None,
        }
    }

    #[test]
    fn a_machine_makes_what_it_is_admitted_to_and_has() {
        let both = [Role::Build, Role::Verify];
        check("", &[], &admission(&both, &[], None), &["build", "judge"]);
        check("", &[], &admission(&[Role::Build], &[], None), &["build"]);
        check("", &[], &admission(&[Role::Verify, Role::Drive], &[], None), &["judge"]);
        check("", &[], &admission(&[Role::Drive, Role::Submit], &[], None), &[]);
        check("gpu", &["gpu"], &admission(&both, &["gpu"], None), &["build", "judge"]);
        // A label counts only if the machine has it and the operator agreed.
        check("gpu", &["gpu"], &admission(&both, &["ssd"], None), &[]);
        check("gpu", &[], &admission(&both, &["gpu"], None), &[]);
        check("", &[], &admission(&both, &[], Some(Tier::Bwrap)), &["build", "judge"]);
        check("", &[], &admission(&both, &[], Some(Tier::Full)), &[]);
    }
}
