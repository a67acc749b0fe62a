//! A load: keep-alive connections that ask as fast as they are answered, and what came of it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What to send.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to.
    pub to: SocketAddr,
    /// Connections at a time; each has one request under way.
    pub connections: usize,
    /// The requests on the wire. All connections together send them in turn, so that none comes again before all others
    /// were sent. Each must be one that has an answer with a length.
    pub requests: Vec<Vec<u8>>,
    /// A pause of each connection after each answer.
    pub pause: Duration,
    /// The processor that the load is bound to.
    pub cpu: Option<usize>,
}

/// A load under way.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Report>,
}

/// What came of a load.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that got no whole answer.
    pub dropped: u64,
    /// What happened to the first of them.
    pub reasons: Vec<String>,
    /// Every answer's time in microseconds, ascending.
    pub micros: Vec<u32>,
    /// How long it ran.
    pub elapsed: Duration,
}

impl Load {
    /// Starts one on a thread of its own.
    ///
    /// # Panics
    ///
    /// When the system has no thread left.
    #[must_use]
    pub fn start(plan: Plan) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread =
            thread::Builder::new().name("load".into()).spawn(move || run(plan, &stopped)).expect("a thread starts");
        Self { stop, thread }
    }

    /// Lets the requests under way finish and tells what came of them all.
    ///
    /// # Panics
    ///
    /// When the load itself panicked.
    #[must_use]
    pub fn stop(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the load runs to its end")
    }

    /// Runs one for a time.
    #[must_use]
    pub fn during(plan: Plan, time: Duration) -> Report {
        let load = Self::start(plan);
        thread::sleep(time);
        load.stop()
    }
}

impl Report {
    /// Answers.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Answers per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "counts of one run are small")]
        let answers = self.answers() as f64;
        answers / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The time in microseconds that a share of the answers did not exceed (0.5 is the median).
    #[must_use]
    pub fn quantile(&self, share: f64) -> u32 {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index below the length"
        )]
        let rank = (share.clamp(0.0, 1.0) * self.micros.len() as f64).ceil() as usize;
        self.micros.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

fn run(plan: Plan, stop: &Arc<AtomicBool>) -> Report {
    if let Some(cpu) = plan.cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        // Not every system lets a process choose; then the scheduler does.
        let _ = sched_setaffinity(None, &set);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let start = Instant::now();
    let mut whole = Report::default();
    runtime.block_on(async {
        let (plan, next) = (Arc::new(plan), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..plan.connections)
            .map(|_| tokio::spawn(client(Arc::clone(&plan), Arc::clone(stop), Arc::clone(&next))))
            .collect();
        for task in tasks {
            let part = task.await.expect("a client does not panic");
            for (status, count) in part.statuses {
                *whole.statuses.entry(status).or_default() += count;
            }
            whole.dropped += part.dropped;
            whole.reasons.extend(part.reasons);
            whole.micros.extend(part.micros);
        }
    });
    whole.elapsed = start.elapsed();
    whole.micros.sort_unstable();
    whole
}

async fn client(plan: Arc<Plan>, stop: Arc<AtomicBool>, next: Arc<AtomicUsize>) -> Report {
    let mut report = Report::default();
    let mut stream: Option<TcpStream> = None;
    let mut buffer = Vec::with_capacity(16 << 10);
    while !stop.load(Ordering::Relaxed) {
        let request = &plan.requests[next.fetch_add(1, Ordering::Relaxed) % plan.requests.len()];
        let start = Instant::now();
        let outcome = exchange(&mut stream, plan.to, request, &mut buffer);
        match tokio::time::timeout(crate::http::PATIENCE, outcome).await {
            Ok(Ok((status, keep))) => {
                *report.statuses.entry(status).or_default() += 1;
                let micros = start.elapsed().as_micros();
                report.micros.push(u32::try_from(micros).unwrap_or(u32::MAX));
                if !keep {
                    stream = None;
                }
            }
            failed => {
                stream = None;
                report.dropped += 1;
                if report.reasons.len() < 5 {
                    report.reasons.push(match failed {
                        Ok(Err(error)) => error.to_string(),
                        _ => "no answer in time".to_owned(),
                    });
                }
                // Nobody listens: asking again at once would only spin.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        if !plan.pause.is_zero() {
            tokio::time::sleep(plan.pause).await;
        }
    }
    report
}

/// The status, and whether the connection goes on.
async fn exchange(
    slot: &mut Option<TcpStream>,
    to: SocketAddr,
    request: &[u8],
    buffer: &mut Vec<u8>,
) -> io::Result<(u16, bool)> {
    if slot.is_none() {
        let fresh = TcpStream::connect(to).await?;
        fresh.set_nodelay(true)?;
        *slot = Some(fresh);
    }
    let stream = slot.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    stream.write_all(request).await?;
    buffer.clear();
    loop {
        if let Some(answer) = whole_answer(buffer)? {
            return Ok(answer);
        }
        if stream.read_buf(buffer).await? == 0 {
            let what = format!("the connection ended after {} bytes of an answer", buffer.len());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
    }
}

/// The status and whether the connection goes on, once the whole answer has come.
fn whole_answer(bytes: &[u8]) -> io::Result<Option<(u16, bool)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let status = bytes
        .get(9..12)
        .and_then(|code| std::str::from_utf8(code).ok())
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no status line"))?;
    let mut length = 0;
    let mut chunked = false;
    let mut keep = true;
    for line in bytes[..end].split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            length = std::str::from_utf8(value)
                .ok()
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no content-length"))?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            chunked = value.eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            keep = !value.eq_ignore_ascii_case(b"close");
        }
    }
    let body = &bytes[end + 4..];
    let whole = if chunked { body.ends_with(b"0\r\n\r\n") } else { body.len() >= length };
    Ok(whole.then_some((status, keep)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::http::Request;

    #[test]
    fn it_counts_what_came_and_what_did_not() {
        let backend = Backend::start();
        let mut plan = Plan {
            to: backend.address(),
            connections: 4,
            requests: vec![Request::get("/").encode(), Request::get("/status/404").encode()],
            pause: Duration::ZERO,
            cpu: None,
        };
        let report = Load::during(plan.clone(), Duration::from_millis(200));
        assert_eq!(report.dropped, 0, "{:?}", report.reasons);
        assert!(report.statuses[&200] > 4 && report.statuses[&404] > 4, "{:?}", report.statuses);
        assert!(report.quantile(0.5) <= report.quantile(0.99));

        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        plan.to = closed;
        let report = Load::during(plan, Duration::from_millis(100));
        assert_eq!(report.answers(), 0);
        assert!(report.dropped >= 4);
    }

    #[test]
    fn an_answer_is_whole_when_its_last_byte_is_there() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
        assert_eq!(whole_answer(answer).unwrap(), Some((200, false)));
        assert_eq!(whole_answer(&answer[..answer.len() - 1]).unwrap(), None);
        let chunked = b"HTTP/1.1 403 Forbidden\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        assert_eq!(whole_answer(chunked).unwrap(), Some((403, true)));
        assert_eq!(whole_answer(&chunked[..chunked.len() - 5]).unwrap(), None);
    }
}
