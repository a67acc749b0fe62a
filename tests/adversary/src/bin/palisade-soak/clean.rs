//! Clean clients that ask at a fixed rate, whether or not the answers keep up.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::http::{Connection, Request};

/// Connections. Each asks in turn, so that one slow answer holds up only the next request of its own.
const CLIENTS: u32 = 25;
/// A clean request without an answer after this is lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Clean clients under way.
#[derive(Debug)]
pub(crate) struct Clients {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<Seen>>,
}

/// What they saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Answers by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Requests without an answer, and why the first of them had none.
    pub(crate) lost: u64,
    pub(crate) reasons: Vec<String>,
    /// Milliseconds from the time at which a request was due to its answer.
    pub(crate) millis: Vec<f64>,
}

// === impl Clients ===

impl Clients {
    /// Starts clients that ask so many times a second together.
    pub(crate) fn start(to: SocketAddr, per_second: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let period = Duration::from_secs(1) * CLIENTS / per_second.max(1);
        let start = Instant::now() + Duration::from_millis(50);
        let threads = (0..CLIENTS)
            .map(|number| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || client(to, start + period * number / CLIENTS, period, &stop))
            })
            .collect();
        Self { stop, threads }
    }

    /// Lets the requests under way end.
    pub(crate) fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for thread in self.threads {
            let one = thread.join().expect("a client does not panic");
            for (status, count) in one.statuses {
                *all.statuses.entry(status).or_default() += count;
            }
            all.lost += one.lost;
            all.reasons.extend(one.reasons);
            all.millis.extend(one.millis);
        }
        all
    }
}

// === impl Seen ===

impl Seen {
    /// How many requests were not answered with 200.
    pub(crate) fn failed(&self) -> u64 {
        self.lost + self.statuses.iter().filter(|(status, _)| **status != 200).map(|(_, count)| count).sum::<u64>()
    }

    /// The statuses as text.
    pub(crate) fn text(&self) -> String {
        let statuses: Vec<String> = self.statuses.iter().map(|(status, count)| format!("{count} x {status}")).collect();
        let reasons: Vec<&str> = self.reasons.iter().take(3).map(String::as_str).collect();
        format!("{}, {} lost {}", statuses.join(", "), self.lost, reasons.join("; "))
    }
}

fn client(to: SocketAddr, first: Instant, period: Duration, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let pages = ["/", "/search?q=garden+chairs", "/shop", "/search?q=rock+%27n%27+roll"];
    let mut connection: Option<Connection> = None;
    let mut due = first;
    for page in pages.iter().cycle() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let request = Request::get(page).header("host", "demo.test");
        let answer = (|| {
            if connection.is_none() {
                let mut fresh = Connection::open(to)?;
                fresh.set_patience(PATIENCE)?;
                connection = Some(fresh);
            }
            connection.as_mut().map_or(Err(std::io::ErrorKind::NotConnected.into()), |open| open.exchange(&request))
        })();
        match answer {
            Ok(answer) => {
                *seen.statuses.entry(answer.status).or_default() += 1;
                seen.millis.push(due.elapsed().as_secs_f64() * 1000.0);
                if answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
                    connection = None;
                }
            }
            Err(error) => {
                seen.lost += 1;
                if seen.reasons.len() < 3 {
                    seen.reasons.push(error.to_string());
                }
                connection = None;
            }
        }
        // What was due while an answer took long is asked at once: a client does not wait for others.
        due += period;
    }
    seen
}
