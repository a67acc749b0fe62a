//! A real Redis: Debian's, on a free port of this machine.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tempfile::TempDir;

use crate::parts;
use crate::ports;
use crate::process::{Process, wait_for};

/// How long it may take to start.
const START: Duration = Duration::from_secs(30);

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
        let folder = tempfile::Builder::new().prefix("palisade-redis-").tempdir().expect("a temporary folder");
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let process = Self::begin(&folder, address);
        Self { process, address, folder }
    }

    fn begin(folder: &TempDir, address: SocketAddr) -> Process {
        let place = parts::redis();
        let mut arguments = vec![format!("LD_LIBRARY_PATH={}", place.join("lib").display())];
        arguments.push(place.join("bin/redis-server").display().to_string());
        let port = address.port().to_string();
        let data = folder.path().display().to_string();
        for argument in ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir", &data] {
            arguments.push(argument.to_owned());
        }
        arguments.extend(["--appendonly", "yes", "--appendfsync", "always"].map(str::to_owned));
        let env = std::path::Path::new("/usr/bin/env");
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
