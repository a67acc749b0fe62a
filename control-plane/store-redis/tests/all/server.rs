//! A real Redis: Debian's, on a port and in a folder of the test.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use palisade_store_redis::RedisOptions;
use palisade_tests::redis::copy_files;
use store::{SqliteStore, StoreError};
use tempfile::TempDir;

/// A server that ends with the test.
pub(crate) struct RedisServer {
    process: Option<Child>,
    program: PathBuf,
    arguments: Vec<String>,
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl RedisServer {
    /// One that writes each change to its disk. `None` where the program is not on this machine.
    pub(crate) async fn start() -> Option<RedisServer> {
        RedisServer::start_with(&[]).await
    }

    /// The same with further arguments.
    pub(crate) async fn start_with(arguments: &[&str]) -> Option<RedisServer> {
        let given = std::env::var_os("PALISADE_REDIS").map(PathBuf::from);
        let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.cache/redis");
        let program = given.unwrap_or_else(beside).join("bin/redis-server");
        if !program.exists() {
            println!("LEFT OUT: Redis is not on this machine: run `make redis`");
            eprintln!("LEFT OUT: Redis is not on this machine: run `make redis`");
            return None;
        }
        for _ in 0..10 {
            let port = free_port();
            let mut server = RedisServer {
                process: None,
                program: program.clone(),
                arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
                port,
                folder: tempfile::tempdir().unwrap(),
            };
            // Another process may have taken the port meanwhile.
            if server.begin().await {
                return Some(server);
            }
        }
        panic!("Redis does not start");
    }

    /// The program, without arguments.
    pub(crate) fn command(&self) -> Command {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(&self.program);
        let libraries = self.program.parent().and_then(Path::parent).unwrap().join("lib");
        command.env("LD_LIBRARY_PATH", libraries);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command
    }

    /// Starts it, or starts it again with what it has on its disk; false where it ends at once.
    pub(crate) async fn begin(&mut self) -> bool {
        let mut command = self.command();
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(self.folder.path());
        command.args(&self.arguments);
        self.process = Some(command.spawn().unwrap());
        for _ in 0..1000 {
            if let Ok(Some(_)) = self.process.as_mut().unwrap().try_wait() {
                return false;
            }
            if self.answers() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("Redis does not answer");
    }

    fn answers(&self) -> bool {
        use std::io::{Read as _, Write as _};
        let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let mut answer = [0; 4];
        stream.write_all(b"PING\r\n").is_ok()
            && stream.read_exact(&mut answer).is_ok()
            && [b"+PON", b"-NOA"].contains(&&answer)
    }

    /// Ends it as a loss of its process does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Makes it hang, or go on.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(self.process.as_ref().unwrap());
        rustix::process::kill_process(process, signal).unwrap();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Copies what it has on its disk, while it is not running or has nothing to write.
    pub(crate) fn saved(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_files(&self.disk(), copy.path());
        copy
    }

    /// Ends it, and starts it on what was saved earlier.
    pub(crate) async fn restore(&mut self, saved: &TempDir) {
        self.kill();
        std::fs::remove_dir_all(self.disk()).unwrap();
        copy_files(saved.path(), &self.disk());
        assert!(self.begin().await);
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("appendonlydir")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// One command, as text; the answer as it comes.
    pub(crate) fn ask(&self, command: &str) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A control plane's store, with its replica in the server's folder.
    pub(crate) async fn open(&self) -> SqliteStore {
        // No test of these depends on how fast the machine is.
        self.open_at(&format!("{}?timeout_millis=60000", self.url())).await.unwrap()
    }

    pub(crate) async fn open_at(&self, url: &str) -> Result<SqliteStore, StoreError> {
        palisade_store_redis::open(RedisOptions::parse(url).unwrap(), &self.folder.path().join("replicas"), true).await
    }
}

/// A port that nothing listens on at this moment.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
