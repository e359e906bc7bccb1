//! A program on a pseudo terminal, and a person who reads the screen and types.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A program on a pseudo terminal.
pub(crate) struct Session {
    keyboard: File,
    child: Child,
    shown: Arc<Mutex<String>>,
}

impl Session {
    pub(crate) fn start(mut command: Command) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&main, size).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let end = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let ends = [end.try_clone().unwrap(), end.try_clone().unwrap(), end].map(Stdio::from);
        let [stdin, stdout, stderr] = ends;
        let child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
        drop(command);
        let keyboard = File::from(main);
        let (mut screen, shown) = (keyboard.try_clone().unwrap(), Arc::new(Mutex::new(String::new())));
        let text = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            // At the end of the output, reading from the terminal fails.
            while let Ok(count @ 1..) = screen.read(&mut part) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&part[..count]).replace('\r', ""));
            }
        });
        Self { keyboard, child, shown }
    }

    pub(crate) fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until the output contains `words` at least `times` times.
    pub(crate) fn waits_for(&self, words: &str, times: usize) -> &Self {
        let began = Instant::now();
        while self.shown().matches(words).count() < times {
            assert!(began.elapsed() < Duration::from_secs(60), "no {words:?} in {}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    pub(crate) fn types(&self, keys: &str) -> &Self {
        (&self.keyboard).write_all(keys.as_bytes()).unwrap();
        self
    }

    pub(crate) fn interrupts(&self) -> &Self {
        let child = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(child, rustix::process::Signal::INT).unwrap();
        self
    }

    pub(crate) fn ends(mut self, code: i32) -> String {
        let began = Instant::now();
        let ended = loop {
            match self.child.try_wait().unwrap() {
                Some(ended) => break ended,
                None if began.elapsed() > Duration::from_secs(60) => panic!("it does not end: {}", self.shown()),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(ended.code(), Some(code), "{}", self.shown());
        self.shown()
    }
}
