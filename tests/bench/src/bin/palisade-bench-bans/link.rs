//! Bans that the workers of a node ask for.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use palisade_bench::link::connect;
use snapshot::{BanRequest, Up};

use crate::crowd;

/// What a worker sends in one message.
const PER_MESSAGE: usize = 500;
/// It bounds a run that fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// Has a control plane record bans as a node's workers do, and waits until it has told of all of them: they are durable then.
pub(crate) fn ban(control: SocketAddr, keys: &[String], until_millis: u64) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let work = async {
        let (up, mut down) = connect(control).await?;
        let mut waiting: HashSet<&str> = keys.iter().map(String::as_str).collect();
        for keys in keys.chunks(PER_MESSAGE) {
            let issued_at_millis = until_millis;
            let request = |key: &String| BanRequest {
                key: key.clone(),
                until_millis,
                reason: crowd::REASON.to_owned(),
                score: 60.0,
                tags: vec!["waf:blocked".to_owned(), "sqli".to_owned()],
                issued_at_millis,
                address: String::new(),
            };
            let bans = keys.iter().map(request).collect();
            up.send(Up { node: "bench".to_owned(), bans, ..Up::default() }).await.map_err(|error| error.to_string())?;
            // One message at a time, as far as it is known by then.
            let last = keys.last().map(String::as_str).unwrap_or_default();
            while waiting.contains(last) {
                let message = down.message().await.map_err(|status| status.to_string())?;
                let message = message.ok_or("the link has ended")?;
                for ban in message.bans.iter().filter(|ban| ban.until_millis > 0) {
                    waiting.remove(ban.key.as_str());
                }
            }
        }
        match waiting.len() {
            0 => Ok(()),
            left => Err(format!("the control plane has not told of {left} bans")),
        }
    };
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, work).await })
        .unwrap_or_else(|_| Err("the control plane does not get on with the bans".to_owned()))
}
