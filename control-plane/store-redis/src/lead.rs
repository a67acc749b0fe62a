//! Which of the control planes that share a server leads: the one that has a key there, which ends unless it is renewed.

use std::sync::Weak;
use std::time::Duration;

use base::clock::Stopwatch;
use redis::{Script, Value};
use tokio::sync::watch;

use crate::upstream::Shared;

/// How long the key lasts: when a leader is killed, nothing is done for that time at most.
const LASTS: Duration = Duration::from_secs(4);
/// How often it is asked for and renewed.
const EVERY: Duration = Duration::from_secs(1);
/// A leader that could not renew the key stops so long before it ends.
const MARGIN: Duration = Duration::from_millis(500);

/// Asks to lead for as long as the store is open and `leads` is listened to. `name` is this control plane's.
pub(crate) async fn run(shared: Weak<Shared>, name: String, leads: watch::Sender<bool>) {
    let script = Script::new(include_str!("scripts/lead.lua"));
    let mut until = None;
    loop {
        let Some(now) = shared.upgrade() else { break };
        if leads.is_closed() {
            break;
        }
        // Counted from before the server begins to count.
        let asked = Stopwatch::start();
        let asking = ask(&now, &script, &name);
        let answer = match &until {
            // The end is not waited for longer than the key lasts.
            Some(since) => tokio::time::timeout(left(since), asking).await.unwrap_or(None),
            None => asking.await,
        };
        drop(now);
        match answer {
            Some(true) => until = Some(asked),
            Some(false) => until = None,
            None if until.as_ref().is_some_and(|since| left(since).is_zero()) => until = None,
            None => {}
        }
        tell(&leads, until.is_some());
        let pause = until.as_ref().map_or(EVERY, |since| left(since).min(EVERY));
        tokio::time::sleep(pause).await;
    }
    leads.send_replace(false);
}

/// For how long a leader that asked then may still take itself for one.
fn left(since: &Stopwatch) -> Duration {
    let passed = Duration::try_from_secs_f64(since.seconds()).unwrap_or(LASTS);
    (LASTS - MARGIN).saturating_sub(passed)
}

async fn ask(shared: &Shared, script: &Script, name: &str) -> Option<bool> {
    let mut call = script.key(&shared.keys.leader);
    call.arg(name).arg(u64::try_from(LASTS.as_millis()).unwrap_or(u64::MAX));
    let answer = shared.link.call(None, async |mut connection| call.invoke_async::<Value>(&mut connection).await);
    match answer.await {
        Ok(answer) => Some(answer == Value::Int(1)),
        Err(error) => {
            tracing::debug!(%error, "who leads could not be asked");
            None
        }
    }
}

fn tell(leads: &watch::Sender<bool>, now: bool) {
    let changed = leads.send_if_modified(|before| std::mem::replace(before, now) != now);
    match (changed, now) {
        (true, true) => tracing::info!("this control plane leads: it does the work that is done once for all of them"),
        (true, false) => tracing::info!("this control plane does not lead any more"),
        (false, _) => {}
    }
}
