//! Ports for processes that cannot choose one themselves.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range that systems give to outgoing connections, so that no client's socket takes a port between its
/// choice and its use.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

static NEXT: AtomicU16 = AtomicU16::new(0);
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A free loopback port that no other test of this machine is given while this process lives.
///
/// # Panics
///
/// When no port of the range is free.
#[must_use]
pub fn free() -> u16 {
    let folder = std::env::temp_dir().join(format!("palisade-test-ports-{}", rustix::process::getuid().as_raw()));
    std::fs::create_dir_all(&folder).expect("the temporary folder takes a folder");
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).expect("below the count");
    for _ in 0..COUNT {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let Ok(file) = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(port.to_string()))
        else {
            continue;
        };
        if file.try_lock().is_err() || TcpListener::bind(("127.0.0.1", port)).is_err() {
            continue;
        }
        HELD.lock().expect("no holder panics").push(file);
        return port;
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let first = free();
        let second = free();
        assert_ne!(first, second);
        TcpListener::bind(("127.0.0.1", first)).expect("it is free");
    }
}
