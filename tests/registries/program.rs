//! The program `docker-registry` of Debian, which `cargo xtask registry` fetches. Suites of other crates include only this file.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// `ada` with the password `s3cret-of-ada`, as bcrypt.
const HTPASSWD: &str = "ada:$2b$05$abcdefghijklmnopqrstuuitFbFC.tJuUuBIoKqGq8ZH9Y5KVtvNK\n";

/// A running registry, which ends when this is dropped.
pub(crate) struct DebianRegistry {
    child: Child,
    pub(crate) address: String,
    _folder: tempfile::TempDir,
}

impl DebianRegistry {
    /// Starts the program. `None` if it is not on this machine.
    pub(crate) fn start(auth: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let candidates = [root.join("target/registry/usr/bin/docker-registry"), "/usr/bin/docker-registry".into()];
        let program = candidates.into_iter().find(|file| file.is_file())?;
        let folder = tempfile::tempdir().unwrap();
        // Another test can take the port between the two calls, so a few are tried.
        (0..5).find_map(|_| Self::start_once(&program, &folder, auth)).map(|(child, address)| Self {
            child,
            address,
            _folder: folder,
        })
    }

    fn start_once(program: &Path, folder: &tempfile::TempDir, auth: &str) -> Option<(Child, String)> {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::fs::write(folder.path().join("htpasswd"), HTPASSWD).unwrap();
        let root = folder.path().display();
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {root}/data\nhttp:\n  addr: {address}\n{}",
            auth.replace("FOLDER", &root.to_string())
        );
        let file = folder.path().join("config.yml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(file).env_clear().stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        for _ in 0..500 {
            if TcpStream::connect(address).is_ok() && child.try_wait().unwrap().is_none() {
                return Some((child, address.to_string()));
            }
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        drop((child.kill(), child.wait()));
        None
    }
}

impl Drop for DebianRegistry {
    fn drop(&mut self) {
        drop((self.child.kill(), self.child.wait()));
    }
}
