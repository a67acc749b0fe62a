//! The loop: scanners as entities have them, whether they work, and the questions of gateways.

use std::sync::Arc;
use std::time::Duration;

use kit::{AskedBody, Sources};
use prost::Message as _;
use snapshot::Topic as _;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::Scanners;
use super::answer::answer;
use crate::ScanFiles;

/// How often scanners are asked whether they work, and for the version of their database.
const CHECK: Duration = Duration::from_secs(30);

/// Scans files for as long as the control plane runs.
pub(in super::super) async fn gather(sources: Sources) {
    let Some(scanners) = sources.runtime::<Scanners>() else { return };
    scanners.reach_by(sources.outbound.clone());
    let mut entities = sources.entities.clone();
    follow(&scanners, &sources, &mut entities);
    let (shared, health, clock) = (Arc::clone(&scanners), Arc::clone(&sources.health), sources.clock);
    sources.answer_with_body(
        ScanFiles::TOPIC,
        Arc::new(move |question, body: Box<dyn AskedBody>| {
            let (scanners, health) = (Arc::clone(&shared), Arc::clone(&health));
            Box::pin(async move {
                let question = ScanFiles::decode(question.as_slice()).ok()?;
                Some(answer(&scanners, &question, body, &*health, clock()).await.encode_to_vec())
            })
        }),
    );
    let mut check = interval(CHECK);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut checks = JoinSet::new();
    loop {
        tokio::select! {
            changed = entities.changed() => {
                if changed.is_err() {
                    return;
                }
                follow(&scanners, &sources, &mut entities);
                check.reset_immediately();
            }
            _ = check.tick(), if checks.is_empty() => {
                for (id, scanner) in scanners.all() {
                    checks.spawn(async move {
                        let outcome = scanner.check().await;
                        (id, scanner, outcome)
                    });
                }
            }
            Some(Ok((id, scanner, outcome))) = checks.join_next() => {
                // It may have been changed or removed meanwhile.
                if scanners.get(&id).is_some_and(|now| Arc::ptr_eq(&now, &scanner)) {
                    match outcome {
                        Ok(()) => sources.health.works(&subject(&id)),
                        Err(why) => sources.health.fails(&subject(&id), &why),
                    }
                }
            }
        }
    }
}

fn follow(scanners: &Scanners, sources: &Sources, entities: &mut kit::EntityWatch) {
    let gone = scanners.follow(&**entities.borrow_and_update(), &sources.outbound);
    gone.iter().for_each(|id| sources.health.ends(&subject(id)));
}

/// What operators know a scanner by.
pub(super) fn subject(id: &str) -> String {
    format!("malware scanner {id}")
}
