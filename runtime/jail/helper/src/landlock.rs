//! Landlock rules: which paths a process may read and write, and which processes it may signal.
//!
//! File rights up to truncation (ABI 3) are required: a kernel without them is a failure. Signals and abstract sockets
//! (ABI 6) are required if no namespace hides other processes. Network rights are used only without a network
//! namespace, because inside one they would forbid the loopback that tests need. Creating devices is forbidden
//! everywhere.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use crate::{device, mounts};
use glovebox_jail_helper::policy::{Confinement, Network, Policy};
use glovebox_jail_helper::wire::Failure;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use std::path::Path;

/// The rights that the kernel must support: everything that changes files, including truncation.
const DEMANDED: ABI = ABI::V3;
/// The rights that are used if the kernel supports them.
const TARGET: ABI = ABI::V6;

/// A set of rules that can confine this process repeatedly. Each use adds a layer.
#[derive(Debug)]
pub(crate) struct PathRules(RulesetCreated);

impl PathRules {
    /// Builds the rules of a policy for the files that exist now.
    pub(crate) fn build(policy: &Policy) -> Result<Self, Failure> {
        let scopes = if policy.confinement == Confinement::Landlock {
            CompatLevel::HardRequirement
        } else {
            CompatLevel::BestEffort
        };
        let mut handled = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(DEMANDED))
            .and_then(|set| set.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(TARGET)))
            .and_then(|set| set.set_compatibility(scopes).scope(Scope::from_all(TARGET)))
            .map_err(broken)?;
        if policy.confinement == Confinement::Landlock && policy.network != Network::Full {
            handled = handled
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessNet::from_all(TARGET))
                .map_err(broken)?;
        }
        let created = handled.set_compatibility(CompatLevel::BestEffort).create().map_err(broken)?;
        let mut rules = Self(created);
        if policy.confinement == Confinement::Full {
            rules.allow_own_root(policy)?
        } else {
            rules.allow_by_folder(policy)?
        }
        rules.allow_devices()?;
        Ok(rules)
    }

    /// Confines this process irrevocably. Returns the ABI in force: that of the kernel, but at most [`TARGET`].
    pub(crate) fn enforce(&self) -> Result<u32, Failure> {
        let status = self.0.try_clone().at("apply Landlock")?.restrict_self().map_err(broken)?;
        match (status.ruleset, status.landlock) {
            // If a ruleset is enforced partially, only best-effort rights are missing.
            (
                RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
                LandlockStatus::Available { effective_abi, .. },
            ) => Ok((effective_abi as u32).min(TARGET as u32)),
            _ => Err(refused("apply Landlock", "the kernel does not enforce the ruleset")),
        }
    }

    /// Allows reading everything in the jail's own root, because hidden files do not exist there.
    fn allow_own_root(&mut self, policy: &Policy) -> Result<(), Failure> {
        self.allow(Path::new("/"), read())?;
        for path in [policy.workspace.at.as_path(), &policy.tmp, Path::new("/dev/shm"), &policy.home] {
            self.allow(path, write())?;
        }
        let queue = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile;
        self.allow(Path::new(device::QUEUES), queue)?;
        self.allow_binds(policy, |bind| bind.writable)
    }

    /// Allows reading only listed folders, because the host's other files are visible too.
    fn allow_by_folder(&mut self, policy: &Policy) -> Result<(), Failure> {
        for folder in mounts::SYSTEM.iter().chain(&["/proc"]) {
            self.allow(Path::new(folder), read())?;
        }
        for name in mounts::ETC.iter().chain(mounts::ETC_OWN) {
            self.allow(&Path::new("/etc").join(name), read() & !BitFlags::from(AccessFs::Execute))?;
        }
        if policy.network == Network::Full {
            self.allow(Path::new("/etc/resolv.conf"), AccessFs::ReadFile.into())?;
        }
        for path in [&policy.workspace.at, &policy.tmp, &policy.home] {
            self.demand(path, read() | write())?;
        }
        if policy.confinement == Confinement::Bwrap {
            // In this tier, `/dev/shm` is private to the jail.
            self.allow(Path::new("/dev/shm"), read() | write())?;
        }
        self.allow_binds(policy, |_| true)
    }

    fn allow_binds(
        &mut self,
        policy: &Policy,
        wanted: impl Fn(&glovebox_jail_helper::policy::Bind) -> bool,
    ) -> Result<(), Failure> {
        for bind in policy.binds.iter().filter(|bind| wanted(bind)) {
            self.allow(&bind.at, if bind.writable { read() | write() } else { read() })?;
        }
        Ok(())
    }

    fn allow_devices(&mut self) -> Result<(), Failure> {
        let file = AccessFs::ReadFile | AccessFs::WriteFile;
        for name in device::NODES {
            self.allow(&Path::new("/dev").join(name), file)?;
        }
        for path in ["/dev/pts", "/dev/ptmx"] {
            self.allow(Path::new(path), file | AccessFs::ReadDir | AccessFs::IoctlDev)?;
        }
        Ok(())
    }

    /// Allows access to a path. A path that does not exist needs no rule.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), Failure> {
        match self.demand(path, access) {
            Err(failure) if failure.errno == Errno::NOENT.raw_os_error() => Ok(()),
            other => other,
        }
    }

    fn demand(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), Failure> {
        let step = || format!("add a Landlock rule for {}", path.display());
        let opened = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(step())?;
        let is_folder = FileType::from_raw_mode(fstat(&opened).at(step())?.st_mode) == FileType::Directory;
        let access = if is_folder { access } else { access & AccessFs::from_file(TARGET) };
        (&mut self.0)
            .add_rule(PathBeneath::new(opened.as_fd(), access))
            .map(drop)
            .map_err(|error| refused(step(), error.to_string()))
    }
}

fn read() -> BitFlags<AccessFs> {
    AccessFs::from_read(TARGET)
}

/// Returns all rights that change files, except creating devices and device ioctls.
fn write() -> BitFlags<AccessFs> {
    AccessFs::from_write(TARGET) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn broken(error: landlock::RulesetError) -> Failure {
    refused("apply Landlock", error.to_string())
}
