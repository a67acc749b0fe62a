//! A real Redis: Debian's, on a free port of this machine.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::parts;
use crate::ports;
use crate::process::{Process, wait_for};

/// How long it may take to start.
const START: Duration = Duration::from_secs(30);

/// The file of a configuration that was given, in its folder.
const CONFIGURATION: &str = "redis.conf";
/// What it writes, in its folder.
const WRITTEN: &str = "appendonlydir";

/// A server that writes each change to its disk. Dropping it stops it.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    address: SocketAddr,
    folder: TempDir,
}

impl Redis {
    /// Starts one without any data.
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    #[must_use]
    pub fn start() -> Self {
        Self::start_by(None)
    }

    /// Starts one with this configuration, except for its address and its folder. The configuration of [`Self::start`] applies to what it
    /// leaves out.
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    #[must_use]
    pub fn start_by(configuration: Option<&str>) -> Self {
        let folder = tempfile::Builder::new().prefix("palisade-redis-").tempdir().expect("a temporary folder");
        if let Some(text) = configuration {
            std::fs::write(folder.path().join(CONFIGURATION), text).expect("the configuration is written");
        }
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let process = Self::begin(&folder, address);
        Self { process, address, folder }
    }

    fn begin(folder: &TempDir, address: SocketAddr) -> Process {
        let mut arguments = program("redis-server");
        let configuration = folder.path().join(CONFIGURATION);
        let given = configuration.exists();
        arguments.extend(given.then(|| configuration.display().to_string()));
        let port = address.port().to_string();
        let data = folder.path().display().to_string();
        arguments.extend(["--port", &port, "--bind", "127.0.0.1", "--dir", &data].map(str::to_owned));
        if !given {
            arguments.extend(["--save", "", "--appendonly", "yes", "--appendfsync", "always"].map(str::to_owned));
        }
        let env = Path::new("/usr/bin/env");
        let mut process = Process::start("redis", env, &arguments, &folder.path().join("redis.log"))
            .unwrap_or_else(|error| panic!("Redis does not start (`make redis`): {error}"));
        let up = wait_for("Redis listens", START, || {
            let ended = process.ended().is_some();
            (ended || TcpStream::connect(address).is_ok()).then_some(ended)
        });
        match up {
            Ok(false) => process,
            _ => panic!("Redis does not start (`make redis`)\n{}", process.log_tail(40)),
        }
    }

    /// Its address as `--store` takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// What `redis-cli` prints with these arguments.
    ///
    /// # Panics
    ///
    /// When it cannot be run.
    #[must_use]
    pub fn cli(&self, arguments: &[&str]) -> String {
        let port = self.address.port().to_string();
        let output =
            Command::new("/usr/bin/env").args(program("redis-cli")).args(["-p", &port]).args(arguments).output();
        let output = output.expect("redis-cli runs (`make redis`)");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Copies what it has written, while it has nothing to write.
    ///
    /// # Panics
    ///
    /// When the files cannot be copied.
    #[must_use]
    pub fn saved(&self) -> TempDir {
        let copy = tempfile::Builder::new().prefix("palisade-redis-saved-").tempdir().expect("a temporary folder");
        copy_files(&self.folder.path().join(WRITTEN), copy.path());
        copy
    }

    /// Kills it, and starts it on what was saved earlier.
    ///
    /// # Panics
    ///
    /// When the files cannot be copied, or it does not come up.
    pub fn restore(&mut self, saved: &TempDir) {
        self.process.kill();
        let written = self.folder.path().join(WRITTEN);
        std::fs::remove_dir_all(&written).expect("its files are removed");
        copy_files(saved.path(), &written);
        self.restart();
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// A section of `INFO`, for example `commandstats`.
    #[must_use]
    pub fn info(&self, section: &str) -> String {
        self.cli(&["info", section])
    }

    /// Kills it (SIGKILL). What it has written stays.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on what it has written, after [`Self::kill`].
    ///
    /// # Panics
    ///
    /// When it does not come up; with its log.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = Self::begin(&self.folder, self.address);
    }
}

/// Copies the files of a folder to another one, which is made where it does not exist.
///
/// # Panics
///
/// When one of them cannot be copied.
pub fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the folder is made");
    for file in std::fs::read_dir(from).expect("the folder is read") {
        let file = file.expect("the folder is read");
        std::fs::copy(file.path(), to.join(file.file_name())).expect("the file is copied");
    }
}

/// A program of Redis, as arguments of `env`.
fn program(name: &str) -> Vec<String> {
    let place = parts::redis();
    vec![format!("LD_LIBRARY_PATH={}", place.join("lib").display()), place.join("bin").join(name).display().to_string()]
}
