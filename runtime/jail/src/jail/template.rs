//! The templates of Glovebox: helpers from which the first processes of jails are forked.
//!
//! Jails with the same [`Preparation`] share a template. A template shows the host's programs and configuration as they
//! were when it was started, so it is replaced after [`AGE_MAX`]. A template that does not answer is replaced too, and
//! its jail is built by a separate helper. The host never waits for a template: a failure appears on the socket of the
//! jail.

use super::control::Control;
use super::spawner::{self, PendingStart};
use glovebox_jail_helper::policy::Preparation;
use glovebox_jail_helper::wire::{Reply, Request};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum age of a template that is used for new jails.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of templates at the same time.
const TEMPLATES_MAX: usize = 4;
/// Number of consecutive failures after which Glovebox starts no more templates.
const FAILURES_MAX: u32 = 3;

static TEMPLATES: Mutex<Templates> =
    Mutex::new(Templates { spare: None, live: Vec::new(), retired: Vec::new(), failures: 0 });

struct Templates {
    /// A helper that starts before it is known what it must prepare.
    spare: Option<Spare>,
    live: Vec<Template>,
    /// Templates that accept no more requests. Each ends after its last jail has ended.
    retired: Vec<Child>,
    failures: u32,
}

/// A helper that waits for its first request.
struct Spare {
    control: Control,
    starting: PendingStart,
}

struct Template {
    preparation: Preparation,
    control: Control,
    child: Child,
    started: Instant,
}

/// Returns false if templates do not work on this machine.
pub(super) fn is_usable() -> bool {
    lock().failures < FAILURES_MAX
}

/// Makes a template fork the first process of a jail, whose control socket is `jail`.
pub(super) fn fork(preparation: &Preparation, jail: OwnedFd) -> io::Result<()> {
    let mut templates = lock();
    let request = |template: &Template| template.control.send(&Request::Fork, &[jail.as_fd()]);
    if let Some(known) = templates.usable(preparation) {
        if request(known).is_ok() {
            return Ok(());
        }
        templates.fail(preparation, &"it has ended");
    }
    let template = templates.start(preparation)?;
    request(&template)?;
    templates.live.push(template);
    Ok(())
}

/// Begins to start the helper of the first template, before it is known what it must prepare. Returns at once.
pub(super) fn start_spare() -> io::Result<()> {
    let mut templates = lock();
    if templates.spare.is_none() && templates.live.is_empty() {
        templates.spare = Some(Spare::start()?);
    }
    Ok(())
}

/// Starts a template if there is none for these jails. Blocks for milliseconds.
pub(super) fn start(preparation: &Preparation) -> io::Result<()> {
    let mut templates = lock();
    if templates.usable(preparation).is_none() {
        let template = templates.start(preparation)?;
        templates.live.push(template);
    }
    Ok(())
}

/// Notes that a jail was built.
pub(super) fn succeeded() {
    lock().failures = 0;
}

/// Retires the template of these jails, because one of them was not built.
pub(super) fn failed(preparation: &Preparation, why: &dyn std::fmt::Display) {
    lock().fail(preparation, why);
}

/// Lets all templates end after their last jail, and does not wait for that. A later jail starts a new template. A spare helper that
/// is not used is killed.
pub fn retire_templates() {
    let mut templates = lock();
    templates.spare = None;
    templates.retire(|_| true);
}

/// Ends all templates and waits for them. Their jails must have ended.
pub(super) fn end_all() {
    let mut templates = lock();
    templates.spare = None;
    templates.retire(|_| true);
    for mut child in std::mem::take(&mut templates.retired) {
        if let Err(error) = child.wait() {
            tracing::error!(%error, "a template of jails did not end");
        }
    }
}

fn lock() -> MutexGuard<'static, Templates> {
    TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Templates {
    /// Returns the template of these jails, if it is not too old.
    fn usable(&mut self, preparation: &Preparation) -> Option<&Template> {
        self.reap();
        self.retire(|template| template.started.elapsed() >= AGE_MAX);
        self.live.iter().find(|known| known.preparation == *preparation)
    }

    /// Starts a template. If there are too many, retires the oldest.
    fn start(&mut self, preparation: &Preparation) -> io::Result<Template> {
        if self.live.len() >= TEMPLATES_MAX {
            let oldest = self.live.iter().map(|template| template.started).min();
            self.retire(|template| Some(template.started) == oldest);
        }
        let spare = self.spare.take().map_or_else(Spare::start, Ok)?;
        Template::start(preparation, spare)
    }

    /// Closes the sockets of templates. They accept no more requests and end after their last jail.
    fn retire(&mut self, is_over: impl Fn(&Template) -> bool) {
        self.retired.extend(self.live.extract_if(.., |template| is_over(template)).map(|template| template.child));
    }

    /// Reaps the templates that have ended.
    fn reap(&mut self) {
        self.retired.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
    }

    fn fail(&mut self, preparation: &Preparation, why: &dyn std::fmt::Display) {
        self.failures += 1;
        for template in self.live.iter().filter(|template| template.preparation == *preparation) {
            let own = template.reason();
            let own = own.as_ref().map_or("", String::as_str);
            tracing::warn!(%why, own, "the template of a jail failed; a new helper builds the jail instead");
        }
        self.retire(|template| template.preparation == *preparation);
        if self.failures == FAILURES_MAX {
            tracing::warn!("templates failed {FAILURES_MAX} times; from now on, a new helper builds each jail");
        }
    }
}

impl Spare {
    fn start() -> io::Result<Self> {
        let (control, theirs) = Control::pair()?;
        let starting = spawner::spawn(theirs)?;
        Ok(Self { control, starting })
    }
}

impl Template {
    fn start(preparation: &Preparation, Spare { control, starting }: Spare) -> io::Result<Self> {
        control.send(&Request::Prepare(preparation.clone()), &[])?;
        let child = starting.wait()?;
        Ok(Self { preparation: preparation.clone(), control, child, started: Instant::now() })
    }

    /// Returns the reason for a failed preparation, if the template reported one.
    fn reason(&self) -> Option<String> {
        match self.control.receive_until(Instant::now()) {
            Ok(Some((Reply::Failed(failure), _))) => Some(format!("{}: {}", failure.step, failure.text)),
            _ => None,
        }
    }
}
