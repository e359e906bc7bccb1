//! Shows the compilation of a component: one line that counts seconds on a terminal, one plain line elsewhere.
//!
//! A short compilation is not shown. The line on a terminal is removed before anything else is printed.

use super::{is_live, say, visible};
use glovebox_host::host::Compilation;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Delay before a compilation is shown on a terminal.
const LIVE_AFTER: Duration = Duration::from_millis(400);
/// Delay before a compilation is reported when stderr is not a terminal.
const TOLD_AFTER: Duration = Duration::from_secs(2);
/// Time between two updates of the line.
const TICK: Duration = Duration::from_secs(1);

/// Runs `work`, and shows the component and the elapsed time until it ends.
pub fn show(component: &Compilation<'_>, work: &mut dyn FnMut()) {
    let (done, is_done) = channel();
    thread::scope(|scope| {
        let showing = move || if is_live() { count(component, &is_done) } else { tell(component, &is_done) };
        let watching = thread::Builder::new().name("glovebox-compiling".to_owned()).spawn_scoped(scope, showing);
        work();
        drop(done);
        // If the thread could not be started, nothing is shown, but the work is done.
        drop(watching.map(thread::ScopedJoinHandle::join));
    });
}

fn count(component: &Compilation<'_>, is_done: &Receiver<()>) {
    let start = Instant::now();
    let mut wait = LIVE_AFTER;
    let mut is_shown = false;
    while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        say(format_args!("\r\x1b[K{} … {} s", title(component), start.elapsed().as_secs()));
        (wait, is_shown) = (TICK, true);
    }
    if is_shown {
        say("\r\x1b[K");
    }
}

fn tell(component: &Compilation<'_>, is_done: &Receiver<()>) {
    if is_done.recv_timeout(TOLD_AFTER) == Err(RecvTimeoutError::Timeout) {
        say(format_args!("{}: this happens once for this component and may take a while\n", title(component)));
    }
}

/// Returns a title such as `compiling acme.review (18 MB)`.
fn title(component: &Compilation<'_>) -> String {
    let name = component.name.unwrap_or("a component without a manifest");
    let size = match component.bytes {
        bytes @ 1_000_000.. => format!("{} MB", bytes / 1_000_000),
        bytes => format!("{} kB", bytes.div_ceil(1000)),
    };
    format!("compiling {} ({size})", visible::line(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done_and_named() {
        let (mut done, component) = (false, Compilation { name: Some("acme.review"), bytes: 18_374_447 });
        show(&component, &mut || done = true);
        assert!(done);
        assert_eq!(title(&component), "compiling acme.review (18 MB)");
        assert_eq!(title(&Compilation { name: None, bytes: 90 }), "compiling a component without a manifest (1 kB)");
    }
}
