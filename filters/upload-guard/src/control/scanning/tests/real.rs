//! Debian's clamd with a database of one signature, and Debian's c-icap with its module for clamd, both in a folder of the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::*;

/// The limit of the real clamd, in bytes.
const STREAM_MAX: usize = 1 << 20;

/// Programs at work.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Where a package was unpacked.
fn package(variable: &str, name: &str) -> PathBuf {
    let given = std::env::var_os(variable).map(PathBuf::from);
    given.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.cache").join(name))
}

fn start(program: &Path, libraries: &[&Path], arguments: &[&str], log: &Path) -> Child {
    let log = std::fs::File::create(log).unwrap();
    let paths = std::env::join_paths(libraries).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", paths);
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn until_it_works(scanner: &Scanner, folder: &Path) {
    for _ in 0..200 {
        if scanner.check().await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let log = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    panic!("{:?}\n{}\n{}", scanner.check().await, log("clamd.log"), log("c-icap.log"));
}

#[tokio::test]
async fn the_real_scanners_are_understood() {
    let clamd = package("PALISADE_CLAMD", "clamd");
    if !clamd.join("bin/clamd").exists() {
        println!("LEFT OUT: clamd is not on this machine: run `make clamd`");
        eprintln!("LEFT OUT: clamd is not on this machine: run `make clamd`");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    std::fs::create_dir(folder.join("database")).unwrap();
    // A hash, a length and a name.
    std::fs::write(folder.join("database/test.hdb"), "44d88612fea8a8f36de82e1278abb02f:68:Eicar-Test-Signature\n")
        .unwrap();
    let (port, socket) = (free_port(), folder.join("clamd.ctl"));
    let config = format!(
        "Foreground yes\nDatabaseDirectory {}\nLocalSocket {}\nTCPSocket {port}\nTCPAddr 127.0.0.1\nStreamMaxLength {STREAM_MAX}\n",
        folder.join("database").display(),
        socket.display(),
    );
    let path = folder.join("clamd.conf");
    std::fs::write(&path, config).unwrap();
    let libraries = clamd.join("lib");
    let arguments = ["-c", path.to_str().unwrap()];
    let mut running =
        Running(vec![start(&clamd.join("bin/clamd"), &[&libraries], &arguments, &folder.join("clamd.log"))]);

    let found = "Eicar-Test-Signature.UNOFFICIAL";
    let by_tcp = scanner("clamd", port, json!({ "timeout_millis": 10_000 }));
    let by_socket = scanner("clamd", 1, json!({ "host": socket.to_str().unwrap(), "timeout_millis": 10_000 }));
    until_it_works(&by_tcp, folder).await;
    for clamd in [&by_tcp, &by_socket] {
        assert_eq!(scan(clamd, &eicar()).await, infected(found));
        assert_eq!(scan(clamd, b"plain").await, Ok(Verdict::Clean));
        assert_eq!(scan(clamd, &vec![b'x'; 900_000]).await, Ok(Verdict::Clean));
        // What is longer is read no further: the connection may be closed before its reply is read.
        assert!(scan(clamd, &vec![b'x'; 2 * STREAM_MAX]).await.is_err());
    }

    let icap = package("PALISADE_C_ICAP", "c-icap");
    if !icap.join("bin/c-icap").exists() {
        println!("LEFT OUT: c-icap is not on this machine: run `make c-icap`");
        eprintln!("LEFT OUT: c-icap is not on this machine: run `make c-icap`");
        return;
    }
    let (port, modules) = (free_port(), icap.join("lib"));
    let config = format!(
        "PidFile {folder}/pid\nCommandsSocket {folder}/commands\nPort 127.0.0.1:{port}\nStartServers 1\nMaxServers 2\nMinSpareThreads 2\n\
         MaxSpareThreads 4\nThreadsPerChild 4\nServerName scanner.test\nTmpDir {folder}\nModulesDir {modules}\nServicesDir {modules}\n\
         ServerLog {folder}/server.log\nService echo srv_echo.so\nService antivirus_module virus_scan.so\n\
         ServiceAlias avscan virus_scan?allow204=on&sizelimit=off&mode=simple\nvirus_scan.ScanFileTypes TEXT DATA EXECUTABLE ARCHIVE\n\
         virus_scan.MaxObjectSize 5M\n\
         virus_scan.DefaultEngine clamd\nModule common clamd_mod.so\nclamd_mod.ClamdSocket {socket}\n",
        folder = folder.display(),
        modules = modules.display(),
        socket = socket.display(),
    );
    let path = folder.join("c-icap.conf");
    std::fs::write(&path, config).unwrap();
    // What it tells types by; none are needed.
    std::fs::write(folder.join("c-icap.magic"), "").unwrap();
    let arguments = ["-N", "-f", path.to_str().unwrap()];
    let log = folder.join("c-icap.log");
    running.0.push(start(&icap.join("bin/c-icap"), &[&modules, &libraries], &arguments, &log));
    for mode in ["respmod", "reqmod"] {
        let icap = scanner("icap", port, json!({ "icap_mode": mode, "timeout_millis": 10_000 }));
        until_it_works(&icap, folder).await;
        let first = scan(&icap, &eicar()).await;
        assert_eq!(first, infected(found), "{mode} {}", std::fs::read_to_string(folder.join("server.log")).unwrap());
        for content in [b"plain".as_slice(), b"", &vec![b'x'; 1024], &vec![b'x'; 1025], &vec![b'x'; 900_000]] {
            assert_eq!(scan(&icap, content).await, Ok(Verdict::Clean), "{mode} {}", content.len());
        }
        let echo = scanner("icap", port, json!({ "icap_mode": mode, "service": "echo", "timeout_millis": 10_000 }));
        assert_eq!(scan(&echo, &vec![b'x'; 100_000]).await, Ok(Verdict::Clean), "{mode}");
        let gone = scanner("icap", port, json!({ "service": "gone" }));
        assert!(scan(&gone, b"x").await.unwrap_err().contains("404"));
    }
}
