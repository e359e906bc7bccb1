//! The key `t` of the live view.
//!
//! While a view is drawn, the terminal passes on each key without Enter and does not show it. While a question is on the
//! screen, and after the view, it works as before. Nothing is changed or read while another process group is in front of
//! the terminal, because the kernel would stop this process.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the keyboard is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Prints what runs now.
const KEY: u8 = b't';

/// The keyboard of this process while a view uses it.
static KEYBOARD: Mutex<Option<Keyboard>> = Mutex::new(None);

struct Keyboard {
    /// How the terminal worked before.
    before: Termios,
    is_held: bool,
}

/// Calls a function for each press of the key, until [`end`]. Does nothing if the input is not a terminal, or is read by
/// another view.
pub fn begin(pressed: impl Fn() + Send + 'static) {
    let mut keyboard = lock();
    if keyboard.is_some() || !isatty(std::io::stdin()) || !is_in_front() {
        return;
    }
    let Ok(before) = tcgetattr(std::io::stdin()) else { return };
    *keyboard = Some(Keyboard { before, is_held: true });
    drop(keyboard);
    release();
    std::thread::spawn(move || {
        while let Some(keys) = read() {
            (0..keys).for_each(|_| pressed());
            std::thread::sleep(LOOK_EVERY);
        }
    });
}

/// Lets the terminal work as before, until [`release`].
pub fn hold() {
    if let Some(keyboard) = lock().as_mut() {
        keyboard.is_held = true;
        restore(keyboard);
    }
}

/// Passes on keys again after [`hold`].
pub fn release() {
    if let Some(keyboard) = lock().as_mut() {
        let mut modes = keyboard.before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        keyboard.is_held = !is_in_front() || tcsetattr(std::io::stdin(), OptionalActions::Now, &modes).is_err();
    }
}

/// Lets the terminal work as before, for good.
pub fn end() {
    if let Some(keyboard) = lock().take() {
        restore(&keyboard);
    }
}

fn restore(keyboard: &Keyboard) {
    if is_in_front() {
        let _closed = tcsetattr(std::io::stdin(), OptionalActions::Now, &keyboard.before);
    }
}

/// Returns how often the key was pressed since the last call; `None` after the end. The lock is kept while the keyboard is
/// read, so that no answer to a question is taken.
fn read() -> Option<usize> {
    let mut keyboard = lock();
    let keyboard = keyboard.as_mut()?;
    let stdin = std::io::stdin();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if keyboard.is_held
        || !is_in_front()
        || !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&now)), Ok(1..))
    {
        return Some(0);
    }
    let mut keys = [0; 64];
    match rustix::io::read(&stdin, &mut keys) {
        Ok(count @ 1..) => Some(keys[..count].iter().filter(|key| **key == KEY).count().min(1)),
        // The terminal is gone.
        Ok(0) => {
            keyboard.is_held = true;
            Some(0)
        }
        Err(_) => Some(0),
    }
}

/// Returns false if the kernel would stop this process. A terminal without job control stops nobody.
fn is_in_front() -> bool {
    tcgetpgrp(std::io::stdin()).map_or(true, |group| group == rustix::process::getpgrp())
}

fn lock() -> MutexGuard<'static, Option<Keyboard>> {
    KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner)
}
