//! A simulated worker that sends events: it queues and drops as a gateway does.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use palisade_bench::link::connect;
use snapshot::Up;
use tokio::sync::mpsc::error::TrySendError;

/// What the control plane has workers do: how often they send, and how many events wait at most.
const FLUSH: Duration = Duration::from_millis(200);
const MOST_QUEUED: usize = 1000;
/// The most bytes of events in a batch of a gateway.
const MOST_BYTES: usize = 1 << 20;
/// Banned callers, whose requests are refused: incidents keep an account of each.
const BANNED: u64 = 500;
/// One event of this many is an offence that the ledger is charged with: of one of these callers, for a score that bans none of them.
const OFFENCE: (u64, u64, f64) = (10, 5000, 0.2);
/// How long the end of the queue may take.
const DRAIN: Duration = Duration::from_secs(60);

/// The events of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Events that came up.
    pub(crate) made: u64,
    /// Of them, those that were dropped because the queue was full.
    pub(crate) dropped: u64,
    /// Messages that reported such drops: the control plane makes an event of each.
    pub(crate) reports: u64,
}

/// A sender with its number in the run, and how it sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) number: usize,
    /// The same for all senders of one run; it is part of each event.
    pub(crate) run: u64,
    pub(crate) control: SocketAddr,
    pub(crate) per_second: f64,
    pub(crate) time: Duration,
}

impl Sender {
    /// Sends for its time, then what still waits.
    pub(crate) async fn send(self) -> Result<Sent, String> {
        let (up, mut down) = connect(self.control).await?;
        let node = format!("sender-{}", self.number);
        let mut queue: VecDeque<Vec<u8>> = VecDeque::new();
        let (mut sent, mut unreported) = (Sent::default(), 0);
        let start = Instant::now();
        // Senders do not send at the same moment.
        tokio::time::sleep(FLUSH.mul_f64(self.number as f64 * 0.618 % 1.0)).await;
        let mut ticks = tokio::time::interval(FLUSH);
        let mut introduced = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                message = down.message() => match message {
                    Ok(Some(_)) => continue,
                    other => return Err(format!("the link of {node} has ended: {other:?}")),
                },
            }
            let elapsed = start.elapsed();
            let due = (self.per_second * elapsed.min(self.time).as_secs_f64()) as u64;
            while sent.made < due {
                if queue.len() >= MOST_QUEUED {
                    queue.pop_front();
                    (sent.dropped, unreported) = (sent.dropped + 1, unreported + 1);
                }
                queue.push_back(self.event(sent.made));
                sent.made += 1;
            }
            while !queue.is_empty() || unreported > 0 || !introduced {
                let permit = match up.try_reserve() {
                    Ok(permit) => permit,
                    Err(TrySendError::Full(())) => break,
                    Err(TrySendError::Closed(())) => return Err(format!("the link of {node} is closed")),
                };
                let mut bytes = 0;
                let fits = |event: &&Vec<u8>| {
                    bytes += event.len();
                    bytes <= MOST_BYTES
                };
                let count = queue.iter().take_while(fits).count();
                let events = queue.drain(..count).collect();
                let dropped = std::mem::take(&mut unreported);
                sent.reports += u64::from(dropped > 0);
                permit.send(Up { node: node.clone(), events, dropped, ..Up::default() });
                introduced = true;
            }
            if elapsed >= self.time && queue.is_empty() && unreported == 0 && up.capacity() == up.max_capacity() {
                return self.end(up, down, sent).await;
            }
            if elapsed > self.time + DRAIN {
                return Err(format!("{node} still has {} events to send", queue.len()));
            }
        }
    }

    /// Ends the stream from this side and waits until the control plane has read all of it.
    async fn end(
        self,
        up: tokio::sync::mpsc::Sender<Up>,
        mut down: tonic::Streaming<snapshot::Down>,
        sent: Sent,
    ) -> Result<Sent, String> {
        drop(up);
        let read = async { while let Ok(Some(_)) = down.message().await {} };
        tokio::time::timeout(DRAIN, read).await.map_err(|_| "the control plane does not end a link".to_owned())?;
        Ok(sent)
    }

    /// An event as a gateway makes it, of a usual length.
    fn event(&self, number: u64) -> Vec<u8> {
        let (every, offenders, score) = OFFENCE;
        let serial = number + self.number as u64 * 7919;
        let (category, score, address) = match number % every {
            0 => ("threat", score, Ipv4Addr::from(0xc612_0000 + (number / every + serial) as u32 % offenders as u32)),
            _ => ("ban", 60.0, Ipv4Addr::from(0xc633_6400 + (serial % BANNED) as u32)),
        };
        format!(
            concat!(
                r#"{{"@type":"SvcSecurityEvent","@timestamp":"2026-01-01T00:00:00.000Z","#,
                r#""event":{{"category":"{}","action":"deny","outcome":"blocked","severity":3,"module":"threat-response"}},"#,
                r#""source":{{"ip":"{}","user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}},"#,
                r#""request":{{"id":"6f1c2f0e-7d1f-4a7e-9d53-{:012}","method":"GET","path":"/search","host":"shop.example.com"}},"#,
                r#""route":{{"id":"shop","name":"shop"}},"threat":{{"score":{},"tags":["waf:blocked","sqli"],"#,
                r#""signals":[{{"source":"waf","rule":"942100","weight":20,"detail":"SQL Injection Attack Detected via libinjection"}}]}},"#,
                r#""decision":{{"action":"deny","status":403,"tier":0,"policy":"main","enforced":true}},"message":"bench {} {} {}"}}"#
            ),
            category, address, number, score, self.run, self.number, number
        )
        .into_bytes()
    }
}
